"""Errors of a fit from resampled samples: for samples whose errors are not normal.

Every point's samples are drawn anew (in blocks, so that what is alike in time stays alike: Künsch, Annals of
Statistics 17(3), 1989), medians are taken, points are moved by the misfit that the fit found, and the family is fitted
again (Efron and Tibshirani, "An Introduction to the Bootstrap", 1993).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hideaway.calibrate.design import Design
from hideaway.calibrate.point_samples import MAD_TO_SIGMA, Floats, in_time_order, lag_one_correlation
from hideaway.calibrate.solver import Solved, solve
from hideaway.calibrate.work import Datum, Unknown

REPETITIONS = 120
_FEWEST = 4


def bootstrap_covariance(
    data: Sequence[Datum],
    design: Design,
    unknowns: Sequence[Unknown],
    solved: Solved,
    rng: np.random.Generator,
    repetitions: int = REPETITIONS,
) -> Floats:
    """Return (num_unknowns, num_unknowns), robust against single repetitions that went astray."""
    own = np.sqrt(np.maximum(solved.errors**2 - solved.misfit**2, 0.0))
    points = [_Resampled(datum, error) for datum, error in zip(data, own, strict=True)]
    drawn = np.empty((repetitions, len(unknowns)))
    for repetition in range(repetitions):
        references: dict[int, float] = {}
        observed = np.array([point.draw(rng, references) for point in points])
        observed *= np.exp(solved.misfit * rng.standard_normal(len(data)))
        again = solve(design, unknowns, observed, solved.errors, start=solved.values, misfit=0.0)
        drawn[repetition] = again.values
    centred = drawn - np.median(drawn, axis=0)
    spread = MAD_TO_SIGMA * np.median(np.abs(centred), axis=0)
    wide = np.sqrt((centred**2).mean(axis=0))
    scale = np.where(spread > 0, spread, wide)
    tamed = np.divide(scale, wide, out=np.ones_like(scale), where=wide > 0)
    return np.asarray(centred.T @ centred / repetitions * np.outer(tamed, tamed))


class _Resampled:
    """A point whose samples are drawn anew.

    Parameters
    ----------
    error : float
        Relative error of its median, by which a median of few samples is moved instead.
    """

    def __init__(self, datum: Datum, error: float) -> None:
        self._observed, self._error = datum.observed, error
        self._samples = np.array(in_time_order(datum))
        self._reference = np.array(datum.reference)
        self._key = id(datum.reference)
        self._few = len(self._samples) < _FEWEST or 0 < len(self._reference) < _FEWEST
        self._length = _block_length(self._samples)

    def draw(self, rng: np.random.Generator, references: dict[int, float]) -> float:
        """Return a median, over that of the reference where there is one.

        Parameters
        ----------
        references : dict
            Medians of references drawn in this repetition: points that share one share its median. Is added to.
        """
        if self._few:
            return self._observed * float(np.exp(self._error * rng.standard_normal()))
        median = _resampled_median(self._samples, self._length, rng)
        if not len(self._reference):
            return median
        if self._key not in references:
            references[self._key] = _resampled_median(self._reference, 1, rng)
        return median / references[self._key]


def _resampled_median(samples: Floats, length: int, rng: np.random.Generator) -> float:
    count = len(samples)
    firsts = rng.integers(0, count, size=-(-count // length))
    places = (firsts[:, None] + np.arange(length)).ravel()[:count] % count
    return float(np.median(samples[places]))


def _block_length(samples: Floats) -> int:
    """Return 1 where successive samples are not alike, else the cube root of their number."""
    if lag_one_correlation(samples) <= 2.0 / len(samples) ** 0.5:
        return 1
    return max(1, round(math.cbrt(len(samples))))
