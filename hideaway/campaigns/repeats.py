"""What the repeats of a matrix say together: per cell and metric a mean with its 95 % interval.

Pure. A cell's mean row stands for it where the contract wants one row a cell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hideaway.campaigns.paired import Estimate, estimate
from hideaway.sim.contract.rows import Row

SHOWN_METRICS = (
    "output_tokens_per_second",
    "exposed_share",
    "exposed_seconds",
    "per_round_latency_seconds",
    "expert_cache_hit_rate",
    "moved_bytes_per_committed_token",
)
"""Compared between real and simulated."""

Place = tuple[int, int, str]
"""Block size, concurrency, baseline."""


@dataclass(frozen=True, slots=True)
class RepeatedFigure:
    """One metric of one cell.

    Attributes
    ----------
    real : Estimate
        Mean and 95 % interval over repeats; the ends are NaN where there is one repeat.
    simulated : float or None
        Of the same cell.
    """

    place: Place
    metric: str
    repeats: int
    real: Estimate
    simulated: float | None

    @property
    def relative_error(self) -> float | None:
        """Simulated over real mean, less one; None where there is no such ratio."""
        if self.simulated is None or self.real.mean == 0.0:
            return None
        return self.simulated / self.real.mean - 1.0


def place_of(row: Row) -> Place:
    """Return the cell of a row."""
    return row["block_size"], row["concurrency"], row["baseline"]


def repeated_figures(real: Sequence[Row], simulated: Sequence[Row]) -> list[RepeatedFigure]:
    """Return every shown metric of every cell, cells in the order of their first row."""
    counterparts = {place_of(row): row for row in simulated}
    figures = []
    for place in sorted({place_of(row) for row in real}, key=lambda place: place[:2]):
        rows = [row for row in real if place_of(row) == place]
        for metric in SHOWN_METRICS:
            values = [float(row[metric]) for row in rows]
            counterpart = counterparts.get(place)
            figures.append(
                RepeatedFigure(
                    place,
                    metric,
                    len(values),
                    _estimate(values),
                    None if counterpart is None else float(counterpart[metric]),
                )
            )
    return figures


def mean_rows(rows: Sequence[Row]) -> list[Row]:
    """Return one row a cell, numbers averaged over its repeats."""
    means: list[Row] = []
    for place in dict.fromkeys(place_of(row) for row in rows):
        same = [row for row in rows if place_of(row) == place]
        means.append({**_mean(same), "repeat": 0})
    return means


def _mean(rows: Sequence[Row]) -> Row:
    first = rows[0]
    averaged: Row = {}
    for key, value in first.items():
        if isinstance(value, dict):
            averaged[key] = _mean([row[key] for row in rows])
        elif isinstance(value, float):
            averaged[key] = math.fsum(row[key] for row in rows) / len(rows)
        else:
            averaged[key] = value
    return averaged


def _estimate(values: Sequence[float]) -> Estimate:
    if len(values) < 2:
        return Estimate(values[0], math.nan, math.nan)
    return estimate(values)
