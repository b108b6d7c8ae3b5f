"""A window of a timeline as rows of bars: which records lie in it, on which row, how far they reach.

Pure. Next: `hideaway.report.timeline_plot`, which draws them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hideaway.report.trace_lanes import NESTED_TRACKS, assign_lanes, lane_depths, nanoseconds
from hideaway.report.trace_names import BAND_NAMES
from hideaway.sim.timeline import Record


@dataclass(frozen=True, slots=True)
class Bar:
    """One record clipped to the window.

    `lane` of `GanttRow.num_lanes` keeps bars apart that cross; `depth` counts the bars of its lane that it lies
    in, to be drawn on top of them.
    """

    start_seconds: float
    end_seconds: float
    kind: str
    layer: int
    lane: int
    depth: int


@dataclass(frozen=True, slots=True)
class GanttRow:
    """One labelled row; `group` is "compute", "link", "issue" or "sequence"."""

    label: str
    group: str
    num_lanes: int
    bars: tuple[Bar, ...]


def gantt_rows(records: Sequence[Record], start_seconds: float, end_seconds: float) -> list[GanttRow]:
    """Return compute, link by band, issue thread and sequences of a window, those without a bar left out."""
    inside: dict[tuple[int, str, int], list[Record]] = {}
    for record in records:
        if record.end_seconds > start_seconds and record.start_seconds < end_seconds:
            for key in _row_keys(record):
                inside.setdefault(key, []).append(record)
    return [_row(key, inside[key], start_seconds, end_seconds) for key in sorted(inside)]


def exposed_share_of_window(rows: Sequence[GanttRow], start_seconds: float, end_seconds: float) -> float:
    """Return the share of the window that the compute row spends in "wait"."""
    waited = math.fsum(
        bar.end_seconds - bar.start_seconds
        for row in rows
        if row.group == "compute"
        for bar in row.bars
        if bar.kind == "wait"
    )
    return waited / (end_seconds - start_seconds)


def _row_keys(record: Record) -> list[tuple[int, str, int]]:
    """Return (place, group, number) of each row a record is drawn on; counters are on none."""
    if record.track == "compute":
        return [(0, "compute", 0)]
    if record.track == "link":
        return [(1, "link", list(BAND_NAMES).index(record.band))]
    if record.track == "issue":
        return [(2, "issue", 0)]
    if record.track == "sequence":
        return [(3, "sequence", seq_id) for seq_id in record.seq_ids or (-1,)]
    return []


def _row(
    key: tuple[int, str, int], records: list[Record], start_seconds: float, end_seconds: float
) -> GanttRow:
    _, group, number = key
    intervals = [(nanoseconds(record.start_seconds), nanoseconds(record.end_seconds)) for record in records]
    lanes = assign_lanes(intervals, nested=group in NESTED_TRACKS)
    bars = [
        Bar(
            max(records[index].start_seconds, start_seconds),
            min(records[index].end_seconds, end_seconds),
            records[index].kind,
            records[index].layer,
            lane,
            depth,
        )
        for lane, indices in enumerate(lanes)
        for index, depth in lane_depths(intervals, indices)
    ]
    return GanttRow(_label(group, number), group, len(lanes), tuple(bars))


def _label(group: str, number: int) -> str:
    if group == "link":
        return f"link, {list(BAND_NAMES.values())[number]}"
    if group == "sequence":
        return f"sequence {number}" if number >= 0 else "no sequence"
    return {"compute": "compute", "issue": "issue thread"}[group]
