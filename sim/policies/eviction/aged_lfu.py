"""Least frequently used with ageing: every earlier use counts 0.99 per event of its layer since.

Instead of multiplying all counts at each event, the weight of a new use grows by 1/decay; the counts are
rescaled before they overflow. Ties go to the lowest id. Source of the decay: the hit curves shipped with the
routing data use 0.99 per event (LFU with dynamic ageing: Arlitt et al., ACM SIGMETRICS PER 27(4), 2000).
"""

from __future__ import annotations

from heapq import nsmallest

from hideaway.sim.masks import experts_of

_RESCALE_ABOVE = 1e100


class AgedLfu:
    """Drops the experts with the smallest decayed use count.

    Parameters
    ----------
    decay : float
        Weight of a use after one further event of the layer, 0 < decay <= 1; 1 is plain LFU.
    """

    def __init__(self, num_layers: int, num_experts: int, decay: float = 0.99) -> None:
        if not 0 < decay <= 1:
            raise ValueError(f"decay is {decay}; it must be above 0 and at most 1")
        self._growth = 1 / decay
        self._weight = [1.0] * num_layers
        self._counts = [[0.0] * num_experts for _ in range(num_layers)]

    def touch(self, layer: int, used: int) -> None:
        """Count one use of every expert of the event. Changes state."""
        weight = self._weight[layer] = self._weight[layer] * self._growth
        counts = self._counts[layer]
        while used:
            low = used & -used
            counts[low.bit_length() - 1] += weight
            used ^= low
        if weight > _RESCALE_ABOVE:
            self._counts[layer] = [count / weight for count in counts]
            self._weight[layer] = 1.0

    def insert(self, layer: int, experts: int) -> None:
        """Nothing: a prefetch is not a use."""

    def forget(self, layer: int, experts: int) -> None:
        """Nothing: counts outlive residency."""

    def victims(self, layer: int, count: int, candidates: int) -> int:
        """Return up to `count` candidates, least used first; changes nothing."""
        counts = self._counts[layer]
        if candidates.bit_count() <= count:
            return candidates
        chosen = 0
        for expert in nsmallest(count, experts_of(candidates), key=counts.__getitem__):
            chosen |= 1 << expert
        return chosen
