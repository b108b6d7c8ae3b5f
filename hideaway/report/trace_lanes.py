"""Intervals laid on lanes so that a trace viewer can draw them: whole nanoseconds, nothing crossing.

Here: pure arithmetic on (start, end) pairs. Not here: what the intervals mean, which comes next
in `hideaway.report.trace_tracks`.
"""

from __future__ import annotations

from collections.abc import Sequence

NANOSECONDS_PER_SECOND = 10**9
# A phase may enclose a finer one (waiting inside an experts phase); a copy is never part of another copy.
NESTED_TRACKS = ("compute", "sequence")


def nanoseconds(seconds: float) -> int:
    """Return the nearest whole nanosecond; equal times stay equal and order is kept."""
    return round(seconds * NANOSECONDS_PER_SECOND)


def assign_lanes(intervals: Sequence[tuple[int, int]], *, nested: bool) -> list[list[int]]:
    """Return lanes, each a list of indices into `intervals` in drawing order (earlier start, then longer).

    Two intervals share a lane if one ends before the other starts (touching is fine) or, where `nested`, if
    one lies inside the other. Every interval goes to the first lane that can take it, so there is one lane
    where nothing overlaps and none where there is no interval.
    """
    order = sorted(range(len(intervals)), key=lambda index: (intervals[index][0], -intervals[index][1]))
    lanes: list[list[int]] = []
    open_ends: list[list[int]] = []  # by lane, the ends of the intervals still open, innermost last
    for index in order:
        start, end = intervals[index]
        for number, ends in enumerate(open_ends):
            while ends and ends[-1] <= start:
                ends.pop()
            if not ends or (nested and end <= ends[-1]):
                lanes[number].append(index)
                ends.append(end)
                break
        else:
            lanes.append([index])
            open_ends.append([end])
    return lanes


def lane_events(intervals: Sequence[tuple[int, int]], lane: Sequence[int]) -> list[tuple[int, int, bool]]:
    """Return (time, index, is_begin) of one lane, times never falling, begins and ends properly nested."""
    events: list[tuple[int, int, bool]] = []
    open_indices: list[int] = []
    for index in lane:
        start = intervals[index][0]
        while open_indices and intervals[open_indices[-1]][1] <= start:
            closed = open_indices.pop()
            events.append((intervals[closed][1], closed, False))
        events.append((start, index, True))
        open_indices.append(index)
    while open_indices:
        closed = open_indices.pop()
        events.append((intervals[closed][1], closed, False))
    return events


def lane_depths(intervals: Sequence[tuple[int, int]], lane: Sequence[int]) -> list[tuple[int, int]]:
    """Return (index, depth) of one lane in its order; depth counts the intervals that enclose this one."""
    depths: list[tuple[int, int]] = []
    open_now = 0
    for _, index, begins in lane_events(intervals, lane):
        if begins:
            depths.append((index, open_now))
        open_now += 1 if begins else -1
    return depths
