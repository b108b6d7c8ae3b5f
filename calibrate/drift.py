"""Whether the machine was the same throughout: drift over the run, spells of slowness, outlying samples.

All samples of all points in the order in which they were taken, each divided by its point's median: a level that ought
to be flat. Nothing is left out of a fit because of what is found; it is reported, and flagged where it matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from hideaway.calibrate.point_samples import MAD_TO_SIGMA, MEDIAN_ERROR, Floats
from hideaway.calibrate.work import Datum

DRIFT_FLAG = 0.02
"""Change over the whole run, relative, from which a drift is flagged if it is also certain."""
SLOW_FLAG = 0.10
"""How much slower a spell must be to be flagged."""
OUTLIER = 5.0
"""Robust standard deviations from the level at which a sample is outlying."""
_FEWEST = 60
_WINDOW_SHARE, _SHORTEST = 0.05, 9
_SHORTEST_SHARE = 0.01
_SURE = 4.0
"""Errors by which a spell must stand out: of a few dozen windows none does by chance."""


@dataclass(frozen=True, slots=True)
class SlowSpell:
    """A stretch of time in which everything took longer."""

    from_seconds: float
    to_seconds: float
    slowdown: float


@dataclass(frozen=True, slots=True)
class Drift:
    """The level over the run.

    Parameters
    ----------
    change, low, high : float
        Relative change from the first sample to the last, and its 95 % interval (Sen, JASA 63, 1968).
    spells : tuple of SlowSpell
        When it was slow.
    outliers : int
        Samples far off their point's level.
    seconds, level : tuple of float
        When samples began, and time over their point's median; for the picture.
    """

    num_samples: int
    change: float
    low: float
    high: float
    spells: tuple[SlowSpell, ...]
    outliers: int
    seconds: tuple[float, ...]
    level: tuple[float, ...]

    @property
    def drifted(self) -> bool:
        """Whether the level changed by more than `DRIFT_FLAG`, beyond doubt."""
        return abs(self.change) > DRIFT_FLAG and self.low * self.high > 0.0


def drift_of(data: Sequence[Datum]) -> Drift | None:
    """Return the level over the run, None where too few samples have a time."""
    started: list[float] = []
    logs: list[float] = []
    for datum in data:
        if datum.started and len(datum.samples) >= 3:
            started += datum.started
            logs += np.log(np.asarray(datum.samples) / np.median(datum.samples)).tolist()
    if len(logs) < _FEWEST:
        return None
    order = np.argsort(started, kind="stable")
    seconds, level = np.asarray(started)[order], np.asarray(logs)[order]
    spread = max(float(MAD_TO_SIGMA * np.median(np.abs(level - np.median(level)))), 1e-6)
    length = max(float(seconds[-1] - seconds[0]), 1e-9)
    slope, _, low, high = stats.theilslopes(*_thinned(level, seconds), alpha=0.95)
    return Drift(
        num_samples=len(level),
        change=float(np.expm1(slope * length)),
        low=float(np.expm1(low * length)),
        high=float(np.expm1(high * length)),
        spells=_slow_spells(seconds, level, spread),
        outliers=int((np.abs(level) > OUTLIER * spread).sum()),
        seconds=tuple(seconds.tolist()),
        level=tuple(np.exp(level).tolist()),
    )


def _thinned(level: Floats, seconds: Floats, most: int = 800) -> tuple[Floats, Floats]:
    """Return at most so many points, medians of equal groups: all pairs are compared."""
    groups = min(most, len(level))
    parts = np.array_split(np.arange(len(level)), groups)
    return (
        np.array([np.median(level[part]) for part in parts]),
        np.array([np.median(seconds[part]) for part in parts]),
    )


def _slow_spells(seconds: Floats, level: Floats, spread: float) -> tuple[SlowSpell, ...]:
    """Return stretches whose windows' medians stand above the level by `SLOW_FLAG` and beyond chance."""
    width = max(_SHORTEST, round(_WINDOW_SHARE * len(level)))
    limit = max(float(np.log1p(SLOW_FLAG)), _SURE * MEDIAN_ERROR * spread / width**0.5)
    usual = _usual_level(level, width)
    spells: list[SlowSpell] = []
    run: list[int] = []
    for first in range(0, len(level) - width + 1, max(1, width // 3)):
        window = np.arange(first, first + width)
        if float(np.median(level[window])) - usual > limit:
            run = sorted({*run, *window.tolist()})
        elif run and first > run[-1]:
            spells.append(_spell(seconds, level, run, usual))
            run = []
    if run:
        spells.append(_spell(seconds, level, run, usual))
    return _lasting(spells, seconds)


def _usual_level(level: Floats, width: int) -> float:
    """Return the lower quartile of the windows' medians: what is usual even if a good part of the run was slow."""
    medians = [
        float(np.median(level[first : first + width])) for first in range(0, len(level) - width + 1, width)
    ]
    return float(np.quantile(medians, 0.25))


def _lasting(spells: list[SlowSpell], seconds: Floats) -> tuple[SlowSpell, ...]:
    """Return the spells that last: one sample may hold many copies, all of one moment."""
    least = _SHORTEST_SHARE * float(seconds[-1] - seconds[0])
    return tuple(spell for spell in spells if spell.to_seconds - spell.from_seconds >= least)


def _spell(seconds: Floats, level: Floats, places: list[int], usual: float) -> SlowSpell:
    slowdown = float(np.expm1(np.median(level[places]) - usual))
    return SlowSpell(float(seconds[places[0]]), float(seconds[places[-1]]), slowdown)
