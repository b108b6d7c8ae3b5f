"""Means of replications and of paired differences, with Student's 95 % interval.

A variant runs with the same seed as the base it is compared with (common random numbers), so their difference varies
far less than either. Source of both: A. M. Law, "Simulation Modeling and Analysis", 5th ed., sections 10.2 and 11.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

_UPPER_TAIL = 0.975


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over replications and its 95 % interval, in the unit of what was measured."""

    mean: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the length of the interval."""
        return (self.high - self.low) / 2

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low > 0 or self.high < 0

    def scaled(self, factor: float) -> Estimate:
        """Return the estimate in another unit."""
        ends = sorted((self.low * factor, self.high * factor))
        return Estimate(self.mean * factor, *ends)


def estimate(samples: Sequence[float]) -> Estimate:
    """Return the mean of independent samples with mean ± t(0.975, n - 1) · s / √n.

    >>> estimate([1.0, 2.0, 3.0]).mean
    2.0

    Raises
    ------
    ValueError
        There are fewer than two samples, which say nothing of their spread.
    """
    count = len(samples)
    if count < 2:
        raise ValueError(f"an interval was asked of {count} samples; give at least 2")
    values = np.asarray(samples, dtype=np.float64)
    mean = float(values.mean())
    half = float(stdtrit(count - 1, _UPPER_TAIL)) * float(values.std(ddof=1)) / math.sqrt(count)
    return Estimate(mean, mean - half, mean + half)


def paired_gain(base: Sequence[float], variant: Sequence[float]) -> Estimate:
    """Return the mean of variant - base, replication by replication, with its interval."""
    return estimate([after - before for before, after in zip(base, variant, strict=True)])
