"""Which experts sit in which layer's slots, and which are on their way there.

States of an expert: absent -> in flight (a slot is reserved) -> resident -> absent. Only the scheduler
changes this state. Slots are per layer; `resident | in_flight` of a layer never exceeds its slots.
"""

from __future__ import annotations

from collections.abc import Sequence

from hideaway.sim.errors import HideawayError, IllegalEventError


class Residency:
    """Slots of every layer.

    Parameters
    ----------
    slots_per_layer : sequence of int, length num_layers
        Expert slots of each layer.
    resident : sequence of int, length num_layers, optional
        Expert masks that are resident at the start.
    """

    __slots__ = ("in_flight", "num_layers", "resident", "slots")

    def __init__(self, slots_per_layer: Sequence[int], resident: Sequence[int] | None = None) -> None:
        self.slots = list(slots_per_layer)
        self.num_layers = len(self.slots)
        self.resident = [0] * self.num_layers if resident is None else list(resident)
        self.in_flight = [0] * self.num_layers
        for layer in range(self.num_layers):
            self.check(layer)

    def check(self, layer: int) -> None:
        """Raise if a layer holds more experts than it has slots, or counts one twice."""
        resident, in_flight = self.resident[layer], self.in_flight[layer]
        if resident & in_flight or (resident | in_flight).bit_count() > self.slots[layer]:
            raise HideawayError(
                f"layer {layer} holds {resident.bit_count()} resident and {in_flight.bit_count()} arriving experts "
                f"in {self.slots[layer]} slots; this is a fault in the scheduler or its policy"
            )

    def free_slots(self, layer: int) -> int:
        """Return how many slots of `layer` are neither used nor reserved; changes nothing."""
        return self.slots[layer] - (self.resident[layer] | self.in_flight[layer]).bit_count()

    def reserve(self, layer: int, experts: int, victims: int) -> None:
        """Drop `victims` and reserve slots for `experts`. Changes state."""
        self.resident[layer] &= ~victims
        self.in_flight[layer] |= experts
        self.check(layer)

    def arrive(self, layer: int, experts: int) -> None:
        """Turn arriving experts into resident ones. Changes state."""
        if experts & ~self.in_flight[layer]:
            raise IllegalEventError(
                f"experts {experts & ~self.in_flight[layer]:#x} of layer {layer} arrived unasked"
            )
        self.in_flight[layer] ^= experts
        self.resident[layer] |= experts

    def cancel(self, layer: int, experts: int) -> None:
        """Give back the slots of arriving experts whose copies were dropped. Changes state."""
        if experts & ~self.in_flight[layer]:
            raise IllegalEventError(
                f"experts {experts & ~self.in_flight[layer]:#x} of layer {layer} were dropped unasked"
            )
        self.in_flight[layer] ^= experts

    def resident_count(self) -> int:
        """Return the number of resident experts over all layers."""
        return sum(mask.bit_count() for mask in self.resident)
