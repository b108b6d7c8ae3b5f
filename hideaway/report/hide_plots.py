"""Pictures of the hiding inequality: the frontier over r and bandwidth, and the verdict over block sizes.

Filled regions say hidden or not; colour is doubled by hatching and by words. Not here: the forms themselves
(`hideaway.sim.hide`) and the tables (`hideaway.report.hide_tables`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hideaway.report.hide_frontier import draw_frontier
from hideaway.report.hide_sides import Curve, draw_blocks, draw_saturations, draw_verdicts
from hideaway.report.style import BLUE, GREY, drawing, new_figure, picture_kind, save_figure
from hideaway.sim.hide import Reading
from hideaway.sim.units import MILLISECOND

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def hide_plot(
    path: str | os.PathLike[str],
    *,
    nominal: Mapping[str, float],
    blocks: Curve | None = None,
    block_size: int | None = None,
    title: str = "Do expert transfers hide?",
) -> None:
    """Draw the nominal frontier over r and BW, and both sides over block sizes (or saturation).

    Parameters
    ----------
    path : str or os.PathLike
        Ends in .png or .svg.
    nominal : Mapping[str, float]
        Arguments of `evaluate_hide_inequality` at the present point.
    blocks : Curve, optional
        Both sides at each block size; without them saturation takes their place.
    block_size : int, optional
        The present block size, marked.
    """
    picture_kind(path)
    with drawing():
        figure = new_figure(11.5, 4.9)
        figure.suptitle(title, x=0.01, ha="left", fontsize=11, parse_math=False)
        grid = figure.add_gridspec(2, 2, height_ratios=[6.0, 1.0])
        draw_frontier(figure.add_subplot(grid[:, 0]), nominal)
        if blocks is None or len(blocks.candidates) < 2:
            draw_saturations(figure.add_subplot(grid[:, 1]), nominal)
        else:
            upper = figure.add_subplot(grid[0, 1])
            lower = figure.add_subplot(grid[1, 1], sharex=upper)
            draw_blocks(upper, blocks, block_size)
            draw_verdicts(lower, blocks, block_size)
        save_figure(figure, path)


def published_plot(path: str | os.PathLike[str], readings: Sequence[Reading], *, title: str) -> None:
    """Draw fetch against window for every reading of a published case, one pair of bars a reading."""
    picture_kind(path)
    with drawing():
        figure = new_figure(9.8, 4.6)
        figure.suptitle(title, x=0.01, ha="left", fontsize=10, wrap=True, parse_math=False)
        axes = figure.subplots()
        for place, reading in enumerate(readings):
            _draw_reading(axes, place, reading)
        names = [_reading_name(reading) for reading in readings]
        names[0] = f"as published:\n{names[0]}"
        axes.set_yticks(range(len(readings)), names)
        axes.set_ylim(len(readings) - 0.4, -0.6)
        axes.set_xlabel("milliseconds, totals over the captured trace")
        axes.set_xlim(0, 1.32 * max(_sides(reading)[0] for reading in readings))
        axes.grid(visible=False, axis="y")
        _side_legend(axes)
        save_figure(figure, path)


def _sides(reading: Reading) -> tuple[float, float]:
    return reading.form.fetch_seconds / MILLISECOND, reading.form.hide_window_seconds / MILLISECOND


def _reading_name(reading: Reading) -> str:
    counted = "expert copies only" if reading.only_expert_copies else "all bytes moved"
    draft = "own draft in window" if reading.own_draft_in_window else "own draft not in window"
    return f"{counted}\n{draft}"


def _draw_reading(axes: Axes, place: int, reading: Reading) -> None:
    fetch, window = _sides(reading)
    hidden = reading.form.hidden
    axes.barh(place - 0.18, fetch, height=0.32, color=BLUE)
    axes.barh(place + 0.18, window, height=0.32, color=GREY)
    axes.text(
        max(fetch, window),
        place,
        f"  {'hidden' if hidden else 'not hidden'}, {reading.margin_seconds / MILLISECOND:+.1f} ms",
        va="center",
        ha="left",
        fontweight="bold" if hidden else "normal",
    )


def _side_legend(axes: Axes) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(color=BLUE, label="fetch"), Patch(color=GREY, label="hide window")]
    axes.legend(handles=handles, loc="lower right")
