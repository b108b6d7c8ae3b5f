"""Belady's rule with bypass: keep the experts whose next use is nearest. A bound, not something an engine can do.

The future is handed in as the recorded sequence of events of each layer. It is exact when the run asks for the
same events in the same order, as a closed loop does (which rows run together does not depend on time there);
where the order shifts, the rule goes on with the recorded future and is then an approximation of the bound.
Source: L. A. Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal
5(2), 1966.
"""

from __future__ import annotations

from collections.abc import Sequence

from hideaway.sim.masks import experts_of

NEVER = 1 << 60


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
        ranked = sorted(experts_of(candidates), key=lambda expert: (-self._next_use(layer, expert), expert))
        chosen = 0
        for expert in ranked[:count]:
            chosen |= 1 << expert
        return chosen

    def keep(self, layer: int, arriving: int, candidates: int, free_slots: int) -> int:
        """Return the arriving experts worth a slot, the rest being bypassed; changes nothing.

        An arriving expert takes a free slot if it is used again, or the slot of a candidate whose next use is
        farther than its own.
        """
        nearest = sorted(experts_of(arriving), key=lambda expert: (self._next_use(layer, expert), expert))
        farthest = sorted((self._next_use(layer, expert) for expert in experts_of(candidates)), reverse=True)
        limits = [NEVER] * free_slots + farthest
        mask = 0
        for expert, limit in zip(nearest, limits, strict=False):
            if self._next_use(layer, expert) >= limit:
                break
            mask |= 1 << expert
        return mask

    def _next_use(self, layer: int, expert: int) -> int:
        queue = self._uses[layer][expert]
        return queue[-1] if queue else NEVER
