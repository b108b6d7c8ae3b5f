"""Belady's rule with bypass: keep the experts whose next use is nearest. A bound, not something an engine can do.

The future is handed in as the recorded sequence of events of each layer. It is exact when the run asks for the
same events in the same order, as a closed loop does (which rows run together does not depend on time there);
where the order shifts, the rule goes on with the recorded future and is then an approximation of the bound.
Source: L. A. Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal
5(2), 1966.

An event's experts never evict each other here, so two experts whose next use is the same event are not equal: the
one that is read sooner after it is worth more, since the other would hold its slot through that event. Futures are
therefore compared use by use, up to the first event that reads only one of the two. Why no rule misses less: a
cache that holds the sooner of two experts instead of the later never misses more, as it gains a hit at that first
event, and one differing expert costs at most one miss ever after (tests search small cases).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key

from hideaway.sim.masks import experts_of, mask_of


class Belady:
    """Drops the experts whose next use lies farthest in the recorded future.

    Parameters
    ----------
    events : sequence of sequence of int, shape (num_layers, events of the layer)
        Expert masks that each layer's successive events will read.
    """

    def __init__(self, num_layers: int, num_experts: int, events: Sequence[Sequence[int]]) -> None:
        if len(events) != num_layers:
            raise ValueError(f"the future covers {len(events)} layers; the model has {num_layers}")
        self._position = [0] * num_layers
        self._uses: list[list[list[int]]] = []
        for layer_events in events:
            uses: list[list[int]] = [[] for _ in range(num_experts)]
            for index, mask in enumerate(layer_events):
                for expert in experts_of(mask):
                    uses[expert].append(index)
            for queue in uses:
                queue.reverse()
            self._uses.append(uses)

    def touch(self, layer: int, used: int) -> None:
        """Move to the next event of the layer. Changes state."""
        position = self._position[layer] = self._position[layer] + 1
        for queue in self._uses[layer]:
            while queue and queue[-1] < position:
                queue.pop()

    def insert(self, layer: int, experts: int) -> None:
        """Nothing: the future does not change."""

    def forget(self, layer: int, experts: int) -> None:
        """Nothing: the future does not change."""

    def victims(self, layer: int, count: int, candidates: int) -> int:
        """Return up to `count` candidates, farthest next use first; changes nothing."""
        ranked = self._soonest_first(layer, candidates)
        return mask_of(ranked[max(0, len(ranked) - count) :])

    def keep(self, layer: int, arriving: int, candidates: int, free_slots: int) -> int:
        """Return the arriving experts worth a slot, the rest being bypassed; changes nothing.

        Of the arriving experts and the candidates as many stay as there are slots for, soonest next use first; an
        expert that is never read again is not worth even a free slot.
        """
        ranked = self._soonest_first(layer, arriving | candidates)
        staying = mask_of(ranked[: free_slots + candidates.bit_count()])
        uses = self._uses[layer]
        return mask_of(expert for expert in experts_of(arriving & staying) if uses[expert])

    def _soonest_first(self, layer: int, experts: int) -> list[int]:
        uses = self._uses[layer]

        def compare(one: int, other: int) -> int:
            mine, theirs = uses[one], uses[other]
            for my_use, their_use in zip(reversed(mine), reversed(theirs), strict=False):
                if my_use != their_use:
                    return my_use - their_use
            return len(theirs) - len(mine) or one - other

        return sorted(experts_of(experts), key=cmp_to_key(compare))
