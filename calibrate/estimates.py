"""Profile parameters from a fitted family: value, standard error, interval, validity, and what was left undecided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hideaway.calibrate.family import FamilyFit
from hideaway.calibrate.point_samples import Floats
from hideaway.calibrate.work import INVERSE_RATE, Datum
from hideaway.sim.inputs.measurements import AxisValue
from hideaway.sim.inputs.profiles import ALL_PARAMETERS

Flags = npt.NDArray[np.bool_]
Validity = Mapping[str, Mapping[str, tuple[AxisValue, ...]]]
"""Curve to axis to (least, greatest), or to all values of an axis of words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One parameter as measured, in its own unit.

    Parameters
    ----------
    standard_error, low, high : float or None
        None where the samples do not tell; the interval holds the value with 95 % confidence.
    residual_spread : float
        Robust relative spread of its curves' points about the model.
    at_bound : bool
        It stands at a physical limit: the model wants to go further than is possible.
    notes : tuple of str
        What a reader must know to use it.
    """

    name: str
    value: float
    standard_error: float | None
    low: float | None
    high: float | None
    residual_spread: float
    at_bound: bool
    validity: Validity
    num_points: int
    num_samples: int
    method: str
    notes: tuple[str, ...]

    @property
    def unit(self) -> str:
        """Its unit."""
        return ALL_PARAMETERS[self.name].unit

    def source(self, shape: str) -> str:
        """Return what a profile says about where it comes from."""
        curves = ", ".join(self.validity)
        text = f"fitted by hideaway calibrate to {self.num_points} points ({self.num_samples} samples) of {curves}"
        text += f" ({shape}); points scatter by {100 * self.residual_spread:.2g} % about the model"
        if self.low is not None and self.high is not None:
            text += f"; 95 % interval {self.low:.4g} to {self.high:.4g} ({self.method})"
        return "; ".join((text, *self.notes))


def estimates_of(fit: FamilyFit) -> tuple[dict[str, Estimate], dict[str, str]]:
    """Return the parameters that a family determines, and why it does not determine others."""
    found: dict[str, Estimate] = {}
    missing: dict[str, str] = {}
    pays = fit.family.design.pays()
    place = {unknown.name: index for index, unknown in enumerate(fit.family.unknowns)}
    for name, weights in fit.family.outputs.items():
        parts = [place[part] for part in weights]
        if not pays[:, parts].any():
            continue
        if fit.family.unknowns[parts[0]].kind == INVERSE_RATE and parts[0] in fit.solved.undetermined:
            missing[name] = f"no point of {', '.join(_curves(fit, pays, parts))} is bound by it"
            continue
        found[name] = _estimate(fit, name, pays, parts, np.array(list(weights.values())))
    return found, missing


def _estimate(fit: FamilyFit, name: str, pays: Flags, parts: list[int], weights: Floats) -> Estimate:
    solved, unknowns = fit.solved, fit.family.unknowns
    value = float(weights @ solved.values[parts])
    variance = float(weights @ fit.covariance[np.ix_(parts, parts)] @ weights)
    error: float | None = max(0.0, variance) ** 0.5
    bound = solved.at_bound[parts[0]] if len(parts) == 1 else all(solved.at_bound[part] for part in parts)
    if len(parts) == 1 and parts[0] in solved.undetermined:
        error, bound = None, True
    if not np.isfinite(fit.multiplier):
        error = None
    low = high = None
    if error is not None:
        low, high = value - fit.multiplier * error, value + fit.multiplier * error
    if unknowns[parts[0]].kind == INVERSE_RATE:
        value, error, low, high = _as_rate(value, error, low, high)
    kind = ALL_PARAMETERS[name]
    curves = _curves(fit, pays, parts)
    data = [datum for datum in fit.family.data if datum.curve in curves]
    return Estimate(
        name=name,
        value=float(np.clip(value, kind.minimum, kind.maximum)),
        standard_error=error,
        low=None if low is None else max(low, kind.minimum),
        high=None if high is None else min(high, kind.maximum),
        residual_spread=max(fit.spread(curve) for curve in curves),
        at_bound=bool(bound),
        validity={curve: validity_of([datum for datum in data if datum.curve == curve]) for curve in curves},
        num_points=len(data),
        num_samples=sum(len(datum.samples) for datum in data),
        method=fit.method,
        notes=_notes(fit, name, pays, parts),
    )


def _as_rate(
    value: float, error: float | None, low: float | None, high: float | None
) -> tuple[float, float | None, float | None, float | None]:
    """Return a rate from its inverse; the ends of the interval change places."""
    if error is None or low is None or high is None:
        return 1.0 / value, None, None, None
    return 1.0 / value, error / value**2, 1.0 / high, 1.0 / low if low > 0 else float("inf")


def _curves(fit: FamilyFit, pays: Flags, parts: Sequence[int]) -> tuple[str, ...]:
    """Return the curves whose points pay for any of these unknowns."""
    return tuple(
        dict.fromkeys(
            datum.curve for row, datum in enumerate(fit.family.data) if any(pays[row, part] for part in parts)
        )
    )


def _notes(fit: FamilyFit, name: str, pays: Flags, parts: list[int]) -> tuple[str, ...]:
    notes = []
    if name in fit.family.remarks:
        notes.append(fit.family.remarks[name])
    names = [fit.family.unknowns[part].name for part in parts]
    for part, index in zip(names, parts, strict=True):
        if index in fit.solved.undetermined:
            said = "cannot be told from the rest here" if pays[:, index].any() else "was not measured"
            notes.append(f"{part} {said} and is taken as 0")
    notes += [
        f"{part} is at its bound"
        for part, index in zip(names, parts, strict=True)
        if fit.solved.at_bound[index] and len(parts) > 1
    ]
    for one, other, correlation in fit.inseparable():
        if (one in names) != (other in names):
            notes.append(
                f"hardly told apart from {other if one in names else one} (correlation {correlation:.3f})"
            )
    if fit.solved.degrees <= 0:
        notes.append("as many unknowns as points: how well the model fits cannot be told")
    if not fit.solved.converged:
        notes.append("the fit did not converge")
    return tuple(notes)


def validity_of(data: Sequence[Datum]) -> dict[str, tuple[AxisValue, ...]]:
    """Return the ranges of the axes over which points were measured."""
    found: dict[str, tuple[AxisValue, ...]] = {}
    for axis in dict.fromkeys(axis for datum in data for axis in datum.axes):
        values = [datum.axes[axis] for datum in data if axis in datum.axes]
        if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
            numbers = [float(value) for value in values]
            found[axis] = (min(numbers), max(numbers))
        else:
            found[axis] = tuple(dict.fromkeys(values))
    return found
