"""Acceptance files: recordings of lengths, vectors of rates by position, and the published vectors.

A recording is a CSV with a column `acceptance_length` or a JSON list of whole numbers. A vector is a JSON list of
conditional rates, a JSON object with one key `conditional` or `cumulative`, or a CSV with columns `position` and
`accept_rate` and optionally `rate_kind` (`conditional`, the default, or `cumulative`).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from hideaway.sim.errors import InputError
from hideaway.sim.files import read_text
from hideaway.sim.inputs.acceptance.constant import MAX_LENGTH
from hideaway.sim.inputs.acceptance.model import check_probability
from hideaway.sim.inputs.acceptance.positions import MAX_POSITIONS, conditional_from_cumulative
from hideaway.sim.inputs.plain_numbers import (
    json_from_text,
    number,
    number_from_text,
    whole_number,
    whole_number_from_text,
)

DATA_FOLDER = Path(__file__).parent.parent / "data" / "acceptance"


@dataclass(frozen=True, slots=True)
class PublishedVector:
    """Conditional rates by position of one published measurement, and the sentence that cites it."""

    conditional_rates: tuple[float, ...]
    origin: str


def read_recording(path: str) -> tuple[int, ...]:
    """Return the acceptance lengths recorded in a file.

    Raises
    ------
    InputError
        The file cannot be read or holds anything but whole lengths of at least 1.
    """
    what = f"acceptance recording {path!r}"
    text = read_text(path, "acceptance recording")
    if text.lstrip().startswith("["):
        values = json_from_text(text, what)
        if not isinstance(values, list):
            raise InputError(f"{what} is not a JSON list; give a list of whole numbers")
        lengths = [
            whole_number(value, f"round {row} of {what}", MAX_LENGTH) for row, value in enumerate(values)
        ]
    else:
        rows = _csv_rows(text, ("acceptance_length",), what)
        lengths = [
            whole_number_from_text(
                row["acceptance_length"], f"acceptance_length of line {line} of {what}", MAX_LENGTH
            )
            for line, row in rows
        ]
    return tuple(lengths)


def read_vector(path: str) -> tuple[float, ...]:
    """Return the conditional acceptance rates by position in a file.

    Raises
    ------
    InputError
        The file cannot be read or is not a vector of rates.
    """
    what = f"acceptance vector {path!r}"
    text = read_text(path, "acceptance vector")
    if text.lstrip().startswith(("[", "{")):
        return _vector_from_json(json_from_text(text, what), what)
    return _vector_from_rows(_csv_rows(text, ("position", "accept_rate"), what), what)


@lru_cache(maxsize=1)
def published_vectors() -> dict[str, PublishedVector]:
    """Return the published vectors that come with the package, by name."""
    path = DATA_FOLDER / "published_vectors.csv"
    rows = _csv_rows(
        read_text(path, "acceptance vectors"),
        ("name", "position", "accept_rate", "source", "note"),
        str(path),
    )
    grouped: dict[str, list[tuple[int, dict[str, str]]]] = {}
    for line, row in rows:
        grouped.setdefault(row["name"], []).append((line, row))
    return {
        name: PublishedVector(
            _vector_from_rows(members, f"acceptance vector {name}"),
            "acceptance of {model} with {method} by position on {task} ({note}), published in {source}".format(
                **members[0][1]
            ),
        )
        for name, members in grouped.items()
    }


def _vector_from_json(value: object, what: str) -> tuple[float, ...]:
    kind = "conditional"
    if isinstance(value, dict):
        if len(value) != 1 or next(iter(value)) not in ("conditional", "cumulative"):
            raise InputError(f"{what} has keys {list(value)[:5]}; give one key, conditional or cumulative")
        kind, value = next(iter(value.items()))
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_POSITIONS:
        raise InputError(f"{what} is not a list of 1 to {MAX_POSITIONS} rates; give one rate a position")
    rates = [number(rate, f"position {position} of {what}") for position, rate in enumerate(value, start=1)]
    return _conditional(rates, kind, what)


def _vector_from_rows(rows: list[tuple[int, dict[str, str]]], what: str) -> tuple[float, ...]:
    kinds = {row.get("rate_kind") or "conditional" for _, row in rows}
    if len(kinds) != 1 or not kinds <= {"conditional", "cumulative"}:
        raise InputError(
            f"{what} has rate_kind {', '.join(sorted(kinds))}; give conditional or cumulative throughout"
        )
    rates: list[float] = []
    for line, row in rows:
        position = whole_number_from_text(
            row["position"], f"position of line {line} of {what}", MAX_POSITIONS
        )
        if position != len(rates) + 1:
            raise InputError(
                f"{what} has position {position} where {len(rates) + 1} comes next; number them from 1"
            )
        rates.append(number_from_text(row["accept_rate"], f"accept_rate of line {line} of {what}"))
    return _conditional(rates, kinds.pop(), what)


def _conditional(rates: Sequence[float], kind: str, what: str) -> tuple[float, ...]:
    """Return checked conditional rates; `what` names the file in errors."""
    try:
        for position, rate in enumerate(rates, start=1):
            check_probability(rate, f"the acceptance rate of position {position}")
        return conditional_from_cumulative(rates) if kind == "cumulative" else tuple(rates)
    except InputError as error:
        raise InputError(f"{what}: {error}") from error


def _csv_rows(text: str, columns: tuple[str, ...], what: str) -> list[tuple[int, dict[str, str]]]:
    """Return (line number, row) of a CSV that has at least the columns, every one of them filled."""
    try:
        reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")))
        missing = [column for column in columns if column not in (reader.fieldnames or ())]
        if missing:
            raise InputError(f"{what} has no column {', '.join(missing)}; name the columns in the first line")
        rows = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise InputError(f"{what} is not CSV: {error}; repair the file") from error
    for line, row in rows:
        if any(row[column] is None for column in columns):
            raise InputError(f"line {line} of {what} is cut short; give every column")
    if not rows:
        raise InputError(f"{what} has no row; give at least one")
    return rows
