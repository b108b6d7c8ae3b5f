"""Series of a measurement file as points of curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hideaway.calibrate.work import Datum, Work
from hideaway.sim.inputs.measurements import Measurement
from hideaway.sim.inputs.profiles import ALL_PARAMETERS


def point(
    curve: str,
    series: Measurement,
    work: Work,
    features: Mapping[str, float],
    reference: Measurement | None = None,
) -> Datum:
    """Return a series as a point of a curve; with a reference, as the ratio to it."""
    return Datum(
        curve=curve,
        axes=series.axes,
        samples=series.samples_seconds,
        started=series.started_seconds,
        reference=() if reference is None else reference.samples_seconds,
        work=work,
        features=features,
    )


def number(series: Measurement, axis: str, default: float = 0.0) -> float:
    """Return the value of a numeric axis."""
    value = series.axes.get(axis, default)
    return float(value) if isinstance(value, int | float) else default


def rate_limits(parameter: str) -> tuple[float, float]:
    """Return the least and greatest inverse of a rate that a profile may hold."""
    kind = ALL_PARAMETERS[parameter]
    return 1.0 / kind.maximum, 1.0 / kind.minimum


def single(parameters: Iterable[str]) -> dict[str, dict[str, float]]:
    """Return outputs in which each parameter is the unknown of its own name."""
    return {name: {name: 1.0} for name in parameters}
