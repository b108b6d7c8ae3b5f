r"""Arrivals when only K slots can be recycled: transfers wait for a slot, so compute and link feed back.

With K slots, all free at the start, the n-th transfer takes the slot that the (n-K)-th gives up:

    r_n = max(r_{n-1}, free_{n-K}) + f_n        (free_{n-K} = 0 for n <= K)

where f_n is the full cost of the transfer. free depends on when compute was done, which depends on the
arrivals, so there is no closed form, but one pass in order of n settles both. `staggered_exposed_seconds`
at the *resulting* arrivals is exact; at the arrivals of an unblocked link (K >= n) it is a lower bound,
since every r_n only grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy.typing as npt

from hideaway.sim.errors import InputError
from hideaway.sim.hide.arrivals import split_by_layer
from hideaway.sim.hide.checks import FloatArray, as_layers, as_scalar, as_vector

Release = Literal["expert", "layer"]
"""When a slot can be used again: when its expert has been computed, or when its layer has ended."""


def slot_limited_arrival_seconds(
    window_seconds: float,
    dense_seconds: npt.ArrayLike,
    hit_seconds: npt.ArrayLike,
    transfer_seconds: Sequence[npt.ArrayLike],
    arrival_compute_seconds: Sequence[npt.ArrayLike],
    *,
    num_slots: int,
    released: Release = "expert",
) -> list[FloatArray]:
    """Return when each missing expert arrives (L arrays) when transfers take turns in `num_slots` slots.

    Parameters
    ----------
    window_seconds, dense_seconds, hit_seconds, arrival_compute_seconds
        W, A_l (L,), H_l (L,) and c_lm (L arrays), as in the staggered form.
    transfer_seconds
        L arrays, f_lm: full cost of each transfer, in the order in which they are sent.
    num_slots
        K, slots that prefetch may fill and refill.
    released
        When a slot is free again.

    Raises
    ------
    InputError
        Slots free only at the end of a layer that misses more than `num_slots` experts: the engine would
        have to stream or wait for ever.
    """
    dense = as_vector("dense_seconds", dense_seconds)
    hits, works = _layers_in_given_order(hit_seconds, transfer_seconds, arrival_compute_seconds)
    if len(dense) != len(hits):
        raise InputError(
            f"dense_seconds has {len(dense)} layers but hit_seconds has {len(hits)}; give equal lists"
        )
    if num_slots < 1:
        raise InputError(f"num_slots is {num_slots}; give at least one slot")
    worst = max((len(layer) for layer in works), default=0)
    if released == "layer" and worst > num_slots:
        raise InputError(
            f"a layer misses {worst} experts but num_slots is {num_slots} and slots free at the layer's end, "
            "so its last transfer would never start; raise num_slots or release slots after each expert"
        )
    clock = as_scalar("window_seconds", window_seconds)
    arrived: list[float] = []
    freed: list[float] = []
    link_free = 0.0
    for layer, layer_works in enumerate(works):
        clock += float(dense[layer]) + float(hits[layer])
        for cost, work in layer_works:
            slot_free = freed[len(arrived) - num_slots] if len(arrived) >= num_slots else 0.0
            link_free = max(link_free, slot_free) + cost
            arrived.append(link_free)
            clock = max(clock, link_free) + work
            if released == "expert":
                freed.append(clock)
        if released == "layer":
            freed.extend([clock] * len(layer_works))
    return split_by_layer(arrived, [len(layer) for layer in works])


def _layers_in_given_order(
    hit_seconds: npt.ArrayLike, transfer_seconds: Sequence[npt.ArrayLike], works: Sequence[npt.ArrayLike]
) -> tuple[FloatArray, list[list[tuple[float, float]]]]:
    """Check the lists and pair each transfer's cost with its work, in the order given."""
    hits, _ = as_layers(hit_seconds, transfer_seconds, works)
    pairs = [
        list(zip(as_vector("transfer_seconds", cost).tolist(), as_vector("work", work).tolist(), strict=True))
        for cost, work in zip(transfer_seconds, works, strict=True)
    ]
    return hits, pairs
