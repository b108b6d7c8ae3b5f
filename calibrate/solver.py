"""Unknowns of a family of curves, found from medians by a robust fit of relative residuals.

The residual of a point is the logarithm of predicted over observed seconds, in units of its error: the error of the
median itself, and a misfit that all points share where they scatter about the model by more than their medians'
errors explain (random effects, as in DerSimonian and Laird, Controlled Clinical Trials 7, 1986; the misfit is found by
Huber's proposal 2, so that an outlying point does not make it). Next: `family.py`, which adds intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.optimize import brentq, nnls

from hideaway.calibrate.design import Design
from hideaway.calibrate.gauss_newton import refine
from hideaway.calibrate.least_squares import (
    HUBER,
    HUBER_EFFICIENCY,
    Floats,
    Minimum,
    inverse_information,
    minimise,
)
from hideaway.calibrate.work import SHARE, Unknown

_OfValues = Callable[[Floats], Floats]
BOUND_SHARE = 1e-4
"""An unknown that makes up less of every point's time than this is at its lower bound."""
_MISFIT_CONFIDENCE = 0.95
_CLIPPED_VARIANCE = 0.7101645
"""E[min(z², HUBER²)] of a normal z."""
_MISFIT_ROUNDS = 4
_LEAST_ERROR = 1e-6
_SECOND_START = 0.5
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Solved:
    """Unknowns and what is known of their errors.

    Parameters
    ----------
    values : Floats
        (num_unknowns,).
    covariance : Floats
        (num_unknowns, num_unknowns); rows of undetermined unknowns are zero.
    degrees : int
        Points less determined unknowns.
    at_bound : tuple of bool
        Which unknowns stand at a physical limit.
    undetermined : tuple of int
        Unknowns about which the points say nothing that others could not take over; held at their least value.
    residuals : Floats
        (num_points,) logarithms of predicted over observed.
    misfit : float
        Relative scatter of the points about the model beyond the errors of their medians.
    errors : Floats
        (num_points,) relative errors with the misfit.
    """

    values: Floats
    covariance: Floats
    degrees: int
    at_bound: tuple[bool, ...]
    undetermined: tuple[int, ...]
    residuals: Floats
    misfit: float
    errors: Floats
    converged: bool


def solve(
    design: Design,
    unknowns: Sequence[Unknown],
    observed: Floats,
    errors: Floats,
    *,
    start: Floats | None = None,
    misfit: float | None = None,
) -> Solved:
    """Return the unknowns that explain `observed`.

    Parameters
    ----------
    observed : Floats
        (num_points,) seconds, above 0.
    errors : Floats
        (num_points,) relative standard errors of them; 0 where they are not known.
    start : Floats, optional
        Where to begin; otherwise at several places.
    misfit : float, optional
        Take it as known.
    """
    problem = _Problem(design, unknowns, observed)
    found = 0.0 if misfit is None else misfit
    scale = _total_errors(errors, found)
    minimum = problem.best(scale, None if start is None else start / problem.unit)
    degrees = len(observed) - len(problem.free)
    rounds = _MISFIT_ROUNDS if misfit is None and degrees > 0 else 0
    for _ in range(rounds):
        earlier, found = found, misfit_of(minimum.residuals * scale, errors, degrees)
        if abs(found - earlier) <= 1e-3 * max(found, _LEAST_ERROR):
            break
        scale = _total_errors(errors, found)
        minimum = problem.best(scale, problem.whole(minimum.values))
    return problem.solved(minimum, scale, found)


def misfit_of(residuals: Floats, errors: Floats, degrees: int) -> float:
    """Return the relative scatter beyond `errors`, 0 where these explain the residuals.

    Parameters
    ----------
    residuals, errors : Floats
        (num_points,), relative.
    degrees : int
        Points less unknowns, at least 1.
    """
    known = np.maximum(errors, _LEAST_ERROR)
    if float(((residuals / known) ** 2).sum()) <= stats.chi2.ppf(_MISFIT_CONFIDENCE, degrees):
        return 0.0

    def surplus(scatter: float) -> float:
        ratios = residuals / np.sqrt(known**2 + scatter**2)
        return float(np.minimum(ratios**2, HUBER**2).sum() - degrees * _CLIPPED_VARIANCE)

    most = 10.0 * float(np.abs(residuals).max()) + _LEAST_ERROR
    if surplus(0.0) <= 0.0 or surplus(most) >= 0.0:
        return 0.0
    return float(brentq(surplus, 0.0, most, rtol=1e-6))


def _total_errors(errors: Floats, misfit: float) -> Floats:
    total = np.sqrt(errors**2 + misfit**2)
    return np.maximum(total, _LEAST_ERROR) if total.max() > 0.0 else np.full(len(errors), 1.0)


