"""Points that no fit has seen and that the fitted parts foretell: the check on the sum of the parts."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from hideaway.calibrate.design import Design
from hideaway.calibrate.family import FamilyFit
from hideaway.calibrate.work import Datum
from hideaway.sim.inputs.measurements import AxisValue, Measurement


@dataclass(frozen=True, slots=True)
class Check:
    """One point, measured and foretold."""

    curve: str
    axes: Mapping[str, AxisValue]
    measured_seconds: float
    foretold_seconds: float

    @classmethod
    def of(cls, curve: str, series: Measurement, foretold_seconds: float) -> Check:
        """Return the check of a series."""
        return cls(curve, series.axes, statistics.median(series.samples_seconds), foretold_seconds)

    @property
    def error(self) -> float:
        """Relative error of what was foretold."""
        return self.foretold_seconds / self.measured_seconds - 1.0


def checks_of(fit: FamilyFit, data: tuple[Datum, ...]) -> tuple[Check, ...]:
    """Return what a family's unknowns foretell of points that it was not fitted to."""
    if not data:
        return ()
    design = Design([datum.work for datum in data], fit.family.unknowns, fit.family.serial)
    seconds = design.seconds(fit.solved.values)
    return tuple(
        Check(datum.curve, datum.axes, datum.observed, float(each))
        for datum, each in zip(data, seconds, strict=True)
    )
