"""Arrival traces in CSV files, told apart by the names in their first line.

- ours: `arrival_seconds,input_tokens,output_tokens`, or without the first for lengths only;
- Azure (Azure/AzurePublicDataset, LLM inference traces 2023 and 2024): `TIMESTAMP,ContextTokens,GeneratedTokens`;
- BurstGPT (HPMLL/BurstGPT): `Timestamp` in seconds, `Request tokens`, `Response tokens`, among others.

JSON formats are in `json_formats.py`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.arrivals.source import MAX_TOKENS, RawRequests
from hideaway.sim.inputs.plain_numbers import number_from_text, whole_number_from_text

_Parse = Callable[[str, str], float]


@dataclass(frozen=True, slots=True)
class _CsvFormat:
    """Names of the columns of one public format and how its time is written."""

    name: str
    time_column: str | None
    input_column: str
    output_column: str
    parse_time: _Parse

    def columns(self) -> tuple[str, ...]:
        """Return the columns that must be there, time first."""
        lengths = (self.input_column, self.output_column)
        return lengths if self.time_column is None else (self.time_column, *lengths)


def _seconds_of_timestamp(text: str, what: str) -> float:
    """Return seconds since 1970 of a date and time; without a zone it is taken as UTC. Needs microseconds at most."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InputError(
            f"{what} is {text[:60]!r}; give a date and time such as 2023-11-16 18:17:03.9799600"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()


_FORMATS = (
    _CsvFormat("hideaway", "arrival_seconds", "input_tokens", "output_tokens", number_from_text),
    _CsvFormat("Azure", "TIMESTAMP", "ContextTokens", "GeneratedTokens", _seconds_of_timestamp),
    _CsvFormat("BurstGPT", "Timestamp", "Request tokens", "Response tokens", number_from_text),
    _CsvFormat("hideaway lengths", None, "input_tokens", "output_tokens", number_from_text),
)


def requests_from_csv(text: str, what: str) -> RawRequests:
    """Return the requests in the text of a CSV file; `what` names the file in errors.

    Raises
    ------
    InputError
        The first line is of no known format, or a line does not hold what it should.
    """
    reader = csv.reader(io.StringIO(text))
    try:
        header = [column.strip() for column in next(reader, [])]
        layout = _layout(header, what)
        places = [header.index(column) for column in layout.columns()]
        times: list[float] = []
        inputs: list[int] = []
        outputs: list[int] = []
        for row in reader:
            if row:
                _read_row(
                    row, places, layout, f"of line {reader.line_num} of {what}", (times, inputs, outputs)
                )
    except csv.Error as error:
        raise InputError(f"{what} is not CSV: {error}; repair the file") from error
    return RawRequests(layout.name, times if layout.time_column is not None else None, inputs, outputs)


def _layout(header: list[str], what: str) -> _CsvFormat:
    for layout in _FORMATS:
        if all(column in header for column in layout.columns()):
            return layout
    known = "; ".join(",".join(layout.columns()) for layout in _FORMATS)
    shown = ",".join(header)[:80]
    raise InputError(f"{what} starts with columns {shown!r}; give one of: {known}")


def _read_row(
    row: list[str],
    places: list[int],
    layout: _CsvFormat,
    where: str,
    columns: tuple[list[float], list[int], list[int]],
) -> None:
    """Append one row to the columns."""
    if len(row) <= max(places):
        raise InputError(f"a row {where} has {len(row)} fields; give every column of the first line")
    times, inputs, outputs = columns
    if layout.time_column is not None:
        times.append(layout.parse_time(row[places[0]], f"{layout.time_column} {where}"))
    inputs.append(whole_number_from_text(row[places[-2]], f"{layout.input_column} {where}", MAX_TOKENS))
    outputs.append(whole_number_from_text(row[places[-1]], f"{layout.output_column} {where}", MAX_TOKENS))
