"""Rows of the matrix sorted into cells: a panel a model and block size, a value a baseline and concurrency.

Pure. Repeats of one cell are averaged. A row with a status (`UNAVAILABLE_CAPACITY`) has no metrics; it is
kept as such, and so is a row whose metric is absent. Next: `hideaway.report.order`, `hideaway.report.plots`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hideaway.report.style import ordered_baselines
from hideaway.sim.errors import InputError

Row = Mapping[str, object]
NO_VALUE = "no value"


@dataclass(frozen=True, slots=True)
class Panel:
    """The cells of one model and block size.

    Attributes
    ----------
    concurrencies : tuple[int, ...]
        Ascending.
    baselines : tuple[str, ...]
        In the contract's order, unknown ones last.
    values : Mapping[tuple[str, int], tuple[float, ...]]
        By baseline and concurrency, one value a repeat.
    statuses : Mapping[tuple[str, int], str]
        Why a cell has a row but no value.
    """

    model: str
    block_size: int
    concurrencies: tuple[int, ...]
    baselines: tuple[str, ...]
    values: Mapping[tuple[str, int], tuple[float, ...]]
    statuses: Mapping[tuple[str, int], str]

    def mean(self, baseline: str, concurrency: int) -> float | None:
        """Return the mean over repeats, or None where there is no value."""
        values = self.values.get((baseline, concurrency))
        return math.fsum(values) / len(values) if values else None


def row_number(row: Row, metric: str) -> float | None:
    """Return a metric of a row, from the row itself or its cost terms; None unless a finite number >= 0."""
    value = row.get(metric)
    terms = row.get("cost_terms")
    if value is None and isinstance(terms, Mapping):
        value = terms.get(metric)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        return None
    return float(value)


def exposed_share(row: Row) -> float | None:
    """Return the row's own `exposed_share`, else exposed over round seconds; None where neither is known.

    The two differ where sequences wait for admission: a round's latency includes that wait, engine time does not.
    """
    own = row_number(row, "exposed_share")
    if own is not None:
        return own
    exposed = row_number(row, "exposed_seconds_per_round")
    whole = row_number(row, "per_round_latency_seconds")
    return None if exposed is None or not whole else exposed / whole


def panels(rows: Sequence[Row], value_of: Callable[[Row], float | None]) -> tuple[Panel, ...]:
    """Return the panels of `rows`, ordered by model and block size.

    Raises
    ------
    InputError
        A row lacks model, baseline, block_size or concurrency, or one of them is of the wrong type.
    """
    grouped: dict[tuple[str, int], list[tuple[str, int, Row]]] = {}
    for number, row in enumerate(rows, start=1):
        model, baseline = (_name(row, key, number) for key in ("model", "baseline"))
        block_size, concurrency = (_count(row, key, number) for key in ("block_size", "concurrency"))
        grouped.setdefault((model, block_size), []).append((baseline, concurrency, row))
    return tuple(_panel(*key, grouped[key], value_of) for key in sorted(grouped))


def _panel(
    model: str, block_size: int, cells: list[tuple[str, int, Row]], value_of: Callable[[Row], float | None]
) -> Panel:
    values: dict[tuple[str, int], tuple[float, ...]] = {}
    statuses: dict[tuple[str, int], str] = {}
    for baseline, concurrency, row in cells:
        key, status = (baseline, concurrency), row.get("status")
        value = None if isinstance(status, str) else value_of(row)
        if value is None:
            statuses[key] = status if isinstance(status, str) else NO_VALUE
        else:
            values[key] = (*values.get(key, ()), value)
    return Panel(
        model,
        block_size,
        tuple(sorted({concurrency for _, concurrency, _ in cells})),
        ordered_baselines({baseline for baseline, _, _ in cells}),
        values,
        {key: status for key, status in statuses.items() if key not in values},
    )


def _name(row: Row, key: str, number: int) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value:
        raise InputError(f"row {number} has {key} {value!r}; it must be a non-empty name")
    return value


def _count(row: Row, key: str, number: int) -> int:
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"row {number} has {key} {value!r}; it must be a whole number from 1")
    return value
