"""Summary tables of a profiler: named ranges and copies by kind, as CSV, into BM4 terms.

Two column layouts of the copy table are known. Next: `hideaway.sim.verdicts.readers`.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping
from pathlib import Path

from hideaway.sim.errors import InputError
from hideaway.sim.files import read_text
from hideaway.sim.inputs.plain_numbers import number_from_text, whole_number_from_text
from hideaway.sim.number_checks import shown
from hideaway.sim.units import MB, MILLISECOND
from hideaway.sim.verdicts.measurements import Bm4Measurement

EXPERT_COPY_RANGE = "cpu_to_gpu"
"""The engine's range around the copy of one expert."""

_MAX_COUNT = 10**12
_RANGE_COLUMNS = ("range_name", "count", "total_duration_ms")
_COPY_LAYOUTS = (("memcpy_kind", "total_MB"), ("Operation", "Total (MB)"))
_HOST_TO_DEVICE = "Host-to-Device"


def read_range_summary(path: str | os.PathLike[str]) -> Bm4Measurement:
    """Return the BM4 terms that a range table or a copy table states.

    From ranges: draft, router and verify seconds, drafts as rounds, copies of one expert. From copies: the
    bytes of the host-to-device kind.

    Raises
    ------
    InputError
        The file is neither table, or a line of it is malformed.
    """
    name = Path(path).name
    header, lines = _read_table(path)
    if set(_RANGE_COLUMNS) <= set(header):
        return _from_ranges(name, lines)
    for kind_column, megabytes_column in _COPY_LAYOUTS:
        if {kind_column, megabytes_column} <= set(header):
            return _from_copies(name, lines, kind_column, megabytes_column)
    known = " or ".join(", ".join(layout) for layout in (_RANGE_COLUMNS, *_COPY_LAYOUTS))
    raise InputError(f"{name!r} has the columns {shown(', '.join(header))}; give a table with {known}")


def _from_ranges(name: str, lines: list[dict[str, str]]) -> Bm4Measurement:
    seconds: dict[str, float] = {}
    counts: dict[str, int] = {}
    for index, line in enumerate(lines, start=2):
        label = line["range_name"].removeprefix(":")
        duration = _bounded(line["total_duration_ms"], f"total_duration_ms in line {index} of {name!r}")
        seconds[label] = seconds.get(label, 0.0) + duration * MILLISECOND
        count = whole_number_from_text(line["count"], f"count in line {index} of {name!r}", _MAX_COUNT)
        counts[label] = counts.get(label, 0) + count
    return Bm4Measurement(
        source=name,
        draft_seconds=seconds.get("dflash_draft"),
        router_seconds=seconds.get("route_ahead_router"),
        verify_seconds=seconds.get("target_verify"),
        num_rounds=counts.get("dflash_draft"),
        num_expert_copies=counts.get(EXPERT_COPY_RANGE),
        captured_ranges=tuple(sorted(seconds)),
    )


def _from_copies(
    name: str, lines: list[dict[str, str]], kind_column: str, megabytes_column: str
) -> Bm4Measurement:
    total = None
    for index, line in enumerate(lines, start=2):
        if _HOST_TO_DEVICE in line[kind_column]:
            megabytes = _bounded(line[megabytes_column], f"{megabytes_column} in line {index} of {name!r}")
            total = (total or 0.0) + megabytes * MB
    if total is None:
        raise InputError(f"{name!r} has no {_HOST_TO_DEVICE} line; give a copy table with one")
    return Bm4Measurement(source=name, total_h2d_bytes=total)


def _read_table(path: str | os.PathLike[str]) -> tuple[list[str], list[dict[str, str]]]:
    text = read_text(path, "summary table")
    try:
        reader = csv.DictReader(io.StringIO(text), strict=True)
        header = list(reader.fieldnames or [])
        lines: list[Mapping[str | None, object]] = list(reader)
    except csv.Error as error:
        raise InputError(f"{os.fspath(path)!r} is not CSV: {error}; repair the file") from error
    if len(set(header)) != len(header):
        raise InputError(f"{os.fspath(path)!r} names a column twice; repair its first line")
    for index, line in enumerate(lines, start=2):
        if None in line or None in line.values():
            raise InputError(
                f"line {index} of {os.fspath(path)!r} does not have {len(header)} columns; repair it"
            )
    return header, [{str(column): str(value) for column, value in line.items()} for line in lines]


def _bounded(text: str, what: str) -> float:
    value = number_from_text(text, what)
    if not 0 <= value <= _MAX_COUNT:
        raise InputError(f"{what} is {value:g}; give a number in [0, {_MAX_COUNT:g}]")
    return value
