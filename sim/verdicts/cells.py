"""Rows judged cell by cell: which baselines are there, which are missing, blocked or malformed.

Repeats of a cell are judged apart, since a matrix holds one row of each baseline.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hideaway.sim.contract import UNAVAILABLE_CAPACITY, aggregate_result_matrices, evaluate_matrix
from hideaway.sim.contract.metric_names import ordered_baselines


@dataclass(frozen=True, slots=True, kw_only=True)
class CellVerdict:
    """One cell of one file: `complete` when every required baseline is there and well formed."""

    source: str
    model: str
    block_size: int
    concurrency: int
    repeat: int
    complete: bool
    present: tuple[str, ...]
    missing: tuple[str, ...]
    blocked: tuple[str, ...]
    invalid: tuple[str, ...]
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, tuples as lists."""
        fields = dataclasses.asdict(self)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}


def judge_rows(
    rows: Sequence[Mapping[str, Any]], source: str, allow_blocked: Sequence[str] = ()
) -> list[CellVerdict]:
    """Return a verdict for every (repeat, model, block size, concurrency) of checked rows, in that order.

    A B3 that does not fit on the device (UNAVAILABLE_CAPACITY) counts as there.

    Raises
    ------
    InputError
        A cell has one baseline twice in one repeat.
    """
    verdicts: list[CellVerdict] = []
    for repeat in sorted({row["repeat"] for row in rows}):
        matrices = aggregate_result_matrices([row for row in rows if row["repeat"] == repeat])
        for (model, block_size, concurrency), matrix in sorted(matrices.items()):
            allowed = [*allow_blocked]
            if matrix.get("B3", {}).get("status") == UNAVAILABLE_CAPACITY:
                allowed.append("B3")
            complete, detail = evaluate_matrix(matrix, allowed)
            verdicts.append(
                CellVerdict(
                    source=source,
                    model=model,
                    block_size=block_size,
                    concurrency=concurrency,
                    repeat=repeat,
                    complete=complete,
                    present=tuple(ordered_baselines(detail["present"])),
                    missing=tuple(detail["missing"]),
                    blocked=tuple(detail["blocked"]),
                    invalid=tuple(detail["invalid"]),
                    warnings=_warnings(matrix),
                )
            )
    return verdicts


def _warnings(matrix: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """Return what a row says about itself, and what its own figures make uninformative."""
    found: list[str] = []
    for baseline in ordered_baselines(matrix):
        row = matrix[baseline]
        stated = row.get("warnings")
        found += (
            [f"{baseline}: {text}" for text in stated if isinstance(text, str)]
            if isinstance(stated, list)
            else []
        )
        if (
            row.get("acceptance_length_a") == 1.0
            and row["block_size"] > 1
            and baseline not in {"B0", "B3-AR"}
        ):
            found.append(f"{baseline}: no drafted token was accepted, so its coverage and waste say nothing")
    return tuple(found)
