"""Rows and matrices as files: JSON that loads again, CSV for a spreadsheet, Markdown for people.

Every baseline of every cell is written, whatever its status, in one order: cells by model, block size and
concurrency, baselines in reading order, the required metrics first and then any further numbers by name.
Every file is replaced as a whole.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from hideaway.sim.contract.matrix import CellKey
from hideaway.sim.contract.metric_names import (
    IDENTITY_KEYS,
    REQUIRED_BASELINES,
    REQUIRED_METRICS,
    ordered_baselines,
)
from hideaway.sim.contract.rows import Row, checked_row
from hideaway.sim.files import write_json_atomically, write_text_atomically
from hideaway.sim.number_checks import plain_value

Matrices = Mapping[CellKey, Mapping[str, Mapping[str, Any]]]


def write_rows_json(path: str | os.PathLike[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as the JSON list that `load_observations` reads; raises InputError for a malformed row."""
    write_json_atomically(path, [checked_row(row, f"row {index}") for index, row in enumerate(rows)])


def write_matrix_json(path: str | os.PathLike[str], matrices: Matrices) -> None:
    """Write `{"model|B16|c8": {baseline: row}}`, the form the public experiment writes."""
    document: dict[str, dict[str, object]] = {}
    for cell, baseline, row in _rows_in_order(matrices):
        document.setdefault(_cell_name(cell), {})[baseline] = row
    write_json_atomically(path, document)


def write_matrix_csv(path: str | os.PathLike[str], matrices: Matrices) -> None:
    """Write one line a row: identity, status, required metrics, further numbers. Floats keep every digit."""
    numbers = [*REQUIRED_METRICS, *_further_numbers(matrices)]
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["model", "draft", "block_size", "concurrency", "baseline", "repeat", "status", *numbers])
    for (model, block_size, concurrency), baseline, row in _rows_in_order(matrices):
        identity = [model, row.get("draft", ""), block_size, concurrency, baseline, row.get("repeat", "")]
        status = "" if row.get("status") is None else row["status"]
        writer.writerow([*identity, status, *(_exact(row.get(name)) for name in numbers)])
    write_text_atomically(path, text.getvalue())


def write_matrix_markdown(path: str | os.PathLike[str], matrices: Matrices) -> None:
    """Write one table a cell, six significant digits; a required baseline without a row is named below it."""
    numbers = [*REQUIRED_METRICS, *_further_numbers(matrices)]
    lines = ["# Result matrix"]
    shown_cells: dict[CellKey, list[str]] = {}
    for cell, baseline, row in _rows_in_order(matrices):
        status = "" if row.get("status") is None else str(row["status"])
        values = [baseline, status, *(_rounded(row.get(name)) for name in numbers)]
        shown_cells.setdefault(cell, []).append(_table_line(values))
    for cell, table in shown_cells.items():
        model, block_size, concurrency = cell
        lines += ["", f"## {_one_line(model)}, block size {block_size}, concurrency {concurrency}", ""]
        lines += [
            _table_line(["baseline", "status", *numbers]),
            _table_line(["---"] * (len(numbers) + 2)),
            *table,
        ]
        missing = [baseline for baseline in REQUIRED_BASELINES if baseline not in matrices[cell]]
        if missing:
            lines += ["", f"Missing baselines: {', '.join(missing)}."]
    write_text_atomically(path, "\n".join(lines) + "\n")


def _rows_in_order(matrices: Matrices) -> Iterator[tuple[CellKey, str, Row]]:
    for cell in sorted(matrices):
        for baseline in ordered_baselines(matrices[cell]):
            row = plain_value(f"{_cell_name(cell)}.{baseline}", matrices[cell][baseline])
            yield cell, baseline, cast(Row, row)


def _further_numbers(matrices: Matrices) -> list[str]:
    """Return the names of numbers beyond the contract that any row carries, by name."""
    names: set[str] = set()
    for _, _, row in _rows_in_order(matrices):
        names |= {name for name, value in row.items() if _is_number(value)}
    return sorted(names - {*REQUIRED_METRICS, *IDENTITY_KEYS})


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _cell_name(cell: CellKey) -> str:
    model, block_size, concurrency = cell
    return f"{model}|B{block_size}|c{concurrency}"


def _exact(value: object) -> str:
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


def _rounded(value: object) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _table_line(values: Sequence[str]) -> str:
    return "| " + " | ".join(_one_line(value) for value in values) + " |"


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
