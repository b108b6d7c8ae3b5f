"""What an eviction policy is: told what each layer event used, asked for victims.

`touch`, `insert` and `forget` change the policy's state; `victims` must not: choosing a victim and dropping it
are different calls, and the scheduler may ask and then drop nothing.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable


class EvictionPolicy(Protocol):
    """Chooses which resident experts of a layer make room."""

    def touch(self, layer: int, used: int) -> None:
        """Note that one layer event read the experts `used` (one atomic event). Changes state."""
        ...

    def insert(self, layer: int, experts: int) -> None:
        """Note that prefetched `experts` are on their way into slots, not yet used. Changes state."""
        ...

    def forget(self, layer: int, experts: int) -> None:
        """Note that `experts` left their slots. Changes state."""
        ...

    def victims(self, layer: int, count: int, candidates: int) -> int:
        """Return a mask of at most `count` of `candidates`, the best to drop first; changes nothing."""
        ...


@runtime_checkable
class BypassingPolicy(EvictionPolicy, Protocol):
    """An eviction policy that may also refuse a slot to an arriving expert, which is then streamed."""

    def keep(self, layer: int, arriving: int, candidates: int, free_slots: int) -> int:
        """Return which of the `arriving` experts to keep; changes nothing."""
        ...
