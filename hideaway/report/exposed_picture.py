"""The exposed-time plot: which share of a round the compute stream waits for experts.

One panel a block size, one group of bars a concurrency, one bar a baseline. A share that rounds to nothing is
written out, so that it is not taken for a missing row. This is the last stop of the matrix.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hideaway.report.legend_names import legend_names
from hideaway.report.matrix_cells import Panel, Row, exposed_share, panels
from hideaway.report.panel_parts import legend_inches, panel_title, set_title, show_no_rows
from hideaway.report.style import (
    GREY,
    LineStyle,
    baseline_styles,
    drawing,
    new_figure,
    picture_kind,
    save_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_GROUP_WIDTH = 0.84
# Shorter bars than this cannot be seen, so their share is written above them.
_VISIBLE_SHARE = 0.005


def exposed_plot(rows: Sequence[Row], path: str | os.PathLike[str], *, profile: str | None = None) -> None:
    """Draw exposed seconds as a share of the engine's time, by baseline and concurrency, for every block size.

    Parameters
    ----------
    rows : Sequence[Mapping[str, object]]
        Rows of the matrix with `exposed_share` (or `exposed_seconds_per_round` and `per_round_latency_seconds`);
        repeats of a cell are drawn as the mean of their shares.
    path : str or os.PathLike
        Ends in .png or .svg.
    profile : str, optional
        Name of the hardware profile for the title; the rows' own `profile` where they have one.

    Raises
    ------
    InputError
        A row does not name its cell, the ending is not .png or .svg, or the folder cannot be written.
    """
    picture_kind(path)
    all_panels = panels(rows, exposed_share)
    names = legend_names(all_panels)
    with drawing():
        height = max(2.7 * max(1, len(all_panels)) + 0.8, legend_inches(names.values()))
        figure = new_figure(11.0, height)
        set_title(figure, rows, profile, "exposed share of engine time: compute waits for experts")
        if all_panels:
            _draw_panels(figure, all_panels, names)
        else:
            show_no_rows(figure)
        save_figure(figure, path)


def _draw_panels(figure: Figure, all_panels: Sequence[Panel], names: Mapping[str, str]) -> None:
    styles = baseline_styles(names)
    top = max(
        (value for panel in all_panels for shares in panel.values.values() for value in shares), default=0.0
    )
    for number, panel in enumerate(all_panels, start=1):
        axes = figure.add_subplot(len(all_panels), 1, number)
        _draw_bars(axes, panel, styles)
        axes.set_ylim(0, max(1.15 * top, 0.02))
        axes.yaxis.set_major_formatter(_percent)
        axes.set_title(panel_title(panel, all_panels), loc="left")
        axes.set_ylabel("share of engine time")
        axes.set_xticks(range(len(panel.concurrencies)), [str(each) for each in panel.concurrencies])
        axes.set_xlim(-0.5, len(panel.concurrencies) - 0.5)
        axes.tick_params(axis="x", length=0)
        axes.grid(visible=False, axis="x")
        if number == len(all_panels):
            axes.set_xlabel("concurrency (sequences in flight)")
    _draw_legend(figure, names, styles)


def _percent(share: float, _: float) -> str:
    return f"{100 * share:g} %"


def _draw_bars(axes: Axes, panel: Panel, styles: Mapping[str, LineStyle]) -> None:
    """Draw one group a concurrency; a row without a value keeps its place and says n/a."""
    width = _GROUP_WIDTH / len(panel.baselines)
    for place, baseline in enumerate(panel.baselines):
        style = styles[baseline]
        for group, concurrency in enumerate(panel.concurrencies):
            centre = group + (place + 0.5) * width - _GROUP_WIDTH / 2
            share = panel.mean(baseline, concurrency)
            if share is not None:
                axes.bar(
                    centre,
                    share,
                    0.9 * width,
                    color="white" if style.hatch else style.colour,
                    edgecolor=style.colour,
                    hatch=style.hatch,
                )
            if share is None and (baseline, concurrency) in panel.statuses:
                _write_above(axes, centre, 0.0, "n/a", GREY)
            elif share is not None and share < _VISIBLE_SHARE:
                _write_above(axes, centre, share, "0" if share == 0 else "<0.5 %", style.colour)


def _write_above(axes: Axes, x: float, y: float, text: str, colour: str) -> None:
    axes.annotate(
        text,
        (x, y),
        (0, 2),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize=6,
        color=colour,
        rotation=90 if len(text) > 1 else 0,
    )


def _draw_legend(figure: Figure, names: Mapping[str, str], styles: Mapping[str, LineStyle]) -> None:
    from matplotlib.patches import Patch

    handles = [
        Patch(
            facecolor="white" if style.hatch else style.colour,
            edgecolor=style.colour,
            hatch=style.hatch,
            label=names[baseline],
        )
        for baseline, style in styles.items()
    ]
    figure.legend(handles=handles, loc="outside right upper", labelspacing=0.9)
