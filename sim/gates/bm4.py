"""BM4: the share of host-to-device bytes that move while named compute ranges run.

Interval arithmetic over a profiler's copies and ranges, in any one unit of time. What the share means for the
hiding inequality is judged in `hideaway.sim.verdicts`. Next: `hideaway.sim.gates.bm5`.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hideaway.sim.errors import InputError
from hideaway.sim.number_checks import finite_number, shown, whole_number

DEFAULT_COMPUTE_RANGES = ("dflash_draft", "route_ahead_router", "target_verify")
"""Range names that count as compute; the experiment's other two names mark the transfer itself."""

Span = tuple[float, float]

_MAX_TIME = 1e300
_MAX_BYTES = 10**18
"""Bounds that keep differences and products finite; no clock and no link comes near them."""


@dataclass(frozen=True, slots=True)
class Memcpy:
    """One host-to-device copy of `bytes` bytes from `start` to `end`."""

    start: float
    end: float
    bytes: int

    def __post_init__(self) -> None:
        _check_interval("the copy", self.start, self.end)
        whole_number("bytes", self.bytes, maximum=_MAX_BYTES)


@dataclass(frozen=True, slots=True)
class NvtxRange:
    """One named range from `start` to `end`."""

    name: str
    start: float
    end: float

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise InputError(
                f"the name of a range is {shown(self.name)} but must be text; write it as a string"
            )
        _check_interval(f"the range {shown(self.name)}", self.start, self.end)


@dataclass(frozen=True, slots=True)
class OverlapResult:
    """Bytes moved, bytes moved under compute, their ratio (0 when no bytes moved), each copy's own ratio."""

    total_h2d_bytes: int
    overlapped_h2d_bytes: float
    overlap_fraction: float
    per_memcpy_fraction: tuple[float, ...]


def compute_overlap(
    memcpys: Iterable[Memcpy],
    ranges: Iterable[NvtxRange],
    compute_range_names: Sequence[str] = DEFAULT_COMPUTE_RANGES,
    *,
    compute_ranges: Sequence[str] | None = None,
) -> OverlapResult:
    """Return how many of the copied bytes moved inside the union of the named ranges.

    A copy's bytes are apportioned by the share of its duration inside the union; a copy of no duration counts
    whole if its instant lies in the union. Names match with or without the leading colon that a profiler puts
    before ranges of no domain. `compute_ranges` is another spelling of `compute_range_names`.
    """
    chosen = compute_range_names if compute_ranges is None else compute_ranges
    if isinstance(chosen, str):
        raise InputError(f"compute_range_names is the text {shown(chosen)}; give a list of range names")
    names = {_without_empty_domain(name) for name in chosen}
    union = _union((span.start, span.end) for span in ranges if _without_empty_domain(span.name) in names)
    ends = [end for _, end in union]
    total_bytes = 0
    overlapped_bytes = 0.0
    fractions: list[float] = []
    for copy in memcpys:
        fraction = _covered_fraction(copy, union, ends)
        fractions.append(fraction)
        total_bytes += copy.bytes
        overlapped_bytes += copy.bytes * fraction
    return OverlapResult(
        total_h2d_bytes=total_bytes,
        overlapped_h2d_bytes=overlapped_bytes,
        overlap_fraction=overlapped_bytes / total_bytes if total_bytes else 0.0,
        per_memcpy_fraction=tuple(fractions),
    )


def _union(spans: Iterable[Span]) -> list[Span]:
    """Return disjoint spans in order that cover the same points; spans of no length are dropped."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if end <= start:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _covered_fraction(copy: Memcpy, union: Sequence[Span], ends: Sequence[float]) -> float:
    index = bisect_left(ends, copy.start)  # the first span that does not end before the copy starts
    duration = copy.end - copy.start
    if duration == 0:
        return 1.0 if index < len(union) and union[index][0] <= copy.start else 0.0
    pieces: list[float] = []
    while index < len(union) and union[index][0] < copy.end:
        start, end = union[index]
        pieces.append(min(end, copy.end) - max(start, copy.start))
        index += 1
    return min(math.fsum(pieces) / duration, 1.0)


def _without_empty_domain(name: str) -> str:
    return name.removeprefix(":")


def _check_interval(what: str, start: float, end: float) -> None:
    first = finite_number(f"start of {what}", start, minimum=-_MAX_TIME, maximum=_MAX_TIME)
    last = finite_number(f"end of {what}", end, minimum=-_MAX_TIME, maximum=_MAX_TIME)
    if last < first:
        raise InputError(
            f"{what} ends at {last:g}, before its start at {first:g}; swap or repair the two times"
        )
