"""Rows judged together: is a matrix complete and well formed, which rows belong to one cell, what is missing.

A matrix is a mapping from baseline to row; a cell is one (model, block size, concurrency). Next:
`hideaway.sim.contract.writers` puts matrices into files, `hideaway.sim.verdicts` judges the gates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hideaway.sim.contract.metric_names import REQUIRED_BASELINES, REQUIRED_METRICS, UNAVAILABLE_CAPACITY
from hideaway.sim.errors import InputError
from hideaway.sim.gates import summarise_row
from hideaway.sim.number_checks import finite_number, shown, whole_number

CellKey = tuple[str, int, int]
Matrix = dict[str, Mapping[str, Any]]


def validate_result_matrix(rows: Mapping[str, Mapping[str, object]]) -> None:
    """Do nothing if every required baseline has a row with every required metric.

    B3 needs no metrics when its status is UNAVAILABLE_CAPACITY; with any other status it does.

    Raises
    ------
    InputError
        `missing baselines: …`, or naming the baseline and the metric that is missing, boolean, NaN, infinite,
        negative or not a number.
    """
    _check_mapping(rows)
    missing = [baseline for baseline in REQUIRED_BASELINES if baseline not in rows]
    if missing:
        raise InputError(
            f"missing baselines: {', '.join(missing)}; a matrix has {', '.join(REQUIRED_BASELINES)}"
        )
    for baseline in REQUIRED_BASELINES:
        row = rows[baseline]
        if baseline == "B3" and isinstance(row, Mapping) and row.get("status") == UNAVAILABLE_CAPACITY:
            continue
        _check_metrics(baseline, row)


def aggregate_result_matrices(rows: Sequence[Mapping[str, Any]]) -> dict[CellKey, Matrix]:
    """Return `{(model, block_size, concurrency): {baseline: row}}`, cells in order of first appearance.

    Raises
    ------
    InputError
        Two rows of a cell have one baseline (`duplicate baseline`), or a row lacks one of these keys.
    """
    matrices: dict[CellKey, Matrix] = {}
    for index, row in enumerate(rows):
        for key in ("model", "block_size", "concurrency", "baseline"):
            if not isinstance(row, Mapping) or key not in row:
                raise InputError(f"row {index} has no {key!r}; give rows made by make_observation_row")
        cell = (
            str(row["model"]),
            whole_number(f"row {index}: block_size", row["block_size"], minimum=1),
            whole_number(f"row {index}: concurrency", row["concurrency"], minimum=1),
        )
        matrix = matrices.setdefault(cell, {})
        baseline = str(row["baseline"])
        if baseline in matrix:
            raise InputError(
                f"duplicate baseline {baseline} for {cell}; keep one repeat of each baseline per matrix"
            )
        matrix[baseline] = row
    return matrices


def evaluate_matrix(
    rows: Mapping[str, Mapping[str, Any]], allow_blocked: Sequence[str] = ()
) -> tuple[bool, dict[str, Any]]:
    """Return whether one cell is complete, and why.

    A required baseline counts when its row has every metric, or has a status and is in `allow_blocked`. The
    detail holds the lists `present` (every baseline given), `blocked` (a status instead of metrics),
    `missing` and `invalid`, and the mapping `bm1` from baseline to `summarise_row` where a row has both
    times.
    """
    _check_mapping(rows)
    detail: dict[str, Any] = {"present": sorted(rows), "blocked": [], "missing": [], "invalid": [], "bm1": {}}
    complete = True
    for baseline in REQUIRED_BASELINES:
        if baseline not in rows:
            detail["missing"].append(baseline)
            complete = False
            continue
        row = rows[baseline]
        if isinstance(row, Mapping) and row.get("status"):
            detail["blocked"].append(baseline)
            complete = complete and baseline in allow_blocked
            continue
        if not _is_well_formed(baseline, row, detail["bm1"]):
            detail["invalid"].append(baseline)
            complete = False
    return complete, detail


def _is_well_formed(baseline: str, row: Mapping[str, Any], bm1: dict[str, Any]) -> bool:
    """Return whether the row has good metrics and good BM1 terms, if any; adds its summary to `bm1`."""
    try:
        if isinstance(row, Mapping) and "t_router_seconds" in row and "t_verify_seconds" in row:
            bm1[baseline] = summarise_row(row)
        _check_metrics(baseline, row)
    except InputError:
        return False
    return True


def _check_mapping(rows: object) -> None:
    if not isinstance(rows, Mapping):
        raise InputError(
            f"a matrix is a mapping from baseline to row but {shown(rows)} was given; group the rows first"
        )


def _check_metrics(baseline: str, row: object) -> None:
    if not isinstance(row, Mapping):
        raise InputError(
            f"{baseline} is {shown(row)} but must be a row; give a mapping from metric to number"
        )
    for metric in REQUIRED_METRICS:
        if metric not in row:
            raise InputError(f"{baseline} has no {metric}; give every required metric")
        finite_number(f"{baseline}.{metric}", row[metric])
