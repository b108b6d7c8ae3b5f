"""What every device has in common: transfers in, arrivals out, slots to compute from.

A *device* owns an arena of fixed-size slots and brings experts into them from a slower place. `cuda.py`, `disk.py`
and `paced_memory.py` are the three; `transfer_queue.py` decides the order in all of them and `worker_device.py`
runs the threads. Not here: which expert goes into which slot (the scheduler's residency decides that).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from hideaway.sim.commands import Band
from hideaway.sim.number_checks import whole_number

if TYPE_CHECKING:
    import torch

PAGE_BYTES = 4096
"""Alignment of slots, and of the offsets and lengths of direct reads (a multiple of every common sector size)."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """Bring one expert of one layer into a slot."""

    layer: int
    expert: int
    slot: int

    def __post_init__(self) -> None:
        whole_number("layer", self.layer)
        whole_number("expert", self.expert)
        whole_number("slot", self.slot)


@dataclass(frozen=True, slots=True)
class Copy:
    """One piece that crossed the link, in seconds of the device's clock; a transfer is one piece or its chunks."""

    start_seconds: float
    end_seconds: float
    bytes: int


@dataclass(frozen=True, slots=True)
class Arrival:
    """The end of a transfer, well or badly.

    Parameters
    ----------
    band : Band
        The band it ended in; a promoted prefetch ends in the on-demand band.
    copies : tuple of Copy
        What moved, in order; failed attempts are not among them.
    retries : int
        Attempts beyond the first that it took.
    failure : str or None
        None when the slot holds the expert; else one sentence that names layer, expert, file and reason.
    """

    layer: int
    expert: int
    slot: int
    band: Band
    copies: tuple[Copy, ...]
    retries: int = 0
    failure: str | None = None

    @property
    def start_seconds(self) -> float:
        """When its first piece started to move; NaN when nothing moved."""
        return min((copy.start_seconds for copy in self.copies), default=float("nan"))

    @property
    def end_seconds(self) -> float:
        """When its last piece had moved; NaN when nothing moved."""
        return max((copy.end_seconds for copy in self.copies), default=float("nan"))

    @property
    def bytes(self) -> int:
        """Bytes that moved."""
        return sum(copy.bytes for copy in self.copies)


class TransferDevice(Protocol):
    """A place to compute from, and the link that fills it. Every method may be called from any thread."""

    @property
    def num_slots(self) -> int:
        """Slots of the arena."""

    @property
    def slot_bytes(self) -> int:
        """Bytes of a slot, a multiple of `PAGE_BYTES`."""

    def facts(self) -> dict[str, object]:
        """Return what a result file must say of the device: kind, options, and everything that is not ideal."""

    def now_seconds(self) -> float:
        """Return the time on the clock that arrivals carry."""

    def slot_tensor(self, slot: int) -> torch.Tensor:
        """Return the bytes of a slot as a uint8 tensor of shape (slot_bytes,), without a copy."""

    def submit(self, transfers: Sequence[Transfer], band: Band) -> None:
        """Queue transfers. One that is queued already is promoted, one in flight is joined. Changes state."""

    def promote(self, layer: int, experts: int) -> None:
        """Move queued transfers of a mask of experts to the on-demand band; submitted ones stay. Changes state."""

    def cancel(self, layer: int, experts: int) -> int:
        """Drop queued transfers of which nothing was submitted; return the mask of those. Changes state."""

    def outstanding(self) -> int:
        """Return how many transfers have neither arrived, failed nor been cancelled."""

    def poll(self) -> list[Arrival]:
        """Take what has arrived, in order of arrival; never blocks. Changes state."""

    def wait(self, timeout_seconds: float | None = None) -> list[Arrival]:
        """Take what has arrived, after blocking until there is something.

        Returns an empty list when nothing is outstanding or the timeout has passed. Changes state.
        """

    def close(self) -> None:
        """Drop what is queued, let what is moving end, stop the workers. What arrived can still be polled."""
