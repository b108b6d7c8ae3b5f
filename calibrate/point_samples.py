"""How well the median of a point is known: spread, correlation in time, and the error that follows.

Everything is relative: spreads are those of logarithms, so that they need no unit. Next: `family.py`.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import stats

from hideaway.calibrate.work import Datum

Floats = npt.NDArray[np.float64]
MAD_TO_SIGMA = 1.482602
"""1 / quantile(0.75) of a normal distribution."""
MEDIAN_ERROR = 1.253314
"""sqrt(pi / 2): error of a median over that of a mean, many normal samples."""
_PRIOR_DEGREES = 10.0
"""How many samples' worth a point trusts the spread of its curve's other points (as in Smyth, SAGMB 3, 2004)."""
_FEWEST = 4
NORMALITY_LEVEL = 0.01
_MOST_SHAPIRO = 5000
_FEWEST_TESTED = 8


def relative_spread(samples: Sequence[float]) -> float:
    """Return the robust standard deviation of the samples' logarithms, 0 for fewer than two."""
    logs = np.log(samples)
    return float(MAD_TO_SIGMA * np.median(np.abs(logs - np.median(logs)))) if len(logs) > 1 else 0.0


def lag_one_correlation(samples: Sequence[float] | Floats) -> float:
    """Return the rank correlation of successive samples, 0 for fewer than eight."""
    if len(samples) < 8:
        return 0.0
    ranks = np.argsort(np.argsort(samples, kind="stable"), kind="stable").astype(float)
    centred = ranks - ranks.mean()
    power = float((centred**2).sum())
    return float((centred[1:] * centred[:-1]).sum() / power) if power > 0 else 0.0


def in_time_order(datum: Datum) -> tuple[float, ...]:
    """Return the samples by when they began, as they stand where that is not known."""
    if not datum.started:
        return datum.samples
    order = np.argsort(datum.started, kind="stable")
    return tuple(datum.samples[index] for index in order)


def median_errors(data: Sequence[Datum]) -> Floats:
    """Return (num_points,) relative standard errors of the observed values, 0 where no point has enough samples.

    A point's spread is pooled with that of its curve; successive samples that are alike count for fewer.
    """
    pooled = {name: _pooled(points) for name, points in _by_curve(data).items()}
    every = [value for value in pooled.values() if value is not None]
    common = statistics.median(every) if every else 0.0
    found = np.empty(len(data))
    for place, datum in enumerate(data):
        prior = pooled[datum.curve]
        prior = common if prior is None else prior
        square = _median_error(datum.samples, in_time_order(datum), prior) ** 2
        if datum.reference:
            square += _median_error(datum.reference, datum.reference, prior) ** 2
        found[place] = square**0.5
    known = found[found > 0.0]
    return np.where(found > 0.0, found, np.median(known)) if len(known) else found


def looks_normal(data: Sequence[Datum]) -> bool:
    """Return whether nothing speaks against normal errors of the samples' logarithms.

    Tested for each curve, about the means of its points (about medians, normal errors would seem not to be), with
    `NORMALITY_LEVEL` shared among the curves (Shapiro and Wilk, Biometrika 52, 1965; of many samples D'Agostino and
    Pearson, Biometrika 60, 1973).
    """
    found = []
    for points in _by_curve(data).values():
        logs = [np.log(datum.samples) for datum in points if len(datum.samples) >= _FEWEST]
        values = np.concatenate([each - each.mean() for each in logs]) if logs else np.empty(0)
        if len(values) >= _FEWEST_TESTED and float(np.ptp(values)) > 0.0:
            test = stats.shapiro if len(values) <= _MOST_SHAPIRO else stats.normaltest
            found.append(float(test(values).pvalue))
    return not found or min(found) >= NORMALITY_LEVEL / len(found)


def _by_curve(data: Sequence[Datum]) -> dict[str, list[Datum]]:
    curves: dict[str, list[Datum]] = {}
    for datum in data:
        curves.setdefault(datum.curve, []).append(datum)
    return curves


def _pooled(points: Sequence[Datum]) -> float | None:
    """Return the median over points of the spread, corrected for its bias in few samples; None without samples."""
    spreads = [
        relative_spread(point.samples) * _few_samples(len(point.samples))
        for point in points
        if len(point.samples) >= _FEWEST
    ]
    return statistics.median(spreads) if spreads else None


def _few_samples(count: int) -> float:
    """Return what the spread of few normal samples is too small by (Croux and Rousseeuw, COMPSTAT 1992: n/(n-0.8))."""
    return count / (count - 0.8)


def _median_error(samples: Sequence[float], ordered: Sequence[float], prior: float) -> float:
    count = len(samples)
    variance = prior**2
    if count >= _FEWEST:
        own = (relative_spread(samples) * _few_samples(count)) ** 2
        variance = (_PRIOR_DEGREES * variance + (count - 1) * own) / (_PRIOR_DEGREES + count - 1)
    correlation = min(0.95, max(0.0, lag_one_correlation(ordered)))
    alone = max(1.0, count * (1 - correlation) / (1 + correlation))
    factor = MEDIAN_ERROR if count > 2 else 1.0
    return float(factor * (variance / alone) ** 0.5)
