"""A short window of a timeline as a Gantt chart: compute, link by band, issue thread, sequences.

Not here: which bar lies where (`hideaway.report.gantt_rows`). For a whole run use `hideaway.report.perfetto`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hideaway.report.gantt_rows import Bar, GanttRow, exposed_share_of_window, gantt_rows
from hideaway.report.style import (
    GREY,
    KIND_COLOURS,
    drawing,
    new_figure,
    picture_kind,
    save_figure,
    text_colour,
)
from hideaway.sim.errors import InputError
from hideaway.sim.timeline import Timeline
from hideaway.sim.units import MICROSECOND, MILLISECOND

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_SEQUENCES = 16
_WIDTH_INCHES = 12.0
_ROW_INCHES = 0.36
# Of the height of a row; the rest is the gap to the next.
_BAR_HEIGHT = 0.78
# Part of the axes' width that one letter of a bar's label needs.
_LETTER_SHARE = 0.0075
# A bar narrower than this share of the window would vanish behind a white edge; its edge has its own colour.
_EDGED_SHARE = 0.003
_LEGEND_LINE_INCHES = 0.19


def timeline_plot(
    timeline: Timeline, path: str | os.PathLike[str], *, start_seconds: float, end_seconds: float
) -> None:
    """Draw what ran between `start_seconds` and `end_seconds` (from the start of the run).

    Bars are cut at the edges of the window; records of one row that overlap share its height. More than 16
    sequences are not drawn; the title says how many are left out.

    Raises
    ------
    InputError
        The window is empty, not finite or before the start of the run; the ending of `path` is not .png or
        .svg; or the folder cannot be written.
    """
    picture_kind(path)
    if not 0 <= start_seconds < end_seconds < math.inf:
        raise InputError(
            f"window from {start_seconds} to {end_seconds} seconds; "
            "start_seconds must be at least 0 and below end_seconds, both finite"
        )
    rows = gantt_rows(timeline, start_seconds, end_seconds)
    sequences = [row for row in rows if row.group == "sequence"]
    num_hidden = max(0, len(sequences) - _MAX_SEQUENCES)
    shown = rows[: len(rows) - num_hidden]
    kinds = _kinds(shown)
    with drawing():
        height = max(1.3 + _ROW_INCHES * (len(shown) + 1), 1.3 + _LEGEND_LINE_INCHES * len(kinds))
        figure = new_figure(_WIDTH_INCHES, height)
        lines = _title_lines(timeline, rows, start_seconds, end_seconds)
        if num_hidden:
            lines.append(f"{num_hidden} of {len(sequences)} sequences are not drawn")
        figure.suptitle(
            "\n".join(lines) or "timeline", x=0.01, ha="left", fontsize=10, linespacing=1.3, parse_math=False
        )
        axes = figure.add_subplot()
        unit_seconds, unit = _time_unit(end_seconds - start_seconds)
        for place, row in enumerate(shown):
            _draw_row(axes, row, place, unit_seconds, end_seconds - start_seconds)
        _finish_axes(axes, shown, kinds, unit)
        axes.set_xlim(start_seconds / unit_seconds, end_seconds / unit_seconds)
        save_figure(figure, path)


def _title_lines(
    timeline: Timeline, rows: Sequence[GanttRow], start_seconds: float, end_seconds: float
) -> list[str]:
    """Return what ran, and the exposed share where the timeline tells waiting from computing."""
    header = timeline.header
    facts = [str(header[key]) for key in ("model", "profile", "baseline") if isinstance(header.get(key), str)]
    lines = [", ".join(facts)] if facts else []
    if any(record.kind == "wait" for record in timeline.on_track("compute")):
        share = exposed_share_of_window(rows, start_seconds, end_seconds)
        lines.append(f"compute waits for experts during {100 * share:.1f} % of this window")
    return lines


def _kinds(rows: Sequence[GanttRow]) -> list[str]:
    """Return the kinds that occur, known ones in the order of the palette, others by name."""
    present = {bar.kind for row in rows for bar in row.bars}
    return [kind for kind in KIND_COLOURS if kind in present] + sorted(present.difference(KIND_COLOURS))


def _time_unit(window_seconds: float) -> tuple[float, str]:
    if window_seconds < 2 * MILLISECOND:
        return MICROSECOND, "µs"
    return (MILLISECOND, "ms") if window_seconds < 2 else (1.0, "s")


def _draw_row(axes: Axes, row: GanttRow, place: int, unit_seconds: float, window_seconds: float) -> None:
    """Draw the bars of a row, one collection a kind and lane, inner bars last, and labels where they fit."""
    height = _BAR_HEIGHT / row.num_lanes
    by_look: dict[tuple[int, str, int], list[Bar]] = {}
    for bar in row.bars:
        by_look.setdefault((bar.depth, bar.kind, bar.lane), []).append(bar)
    for (depth, kind, lane), bars in sorted(by_look.items()):
        bottom = place - _BAR_HEIGHT / 2 + lane * height
        spans = [
            (bar.start_seconds / unit_seconds, (bar.end_seconds - bar.start_seconds) / unit_seconds)
            for bar in bars
        ]
        colour = KIND_COLOURS.get(kind, GREY)
        edges = [
            "white" if width * unit_seconds > _EDGED_SHARE * window_seconds else colour for _, width in spans
        ]
        axes.broken_barh(spans, (bottom, height), facecolors=colour, edgecolors=edges, linewidth=0.4)
        for bar, (left, width) in zip(bars, spans, strict=True):
            label = f"L{bar.layer}" if bar.layer >= 0 else bar.kind
            share = (bar.end_seconds - bar.start_seconds) / window_seconds
            if share > _LETTER_SHARE * (len(label) + 1) and depth == 0 and row.num_lanes <= 2:
                axes.text(
                    left + width / 2,
                    bottom + height / 2,
                    label,
                    color=text_colour(colour),
                    ha="center",
                    va="center_baseline",
                    fontsize=7 if row.num_lanes == 1 else 5,
                    parse_math=False,
                    clip_on=True,
                )


def _finish_axes(axes: Axes, rows: Sequence[GanttRow], kinds: Sequence[str], unit: str) -> None:
    """Name the rows and the axis, and list the kinds that occur at the right."""
    from matplotlib.patches import Patch

    axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)
    axes.set_yticks(range(len(rows)), [row.label for row in rows])
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.ticklabel_format(axis="x", useOffset=False, style="plain")
    axes.set_xlabel(f"time from the start of the run ({unit})")
    handles = [Patch(color=KIND_COLOURS.get(kind, GREY), label=kind) for kind in kinds]
    if handles:
        axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), handlelength=1.2)
    else:
        axes.text(0.5, 0.5, "no records in this window", ha="center", va="center", transform=axes.transAxes)