class _Problem:
    """A design in units in which every unknown is a share of a point's time."""

    def __init__(self, design: Design, unknowns: Sequence[Unknown], observed: Floats) -> None:
        self.design, self.unknowns, self.observed = design, unknowns, observed
        shares = design.summed() / observed[:, None]
        most = shares.max(axis=0)
        serial = np.array([unknown.kind == SHARE for unknown in unknowns])
        self.unit = np.where(serial | (most <= 0.0), 1.0, 1.0 / np.where(most > 0.0, most, 1.0))
        costs = [index for index in range(len(unknowns)) if not serial[index]]
        _, lost = inverse_information(shares[:, costs] * self.unit[costs])
        self.lost = [costs[index] for index in lost]
        self.free = [index for index in range(len(unknowns)) if index not in self.lost]
        self.lower = np.array([unknown.lower for unknown in unknowns]) / self.unit
        self.upper = np.array([unknown.upper for unknown in unknowns]) / self.unit
        self._shares = shares * self.unit

    def whole(self, values: Floats) -> Floats:
        """Return all unknowns of the free ones' values; the others at their least."""
        found = np.where(np.isfinite(self.lower), self.lower, 0.0)
        found[self.free] = values
        return found

    def best(self, scale: Floats, start: Floats | None) -> Minimum:
        """Return the minimum near `start`, or the best from several starts."""
        residuals, jacobian = self._functions(scale)
        lower, upper = self.lower[self.free], self.upper[self.free]
        if start is not None:
            return refine(residuals, jacobian, start[self.free], lower, upper)
        near = [refine(residuals, jacobian, each, lower, upper) for each in self._starts()]
        best = min(near, key=lambda minimum: minimum.loss)
        exact = minimise(
            residuals,
            best.values,
            jacobian=jacobian,
            lower=lower,
            upper=upper,
            huber=True,
            tolerance=_TOLERANCE,
        )
        return exact if exact.loss <= best.loss else best

    def _functions(self, scale: Floats) -> tuple[_OfValues, _OfValues]:
        """Return residuals and their Jacobian as functions of the free unknowns."""

        def residuals(values: Floats) -> Floats:
            seconds = self.design.seconds(self.whole(values) * self.unit)
            return np.asarray(np.log(np.maximum(seconds / self.observed, 1e-12)) / scale)

        def jacobian(values: Floats) -> Floats:
            every = self.whole(values) * self.unit
            seconds = np.maximum(self.design.seconds(every), 1e-12 * self.observed)
            slopes = self.design.derivatives(every) * self.unit
            return np.asarray((slopes / (seconds * scale)[:, None])[:, self.free])

        return residuals, jacobian

    def _starts(self) -> list[Floats]:
        """Return starts: with reading and computing added up, and the same with half as much of everything."""
        target = np.maximum((self.observed - self.design.constant) / self.observed, 0.0)
        first, _ = nnls(self._shares[:, self.free], target)
        first = np.maximum(first, 1e-3)
        starts = [first]
        if self.design.has_rooflines:
            starts += [np.maximum(_SECOND_START * first, 1e-3), np.full(len(first), _SECOND_START)]
        return [np.clip(each, self.lower[self.free], self.upper[self.free]) for each in starts]

    def solved(self, minimum: Minimum, scale: Floats, misfit: float) -> Solved:
        """Return the solution with its covariance; unknowns at a bound are left out of the others' errors."""
        count = len(self.unknowns)
        low, high = self.lower[self.free], self.upper[self.free]
        near = (minimum.values - low < BOUND_SHARE) | (high - minimum.values < BOUND_SHARE)
        inner = [place for place in range(len(self.free)) if not near[place]]
        whole, lost = inverse_information(minimum.jacobian)
        covariance = np.zeros((count, count))
        for place in np.flatnonzero(near):
            covariance[self.free[place], self.free[place]] = whole[place, place]
        if inner:
            block, inner_lost = inverse_information(minimum.jacobian[:, inner])
            lost = sorted(
                {*(place for place in lost if near[place]), *(inner[place] for place in inner_lost)}
            )
            places = [self.free[place] for place in inner]
            covariance[np.ix_(places, places)] = block
        covariance *= np.outer(self.unit, self.unit) / HUBER_EFFICIENCY
        values = np.where(minimum.values - low < BOUND_SHARE, low, np.minimum(minimum.values, high))
        undetermined = sorted([*self.lost, *(self.free[place] for place in lost)])
        at_bound = [False] * count
        for place in np.flatnonzero(near):
            at_bound[self.free[place]] = self.free[place] not in undetermined
        return Solved(
            values=self.whole(values) * self.unit,
            covariance=covariance,
            degrees=len(self.observed) - (count - len(undetermined)),
            at_bound=tuple(at_bound),
            undetermined=tuple(undetermined),
            residuals=minimum.residuals * scale,
            misfit=misfit,
            errors=scale,
            converged=minimum.converged,
        )
