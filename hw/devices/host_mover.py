"""What the two devices with slots in host memory share: where a piece goes, and the check of a full slot."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from hideaway.hw.devices.arena import Bytes, HostArena
from hideaway.hw.devices.mover import CopyError, Reader
from hideaway.hw.devices.transfer_queue import Piece
from hideaway.hw.store.reader import ExpertStore

if TYPE_CHECKING:
    import torch


class Route(NamedTuple):
    """Where a piece stands in the store's data file, and the part of its slot that it goes to."""

    offset: int
    into: Bytes


class HostMover:
    """Half a `Mover`: everything but `begin` and `end`."""

    def __init__(self, store: ExpertStore, num_slots: int, reader: Reader) -> None:
        self._store = store
        self._arena = HostArena(num_slots, store.stride_bytes)
        self.reader = reader
        self.place = reader.place
        self.num_slots = num_slots
        self.slot_bytes = store.stride_bytes

    def slot_tensor(self, slot: int) -> torch.Tensor:
        """Return the bytes of a slot as a uint8 tensor, without a copy."""
        return self._arena.tensor(slot)

    def now_seconds(self) -> float:
        """Return the time on the clock of the copies."""
        return time.perf_counter()

    def check(self, layer: int, expert: int, slot: int) -> None:
        """Raise CopyError if the slot does not hold the expert that it should."""
        mismatch = self._store.mismatch(layer, expert, self._arena.array(slot))
        if mismatch is not None:
            raise CopyError(mismatch)

    def route(self, piece: Piece) -> Route:
        """Return the way of a piece."""
        transfer, end = piece.transfer, piece.offset_bytes + piece.num_bytes
        offset = self._store.offset_bytes(transfer.layer, transfer.expert) + piece.offset_bytes
        return Route(offset, self._arena.array(transfer.slot)[piece.offset_bytes : end])

    def read(self, offset: int, into: Bytes) -> None:
        """Fill `into` from `offset` on, or raise CopyError for a short read and OSError for a failed one."""
        count = self.reader.read_into(offset, into)
        if count != into.nbytes:
            raise CopyError(f"short read, {count} of {into.nbytes} bytes at offset {offset}")
