"""What a record is called on screen, and the facts shown when it is selected.

Here: text only. Not here: where a record is drawn. Next: `hideaway.report.perfetto`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from hideaway.sim.timeline import Record

BAND_NAMES = {0: "on-demand", 1: "route-ahead", 2: "background", -1: "other"}
_EXPERT_PHASE = ("experts", "wait")


def expert_ids(mask: int) -> list[int]:
    """Return the set bits of an expert mask, ascending."""
    ids = []
    while mask:
        lowest = mask & -mask
        ids.append(lowest.bit_length() - 1)
        mask ^= lowest
    return ids


def late_arrivals(records: Sequence[Record]) -> dict[int, int]:
    """Return, by position of each "experts" record, the mask of its experts that were not there in time.

    An expert is late if a copy of it for that layer ended after the visit's expert phase (the first "experts"
    or "wait" of the same step and layer) began, and no later than the record's end; the others were hits. An
    expert in flight is a miss, as the metrics count it.
    """
    ends: dict[int, list[tuple[float, int]]] = {}
    began: dict[tuple[int, int], float] = {}
    for record in records:
        if record.track == "link" and record.experts:
            ends.setdefault(record.layer, []).append((record.end_seconds, record.experts))
        elif record.track == "compute" and record.kind in _EXPERT_PHASE and record.step >= 0:
            key = (record.step, record.layer)
            began[key] = min(began.get(key, record.start_seconds), record.start_seconds)
    for copies in ends.values():
        copies.sort()
    late: dict[int, int] = {}
    for position, record in enumerate(records):
        if record.track == "compute" and record.kind == "experts":
            copies = ends.get(record.layer, [])
            start = began.get((record.step, record.layer), record.start_seconds)
            first = bisect_right(copies, start, key=lambda copy: copy[0])
            last = bisect_right(copies, record.end_seconds, key=lambda copy: copy[0])
            arrived = 0
            for _, mask in copies[first:last]:
                arrived |= mask
            late[position] = record.experts & arrived
    return late


def slice_name(record: Record, late: int = 0) -> str:
    """Return a short name, such as "experts L12 (9 hits + 4 arrivals)".

    The number of hits is the engine's own (the record's `value`) where it gave one; else those not in `late`.
    """
    parts = [record.kind]
    if record.layer >= 0:
        parts.append(f"L{record.layer}")
    count = record.experts.bit_count()
    if record.track == "compute" and record.kind == "experts" and count:
        arrivals = count - int(record.value) if 0 < record.value <= count else late.bit_count()
        terms = [_counted(count - arrivals, "hit")] if count > arrivals else []
        terms += [_counted(arrivals, "arrival")] if arrivals else []
        parts.append(f"({' + '.join(terms)})")
    elif count == 1:
        parts.append(f"e{record.experts.bit_length() - 1}")
    elif count:
        parts.append(f"({_counted(count, 'expert')})")
    elif record.track == "compute" and record.layer < 0 and record.seq_ids:
        parts.append(f"({_counted(len(record.seq_ids), 'sequence')})")
    return " ".join(parts)


def record_facts(record: Record, late: int = 0) -> list[tuple[str, int | str]]:
    """Return the facts of a record as (name, value), those that say nothing left out."""
    facts: list[tuple[str, int | str]] = []
    if record.step >= 0:
        facts.append(("step", record.step))
    if record.layer >= 0:
        facts.append(("layer", record.layer))
    if record.seq_ids:
        facts.append(("sequences", _listed(record.seq_ids)))
    if record.bytes:
        facts.append(("bytes", record.bytes))
    if record.band >= 0:
        facts.append(("band", BAND_NAMES[record.band]))
    if record.experts:
        facts.append(("num_experts", record.experts.bit_count()))
        facts.append(("expert_ids", _listed(expert_ids(record.experts))))
    if late:
        facts.append(("arrival_ids", _listed(expert_ids(late))))
    return facts


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
