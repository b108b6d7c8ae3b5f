"""Which physical slot holds which expert. The scheduler says who stays and who goes; here is where.

Commands name no victims: a slot is free again once the scheduler's residency no longer holds its expert, which is
looked at when a slot of that layer is next needed. Slots are not tied to layers. A few slots beyond those of the
residency are for streamed experts, which are used once and not kept.
"""

from __future__ import annotations

from hideaway.sim.errors import HideawayError
from hideaway.sim.masks import experts_of
from hideaway.sim.residency import Residency


class SlotTable:
    """Slots of all layers and of streaming.

    Parameters
    ----------
    residency : Residency
        What the scheduler holds; only read.
    num_staging : int
        Slots for streamed experts; they come last.
    """

    def __init__(self, residency: Residency, num_staging: int) -> None:
        self._residency = residency
        self.num_cached = sum(residency.slots)
        self.num_slots = self.num_cached + num_staging
        self._slots: list[dict[int, int]] = [{} for _ in residency.slots]
        self._mapped = [0] * residency.num_layers
        self._free = list(range(self.num_cached - 1, -1, -1))
        self._free_staging = list(range(self.num_slots - 1, self.num_cached - 1, -1))

    def assign(self, layer: int, experts: int) -> dict[int, int]:
        """Return a slot for each expert that is to be fetched, after taking back those no longer held. Changes state.

        An expert that was dropped and is fetched again before anybody looked still has its old slot; that is taken
        back too.
        """
        self._release(layer, also=experts)
        if len(self._free) < experts.bit_count():
            for other in range(self._residency.num_layers):
                self._release(other)
        assigned = {}
        for expert in experts_of(experts):
            if not self._free:
                raise HideawayError(
                    f"layer {layer} expert {expert} finds no slot among {self.num_cached}; the scheduler holds more "
                    "experts than there are slots, which is a fault in it"
                )
            assigned[expert] = self._free.pop()
        self._slots[layer].update(assigned)
        self._mapped[layer] |= experts
        return assigned

    def slots_of(self, layer: int, experts: int) -> dict[int, int]:
        """Return the slots of experts that are held, ascending; changes nothing."""
        slots = self._slots[layer]
        return {expert: slots[expert] for expert in experts_of(experts)}

    def take_staging(self) -> int | None:
        """Return a free staging slot, None when all are in use. Changes state."""
        return self._free_staging.pop() if self._free_staging else None

    def give_back_staging(self, slot: int) -> None:
        """Free a staging slot. Changes state."""
        self._free_staging.append(slot)

    def is_staging(self, slot: int) -> bool:
        """Return whether a slot is one of those for streamed experts."""
        return slot >= self.num_cached

    def _release(self, layer: int, also: int = 0) -> None:
        residency = self._residency
        gone = self._mapped[layer] & (~(residency.resident[layer] | residency.in_flight[layer]) | also)
        for expert in experts_of(gone):
            self._free.append(self._slots[layer].pop(expert))
        self._mapped[layer] ^= gone
