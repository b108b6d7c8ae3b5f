"""A family of curves that share unknowns, fitted together: values, standard errors and 95 % intervals.

Intervals are those of Student's t about the values, from the Jacobian where the samples' errors look normal and from
a bootstrap (`bootstrap.py`) where they do not. A family is made by one of the `*_family.py` files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import stats

from hideaway.calibrate.bootstrap import bootstrap_covariance
from hideaway.calibrate.design import Design
from hideaway.calibrate.point_samples import (
    MAD_TO_SIGMA,
    Floats,
    looks_normal,
    median_errors,
)
from hideaway.calibrate.solver import Solved, solve
from hideaway.calibrate.work import Datum, Unknown

CONFIDENCE = 0.95
INSEPARABLE = 0.95
"""Correlation of two estimates from which on the report says that the data hardly tell them apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Curves and what they are to determine.

    Parameters
    ----------
    unknowns : tuple of Unknown
        The most important first: where the points cannot tell two apart, the later one is held at its least value.
    outputs : mapping
        Profile parameter to the unknowns whose weighted sum it is, by weight; of a rate, the one inverse rate.
    remarks : mapping
        Profile parameter to what its source says beside the curves.
    forms : mapping
        Curve to the kind of its competing forms (`forms.py`).
    serial : str or None
        As `Design` takes it.
    always_resample : bool
        Points share samples, so that only a bootstrap gives their errors.
    """

    name: str
    data: tuple[Datum, ...]
    unknowns: tuple[Unknown, ...]
    outputs: Mapping[str, Mapping[str, float]]
    remarks: Mapping[str, str] = field(default_factory=dict)
    forms: Mapping[str, str] = field(default_factory=dict)
    serial: str | None = None
    always_resample: bool = False

    @property
    def design(self) -> Design:
        """The works of all points."""
        return Design([datum.work for datum in self.data], self.unknowns, self.serial)

    @property
    def observed(self) -> Floats:
        """Medians, (num_points,)."""
        return np.array([datum.observed for datum in self.data])


@dataclass(frozen=True, slots=True)
class FamilyFit:
    """A fitted family.

    Parameters
    ----------
    multiplier : float
        Quantile of t by which standard errors become intervals; infinite where errors are not known.
    method : str
        "jacobian", "bootstrap" or "unknown": where the errors come from.
    normal : bool
        Whether the samples' errors look normal.
    """

    family: Family
    solved: Solved
    covariance: Floats
    multiplier: float
    method: str
    normal: bool

    @property
    def predicted(self) -> Floats:
        """Seconds of every point, (num_points,)."""
        return self.family.design.seconds(self.solved.values)

    def spread(self, curve: str | None = None) -> float:
        """Return the robust relative spread of the points about the model, of one curve or all."""
        chosen = [
            residual
            for residual, datum in zip(self.solved.residuals, self.family.data, strict=True)
            if curve is None or datum.curve == curve
        ]
        return float(MAD_TO_SIGMA * np.median(np.abs(chosen)))

    def inseparable(self) -> tuple[tuple[str, str, float], ...]:
        """Return pairs of unknowns whose estimates are nearly one, with their correlation."""
        errors = np.sqrt(np.diag(self.covariance))
        found = []
        names = [unknown.name for unknown in self.family.unknowns]
        for one in range(len(names)):
            for other in range(one + 1, len(names)):
                scale = errors[one] * errors[other]
                if scale > 0 and abs(self.covariance[one, other]) > INSEPARABLE * scale:
                    found.append((names[one], names[other], float(self.covariance[one, other] / scale)))
        return tuple(found)


def fit_family(family: Family, rng: np.random.Generator) -> FamilyFit:
    """Return the fit of a family.

    Parameters
    ----------
    rng : numpy.random.Generator
        For the bootstrap.
    """
    errors = median_errors(family.data)
    design, observed = family.design, family.observed
    solved = solve(design, family.unknowns, observed, errors)
    normal = looks_normal(family.data)
    known = bool(errors.max() > 0.0)
    if not known and solved.degrees <= 0:
        zero = np.zeros_like(solved.covariance)
        return FamilyFit(family, solved, zero, float("inf"), "unknown", normal)
    covariance, method = solved.covariance, "jacobian"
    if family.always_resample or not normal:
        covariance, method = (
            bootstrap_covariance(family.data, design, family.unknowns, solved, rng),
            "bootstrap",
        )
    for place in np.flatnonzero(np.diag(covariance) == 0.0):  # every repetition stood at the same bound
        covariance[place, place] = solved.covariance[place, place]
    if solved.misfit > 0.0:
        degrees = float(max(1, solved.degrees))
    else:
        degrees = float(max(1, sum(len(datum.samples) for datum in family.data) - len(family.unknowns)))
    multiplier = float(stats.t.ppf(0.5 + CONFIDENCE / 2, degrees))
    return FamilyFit(family, solved, covariance, multiplier, method, normal)


def curve_names(data: Sequence[Datum]) -> tuple[str, ...]:
    """Return the curves in the order of their first points."""
    return tuple(dict.fromkeys(datum.curve for datum in data))
