r"""The staggered form: exposed seconds of a verify whose experts arrive one by one while it computes.

Symbols, for layers l = 0..L-1: W is when verify starts, with prefetch starting at 0; A_l the dense work;
H_l the work of the resident experts; r_lm when the m-th missing expert arrives and c_lm the work it brings.

Derivation (hits first). The compute stream does its items in the fixed order A_0, H_0, c_00, c_01, ...,
A_1, .... Only the c_lm must wait for something. Without waiting, c_lm would start at

    S_lm = W + Σ_{j<l} (A_j + H_j + Σ_m c_jm) + A_l + H_l + Σ_{i<m} c_li.

Let D be the waiting so far. c_lm starts at max(S_lm + D, r_lm), so the waiting becomes max(D, r_lm - S_lm).
By induction the waiting at the end, the *exposed time*, is max(0, max_{l,m} (r_lm - S_lm)).

Exact if and only if: one compute stream that never idles when its next item can run; hits first; arrivals
computed in the order in which they arrive; costs that add; no contention between link and compute; no other
traffic on the link; slots that never block a transfer; arrivals that do not depend on compute. Slots that
block make it a lower bound (`hideaway.sim.hide.slots`); arrivals requested by the layer's own router are
`hideaway.sim.hide.depth_one`.

If the last arrival is no later than W, nothing is exposed, because every S_lm >= W: so *nominal-hidden
implies staggered-hidden* when both count the same transfer time and window. The converse fails: verify's
own work hides transfers too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hideaway.sim.errors import InputError
from hideaway.sim.hide.checks import FloatArray, as_layers, as_scalar, as_vector


def staggered_exposed_seconds(
    window_seconds: float,
    dense_seconds: npt.ArrayLike,
    hit_seconds: npt.ArrayLike,
    arrival_seconds: Sequence[npt.ArrayLike],
    arrival_compute_seconds: Sequence[npt.ArrayLike],
) -> float:
    """Return the seconds during which compute waits for experts, hits first: max(0, max_{l,m}(r_lm - S_lm)).

    Never falls when an arrival is later; never rises when the window or any compute time is longer.

    Parameters
    ----------
    window_seconds
        W, from the start of prefetch to the start of verify.
    dense_seconds, hit_seconds
        (L,) A_l and H_l.
    arrival_seconds, arrival_compute_seconds
        L arrays, r_lm and c_lm; a layer that misses nothing has an empty one.
    """
    waited = _waited_seconds(
        window_seconds, dense_seconds, hit_seconds, arrival_seconds, arrival_compute_seconds
    )
    return float(waited[-1])


def staggered_stalls_seconds(
    window_seconds: float,
    dense_seconds: npt.ArrayLike,
    hit_seconds: npt.ArrayLike,
    arrival_seconds: Sequence[npt.ArrayLike],
    arrival_compute_seconds: Sequence[npt.ArrayLike],
) -> FloatArray:
    """Return the exposed seconds layer by layer (L,): the growth of max(0, max(r - S)) in each layer.

    Arguments as for `staggered_exposed_seconds`, which is their sum.
    """
    waited = _waited_seconds(
        window_seconds, dense_seconds, hit_seconds, arrival_seconds, arrival_compute_seconds
    )
    return np.diff(waited)


def barrier_exposed_seconds(
    window_seconds: float,
    dense_seconds: npt.ArrayLike,
    hit_seconds: npt.ArrayLike,
    arrival_seconds: Sequence[npt.ArrayLike],
    arrival_compute_seconds: Sequence[npt.ArrayLike],
) -> float:
    """Return the exposed seconds when a layer computes no expert before all of its experts are there.

    With C_j = H_j + Σ_m c_jm behind the barrier and F_j the transfer time of layer j, this is max(0, max_l
    (Σ_{j<=l} F_j - S_l)) with S_l = W + Σ_{j<l} (A_j + C_j) + A_l: the hits-first form of layers whose
    hits' work is 0 and whose one arrival, the last of the layer, brings C_l. Never below the hits-first
    form.

    Arguments as for `staggered_exposed_seconds`.
    """
    layers = _behind_barriers(hit_seconds, arrival_seconds, arrival_compute_seconds)
    return staggered_exposed_seconds(window_seconds, dense_seconds, *layers)


def barrier_stalls_seconds(
    window_seconds: float,
    dense_seconds: npt.ArrayLike,
    hit_seconds: npt.ArrayLike,
    arrival_seconds: Sequence[npt.ArrayLike],
    arrival_compute_seconds: Sequence[npt.ArrayLike],
) -> FloatArray:
    """Return the barrier form layer by layer (L,); arguments as for `staggered_exposed_seconds`."""
    layers = _behind_barriers(hit_seconds, arrival_seconds, arrival_compute_seconds)
    return staggered_stalls_seconds(window_seconds, dense_seconds, *layers)


def smallest_staggered_window_seconds(
    dense_seconds: npt.ArrayLike,
    hit_seconds: npt.ArrayLike,
    arrival_seconds: Sequence[npt.ArrayLike],
    arrival_compute_seconds: Sequence[npt.ArrayLike],
) -> float:
    """Return the smallest W with no exposed time: that is exposed(0), as exposed(W) = max(0, exposed(0) - W).

    Arguments as for `staggered_exposed_seconds`. Rounded up by the few units in the last place that make the
    staggered form return exactly 0 at the result.
    """
    layers = (dense_seconds, hit_seconds, arrival_seconds, arrival_compute_seconds)
    window = needed = staggered_exposed_seconds(0.0, *layers)
    step = np.spacing(needed)
    while staggered_exposed_seconds(window, *layers) > 0.0:
        window, step = needed + step, 2.0 * step
    return window


def _waited_seconds(
    window_seconds: float,
    dense_seconds: npt.ArrayLike,
    hit_seconds: npt.ArrayLike,
    arrival_seconds: Sequence[npt.ArrayLike],
    arrival_compute_seconds: Sequence[npt.ArrayLike],
) -> FloatArray:
    """Return the waiting so far at the start and after each layer (L+1,): the D of the derivation."""
    dense = as_vector("dense_seconds", dense_seconds)
    hits, layers = as_layers(hit_seconds, arrival_seconds, arrival_compute_seconds)
    if len(dense) != len(hits):
        raise InputError(
            f"dense_seconds has {len(dense)} layers but hit_seconds has {len(hits)}; give equal lists"
        )
    clock = as_scalar("window_seconds", window_seconds)
    waited = np.zeros(len(dense) + 1)
    for layer, (arrivals, works) in enumerate(layers):
        clock += float(dense[layer]) + float(hits[layer])
        edges = np.cumsum(np.concatenate(([clock], works)))
        waited[layer + 1] = np.max(arrivals - edges[:-1], initial=waited[layer])
        clock = float(edges[-1])
    return waited


def _behind_barriers(
    hit_seconds: npt.ArrayLike,
    arrival_seconds: Sequence[npt.ArrayLike],
    arrival_compute_seconds: Sequence[npt.ArrayLike],
) -> tuple[FloatArray, list[FloatArray], list[FloatArray]]:
    """Return hits, arrivals and works of layers in which all expert work waits for the last arrival."""
    hits, layers = as_layers(hit_seconds, arrival_seconds, arrival_compute_seconds)
    last_arrivals = [arrivals[-1:] for arrivals, _ in layers]
    free_hits = np.array(
        [hit if len(last) == 0 else 0.0 for hit, last in zip(hits, last_arrivals, strict=True)]
    )
    works = [
        np.full(len(last), hit + np.sum(work))
        for hit, last, (_, work) in zip(hits, last_arrivals, layers, strict=True)
    ]
    return free_hits, last_arrivals, works
