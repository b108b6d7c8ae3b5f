"""What a router is fitted to: overlaps and unions of a trace by layer, and base scores from popularity.

Not here: the fit itself (`router_fit.py`), which is what comes next.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from hideaway.sim.inputs.routing.locality import lag_overlap, membership, window_union
from hideaway.sim.inputs.routing.trace import RoutingTrace

_Floats = npt.NDArray[np.float64]

LAGS_TOKENS = (1, 2, 3, 4, 8, 16, 32, 64, 128)
WINDOWS_TOKENS = (2, 4, 8, 16, 32, 64)
OVERLAP_SCALE = 0.005
"""Overlap error, absolute, that weighs as much as `UNION_SCALE` of a union."""
UNION_SCALE = 0.005
"""Union error, relative."""
_LEAST_SAMPLES = 60
"""A lag or window needs this many pairs, or a sequence this many times its length, to be a target."""
_POPULARITY_DRAWS = 4000
_POPULARITY_ROUNDS = 60


@dataclass(frozen=True, slots=True)
class Moments:
    """Which lags and windows a trace is long enough for."""

    lags_tokens: tuple[int, ...]
    windows_tokens: tuple[int, ...]

    def of(self, trace: RoutingTrace) -> _Floats:
        """Return the moments of a trace in units of equal weight, (num_layers, num_moments).

        Overlaps are divided by `OVERLAP_SCALE`; of unions the logarithm is divided by `UNION_SCALE`.
        """
        overlaps = [lag_overlap(trace, lag) / OVERLAP_SCALE for lag in self.lags_tokens]
        unions = [np.log(window_union(trace, window)) / UNION_SCALE for window in self.windows_tokens]
        return np.array(overlaps + unions).T


def usable_moments(trace: RoutingTrace) -> Moments:
    """Return the lags that have at least 60 pairs of tokens, and the windows that fit at least 4 times."""
    lengths = trace.seq_lengths
    lags = tuple(lag for lag in LAGS_TOKENS if int(np.maximum(lengths - lag, 0).sum()) >= _LEAST_SAMPLES)
    windows = tuple(window for window in WINDOWS_TOKENS if int((lengths // window).sum()) >= 4)
    return Moments(lags, windows)


def base_from_popularity(trace: RoutingTrace, rng: np.random.Generator) -> _Floats:
    """Return base scores that give each expert its frequency in the trace, (num_layers, num_experts).

    Scores are base plus unit normal noise, so a frequency is a function of all bases; each is moved by the difference
    of the normal quantiles of wanted and simulated frequency until they agree.
    """
    frequency = membership(trace).mean(axis=0)
    wanted: _Floats = ndtri(np.clip(frequency, 2e-4, 1 - 2e-4))
    noise = rng.standard_normal((_POPULARITY_DRAWS, trace.num_experts))
    base = np.empty_like(wanted)
    for layer in range(trace.num_layers):
        base[layer] = _match_frequencies(wanted[layer], noise, trace.top_k)
    return base


def _match_frequencies(wanted: _Floats, noise: _Floats, top_k: int) -> _Floats:
    base: _Floats = wanted - wanted.mean()
    for _ in range(_POPULARITY_ROUNDS):
        chosen = np.argpartition(-(base + noise), top_k - 1, axis=1)[:, :top_k]
        frequency = np.bincount(chosen.ravel(), minlength=len(base)) / len(noise)
        base = base + 0.7 * (wanted - ndtri(np.clip(frequency, 1e-4, 1 - 1e-4)))
        base -= base.mean()
    return base
