"""The money plot: tokens per second against concurrency, one line a baseline, one panel a block size.

Under each panel stands a row of marks for the order B0 < B1 < OURS < B3 and one for each of its links: does
it hold there? Not here: the verdicts (`hideaway.report.order`). This is the last stop of the matrix.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING

from hideaway.report.legend_names import legend_names
from hideaway.report.matrix_cells import Panel, Row, panels, row_number
from hideaway.report.order import LINK_NAMES, ORDER_NAME, order_summary, panel_verdicts
from hideaway.report.panel_parts import concurrency_axis, legend_inches, panel_title, set_title, show_no_rows
from hideaway.report.style import (
    GREEN,
    GREY,
    VERMILLION,
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

# Subject of the title and label of the axis.
_LABELS = {
    "output_tokens_per_second": ("output tokens per second", "output tokens per second"),
    "goodput_at_slo": ("goodput", "tokens per second of requests\nwithin the TTFT and TPOT limits"),
}
_MARKS: dict[bool | None, tuple[str, str]] = {True: ("✓", GREEN), False: ("✗", VERMILLION), None: ("–", GREY)}
_MARKS_LEGEND = "✓ holds    ✗ breaks    – cannot be told: a baseline is missing or does not fit"
_MAX_COLUMNS = 3
# Beyond this ratio of largest to smallest value a linear axis presses the offloaded baselines onto zero.
_LOG_AXIS_RATIO = 8.0


def money_plot(
    rows: Sequence[Row],
    path: str | os.PathLike[str],
    *,
    metric: str = "output_tokens_per_second",
    profile: str | None = None,
) -> None:
    """Draw `metric` against concurrency for every baseline and block size, and where the order holds.

    Parameters
    ----------
    rows : Sequence[Mapping[str, object]]
        Rows of the matrix; repeats of a cell are drawn as their mean in a band from least to largest.
    path : str or os.PathLike
        Ends in .png or .svg.
    metric : str
        "output_tokens_per_second", "goodput_at_slo" or another metric of which more is better.
    profile : str, optional
        Name of the hardware profile for the title; the rows' own `profile` where they have one.

    Raises
    ------
    InputError
        A row does not name its cell, the ending is not .png or .svg, or the folder cannot be written.
    """
    picture_kind(path)
    all_panels = panels(rows, lambda row: row_number(row, metric))
    spelled = metric.replace("_", " ")
    subject, label = _LABELS.get(metric, (spelled, spelled))
    names = legend_names(all_panels)
    with drawing():
        columns = max(1, min(_MAX_COLUMNS, len(all_panels)))
        lines = max(1, -(-len(all_panels) // columns))
        figure = new_figure(4.2 * columns + 2.6, max(4.6 * lines + 0.7, legend_inches(names.values())))
        set_title(figure, rows, profile, f"{subject} against concurrency")
        if all_panels:
            _draw_panels(figure, all_panels, names, label, columns)
        else:
            show_no_rows(figure)
        save_figure(figure, path)


def _draw_panels(
    figure: Figure, all_panels: Sequence[Panel], names: Mapping[str, str], label: str, columns: int
) -> None:
    lines = -(-len(all_panels) // columns)
    styles = baseline_styles(names)
    logarithmic = _wants_log_axis(all_panels)
    grid = figure.add_gridspec(2 * lines, columns, height_ratios=[4.0, 1.3] * lines)
    first: Axes | None = None
    for number, panel in enumerate(all_panels):
        line, column = divmod(number, columns)
        upper = figure.add_subplot(grid[2 * line, column], sharey=first)
        first = first or upper
        _draw_lines(upper, panel, styles, logarithmic=logarithmic)
        upper.set_title(panel_title(panel, all_panels))
        upper.set_ylabel(label if column == 0 else "")
        lower = figure.add_subplot(grid[2 * line + 1, column])
        _draw_marks(lower, panel, named=column == 0)
        for axes in (upper, lower):
            concurrency_axis(axes, panel.concurrencies)
        upper.tick_params(labelbottom=False, labelleft=column == 0)
        lower.set_xlabel("concurrency (sequences in flight)")
    verdicts = [verdict for panel in all_panels for verdict in panel_verdicts(panel)]
    figure.supxlabel(f"{order_summary(verdicts)}\n{_MARKS_LEGEND}", fontsize=8)
    drawn = {baseline for panel in all_panels for baseline, _ in panel.values}
    _draw_legend(figure, names, styles, drawn)


def _wants_log_axis(all_panels: Sequence[Panel]) -> bool:
    values = [value for panel in all_panels for repeats in panel.values.values() for value in repeats]
    return bool(values) and min(values) > 0 and max(values) / min(values) > _LOG_AXIS_RATIO


def _draw_lines(axes: Axes, panel: Panel, styles: Mapping[str, LineStyle], *, logarithmic: bool) -> None:
    """Draw a line through the means of each baseline; a cell without a value leaves a gap."""
    from matplotlib.ticker import LogLocator, NullLocator

    for baseline in panel.baselines:
        style = styles[baseline]
        means = [panel.mean(baseline, concurrency) for concurrency in panel.concurrencies]
        heights = [float("nan") if mean is None else mean for mean in means]
        axes.plot(panel.concurrencies, heights, color=style.colour, marker=style.marker, linestyle=style.dash)
        spreads = [panel.values.get((baseline, concurrency), ()) for concurrency in panel.concurrencies]
        if any(len(repeats) > 1 for repeats in spreads):
            least = [min(repeats, default=float("nan")) for repeats in spreads]
            most = [max(repeats, default=float("nan")) for repeats in spreads]
            axes.fill_between(panel.concurrencies, least, most, color=style.colour, alpha=0.15, linewidth=0)
    if logarithmic:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter("{x:,.6g}")


def _draw_marks(axes: Axes, panel: Panel, *, named: bool) -> None:
    """Draw a mark for the order and each link at every concurrency; `named` lines have their names."""
    verdicts = panel_verdicts(panel)
    lines = [(ORDER_NAME, [verdict.holds for verdict in verdicts])]
    lines += [(name, [verdict.links[place] for verdict in verdicts]) for place, name in enumerate(LINK_NAMES)]
    for height, (_, outcomes) in enumerate(lines):
        for concurrency, outcome in zip(panel.concurrencies, outcomes, strict=True):
            mark, colour = _MARKS[outcome]
            weight = "bold" if height == 0 else "normal"
            axes.text(
                concurrency,
                height,
                mark,
                color=colour,
                ha="center",
                va="center",
                fontweight=weight,
                fontsize=11,
            )
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_yticks(range(len(lines)), [name if named else "" for name, _ in lines], fontsize=8)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False)
    axes.axhline(0.5, color="#CCCCCC", linewidth=0.8)


def _draw_legend(
    figure: Figure, names: Mapping[str, str], styles: Mapping[str, LineStyle], drawn: Set[str]
) -> None:
    """List the baselines at the right; one without any line is faint."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [],
            [],
            color=style.colour,
            marker=style.marker,
            linestyle=style.dash,
            alpha=1.0 if baseline in drawn else 0.3,
            label=names[baseline],
        )
        for baseline, style in styles.items()
    ]
    figure.legend(handles=handles, loc="outside right upper", labelspacing=0.9)
