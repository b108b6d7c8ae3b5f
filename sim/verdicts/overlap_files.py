"""BM4 terms from a JSON object: a capture's intervals, an overlap report, or the terms of the inequality.

Intervals win over stated figures: where they are given, the overlap is computed here. The keys are those the
public experiment writes. Rows may carry the same keys. Next: `hideaway.sim.verdicts.judges`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hideaway.sim.errors import InputError
from hideaway.sim.gates import DEFAULT_COMPUTE_RANGES, Memcpy, NvtxRange, compute_overlap
from hideaway.sim.number_checks import finite_number, shown, whole_number
from hideaway.sim.verdicts.measurements import Bm4Measurement

_NUMBERS = {
    "total_h2d_bytes": ("total_h2d_bytes",),
    "overlapped_h2d_bytes": ("overlapped_h2d_bytes",),
    "overlap_fraction": ("overlap_fraction", "canonical_overlap_fraction"),
    "h2d_bytes_per_second": ("measured_h2d_bytes_per_second",),
    "draft_seconds": ("t_draft_seconds",),
    "router_seconds": ("t_router_seconds",),
    "verify_seconds": ("t_verify_seconds",),
    "overlap_seconds": ("overlap_with_prev_verify_seconds",),
}
_COUNTS = ("num_rounds", "num_expert_copies", "expert_bytes")
_AGREEMENT = 1e-6
_MAX_TERM = 1e30
_MAX_COUNT = 10**15


def bm4_from_mapping(report: Mapping[str, Any], source: str) -> Bm4Measurement | None:
    """Return the terms an object states, or None when it states none.

    Raises
    ------
    InputError
        A term is malformed, or the stated overlap fraction is not overlapped bytes over total bytes.
    """
    terms: dict[str, Any] = {}
    for field, keys in _NUMBERS.items():
        for key in keys:
            if report.get(key) is not None:
                terms[field] = finite_number(
                    f"{key} of {source}",
                    report[key],
                    maximum=1.0 if field == "overlap_fraction" else _MAX_TERM,
                    above_minimum=field == "h2d_bytes_per_second",
                )
    for key in _COUNTS:
        if report.get(key) is not None:
            terms[key] = whole_number(f"{key} of {source}", report[key], minimum=1, maximum=_MAX_COUNT)
    stated = Bm4Measurement(source=source, **terms)
    _check_fraction(stated)
    if "memcpys" in report or "ranges" in report:
        computed = _from_intervals(report, source)
        return computed.filled_from(stated)
    return stated if terms else None


def _check_fraction(stated: Bm4Measurement) -> None:
    computed = stated.fraction()
    if computed is None or stated.overlap_fraction is None:
        return
    if abs(computed - stated.overlap_fraction) > _AGREEMENT:
        raise InputError(
            f"{stated.source} states an overlap fraction of {stated.overlap_fraction:g} but its bytes give "
            f"{computed:g}; repair the one that is wrong"
        )


def _from_intervals(report: Mapping[str, Any], source: str) -> Bm4Measurement:
    """Return the terms computed from `memcpys` and `ranges`; their times are in `seconds_per_unit` (1)."""
    scale = finite_number(
        "seconds_per_unit", report.get("seconds_per_unit", 1.0), maximum=_MAX_TERM, above_minimum=True
    )
    memcpys = [
        Memcpy(start=item["start"], end=item["end"], bytes=item["bytes"])
        for item in _objects(report, "memcpys", ("start", "end", "bytes"), source)
    ]
    ranges = [
        NvtxRange(name=item["name"], start=item["start"], end=item["end"])
        for item in _objects(report, "ranges", ("name", "start", "end"), source)
    ]
    names = report.get("compute_ranges", list(DEFAULT_COMPUTE_RANGES))
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(f"compute_ranges of {source} is {shown(names)}; give a list of range names")
    overlap = compute_overlap(memcpys, ranges, names)
    durations: dict[str, float] = {}
    for span in ranges:
        label = span.name.removeprefix(":")
        durations[label] = durations.get(label, 0.0) + (span.end - span.start) * scale
    return Bm4Measurement(
        source=source,
        total_h2d_bytes=float(overlap.total_h2d_bytes),
        overlapped_h2d_bytes=overlap.overlapped_h2d_bytes,
        overlap_fraction=overlap.overlap_fraction,
        draft_seconds=durations.get("dflash_draft"),
        router_seconds=durations.get("route_ahead_router"),
        verify_seconds=durations.get("target_verify"),
        num_rounds=sum(span.name.removeprefix(":") == "dflash_draft" for span in ranges) or None,
        captured_ranges=tuple(sorted(durations)),
        is_recomputed=True,
    )


def _objects(
    report: Mapping[str, Any], key: str, needed: tuple[str, ...], source: str
) -> list[Mapping[str, Any]]:
    items = report.get(key)
    if not isinstance(items, list):
        raise InputError(
            f"{key} of {source} is {shown(items)}; give a list of objects with {', '.join(needed)}"
        )
    for index, item in enumerate(items):
        if not isinstance(item, dict) or not set(needed) <= item.keys():
            raise InputError(f"{key}[{index}] of {source} is {shown(item)}; give {', '.join(needed)}")
    return items
