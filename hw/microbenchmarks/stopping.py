"""When a point has been sampled enough: the interval of its median is narrow, or the samples are many. No clock."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to go on.

    Parameters
    ----------
    relative_width : float
        Half the interval of the median, relative to the median, at which a point has converged.
    fewest, most : int
        Samples that every point gets where time allows, and those beyond which none gets more.
    """

    relative_width: float
    fewest: int
    most: int


QUICK = Effort(relative_width=0.10, fewest=6, most=60)
FULL = Effort(relative_width=0.03, fewest=12, most=400)


@cache
def interval_ranks(count: int) -> tuple[int, int] | None:
    """Return the ranks (from 0) of two order statistics that enclose the median with `CONFIDENCE`; None below six.

    The number of samples below the median is binomial(count, 1/2) whatever the distribution of independent samples
    (Conover, "Practical Nonparametric Statistics", 3rd edition, section 3.2); the narrowest symmetric pair of ranks
    that holds the confidence is taken.
    """
    tail, low = 0.0, -1
    for rank in range(count // 2):
        tail += math.comb(count, rank) / 2**count
        if 2 * tail > 1 - CONFIDENCE:
            break
        low = rank
    return None if low < 0 else (low, count - 1 - low)


def median_interval(samples: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % interval of the median, None when there are too few samples for one."""
    ranks = interval_ranks(len(samples))
    if ranks is None:
        return None
    ordered = sorted(samples)
    return ordered[ranks[0]], ordered[ranks[1]]


def relative_half_width(samples: Sequence[float]) -> float | None:
    """Return half the width of the median's interval over the median, None when there is no interval."""
    interval = median_interval(samples)
    if interval is None:
        return None
    return (interval[1] - interval[0]) / 2 / statistics.median(samples)


def has_converged(samples: Sequence[float], effort: Effort) -> bool:
    """Return whether the median is known well enough."""
    if len(samples) < effort.fewest:
        return False
    width = relative_half_width(samples)
    return width is not None and width <= effort.relative_width


class WarmUp:
    """Runs until the medians of two successive windows agree, or up to a cap.

    Parameters
    ----------
    window : int
        Runs in a window.
    tolerance : float
        Relative difference of two medians that agree.
    most : int
        Runs after which it is over in any case.
    """

    def __init__(self, window: int = 3, tolerance: float = 0.1, most: int = 12) -> None:
        self._window, self._tolerance, self._most = window, tolerance, most
        self.runs = 0
        self._current: list[float] = []
        self._earlier: float | None = None
        self.is_over = False

    def note(self, seconds: float) -> None:
        """Take in a run. Changes state."""
        self.runs += 1
        self._current.append(seconds)
        if len(self._current) == self._window:
            median = statistics.median(self._current)
            earlier, self._earlier = self._earlier, median
            self._current = []
            if earlier is not None and abs(median - earlier) <= self._tolerance * max(median, earlier):
                self.is_over = True
        self.is_over = self.is_over or self.runs >= self._most
