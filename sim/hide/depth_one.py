r"""Exact depth 1 without prediction: a layer's fetches are issued when its own router has spoken.

This is what a real engine can do without a predictor. Symbols as in `hideaway.sim.hide.staggered`, except
that ρ_lm, the arrival time, is measured from the instant at which layer l's router result is known and its
fetches are issued.

Derivation. After the router the stream computes the hits (H_l), then each arrival. Without waiting c_lm
would start H_l + Σ_{i<m} c_li after the router, so layer l waits max(0, max_m (ρ_lm - H_l - Σ_{i<m} c_li)),
by the argument of the staggered form within one layer. A layer ends only when its last expert is done, so
the link is idle again when the next router speaks, nothing is carried over and the layers' waits add up.
Neither the window nor the dense work appears: draft, router pass and previous verify hide nothing at depth
1.

Exact under the conditions of the staggered form, with "arrivals do not depend on compute" replaced by "ρ
depends on the layer's own misses only".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hideaway.sim.hide.checks import FloatArray, as_layers


def depth_one_exposed_seconds(
    hit_seconds: npt.ArrayLike,
    arrival_seconds: Sequence[npt.ArrayLike],
    arrival_compute_seconds: Sequence[npt.ArrayLike],
) -> float:
    """Return the seconds during which compute waits: Σ_l max(0, max_m(ρ_lm - H_l - Σ_{i<m} c_li)).

    Parameters
    ----------
    hit_seconds
        (L,) H_l, work of the resident experts, done first.
    arrival_seconds
        L arrays, ρ_lm: seconds from the instant at which layer l's fetches are issued to each arrival.
    arrival_compute_seconds
        L arrays, c_lm: the work each arrival brings.
    """
    return float(np.sum(depth_one_stalls_seconds(hit_seconds, arrival_seconds, arrival_compute_seconds)))


def depth_one_stalls_seconds(
    hit_seconds: npt.ArrayLike,
    arrival_seconds: Sequence[npt.ArrayLike],
    arrival_compute_seconds: Sequence[npt.ArrayLike],
) -> FloatArray:
    """Return the exposed seconds of each layer (L,); arguments as for `depth_one_exposed_seconds`."""
    hits, layers = as_layers(hit_seconds, arrival_seconds, arrival_compute_seconds)
    stalls = np.zeros(len(hits))
    for layer, (arrivals, works) in enumerate(layers):
        starts = np.cumsum(np.concatenate(([hits[layer]], works)))[:-1]
        stalls[layer] = np.max(arrivals - starts, initial=0.0)
    return stalls
