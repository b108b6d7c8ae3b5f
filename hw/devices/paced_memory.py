"""An *emulated link*: real copies between two places in memory, held to a latency and a rate that the user sets.

The bytes are real and so is their cost to cores and memory; the speed is not a measurement and every result says so
(`facts()["kind"]`). A copy starts when it is submitted or when the one before it is due to end, and is due to end
latency + bytes / rate later: the first-in first-out affine link of the cost model.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from hideaway.hw.devices.host_mover import HostMover
from hideaway.hw.devices.memory_reader import MemoryReader
from hideaway.hw.devices.mover import Reader
from hideaway.hw.devices.transfer_queue import Piece
from hideaway.hw.devices.worker_device import DEFAULT_RETRIES, WorkerDevice
from hideaway.hw.store.reader import ExpertStore
from hideaway.sim.number_checks import finite_number
from hideaway.sim.units import MIB
from hideaway.sim.world.copies import LinkOptions

BLOCK_BYTES = MIB
"""Bytes copied at one go between two looks at the clock, so that the load on memory is as even as a link's."""


class PacedMemoryDevice(WorkerDevice):
    """Copies experts of a store, held in memory, into `num_slots` slots at a set rate.

    Parameters
    ----------
    store : ExpertStore
        Where the experts are; loaded and checked unless `reader` is given.
    num_slots : int
        Slots of the arena, one expert each.
    bytes_per_second, latency_seconds : float
        Of the emulated link.
    options, retries, verify
        As for the disk device.
    reader : Reader, optional
        Memory that holds the store's experts, to be shared between devices.
    progress : callable, optional
        Called once an expert while they are loaded.
    """

    def __init__(
        self,
        store: ExpertStore,
        num_slots: int,
        *,
        bytes_per_second: float,
        latency_seconds: float = 0.0,
        options: LinkOptions | None = None,
        retries: int = DEFAULT_RETRIES,
        verify: bool = False,
        reader: Reader | None = None,
        progress: Callable[[], None] | None = None,
    ) -> None:
        rate = finite_number("bytes_per_second", bytes_per_second, above_minimum=True)
        latency = finite_number("latency_seconds", latency_seconds)
        source = MemoryReader(store, progress=progress) if reader is None else reader
        self._paced = _PacedMover(store, num_slots, source, rate, latency)
        super().__init__(
            self._paced,
            num_layers=store.description.num_layers,
            num_experts=store.description.num_experts,
            transfer_bytes=store.stride_bytes,
            options=options,
            retries=retries,
            verify=verify,
        )

    def facts(self) -> dict[str, object]:
        """Return what a result file must say: that the link is emulated, its set speed, and how late it ever was."""
        paced = self._paced
        return {
            "kind": "emulated link",
            **super().facts(),
            "set_bytes_per_second": paced.bytes_per_second,
            "set_latency_seconds": paced.latency_seconds,
            "worst_lateness_seconds": paced.worst_lateness_seconds,
        }


class _PacedMover(HostMover):
    def __init__(
        self,
        store: ExpertStore,
        num_slots: int,
        reader: Reader,
        bytes_per_second: float,
        latency_seconds: float,
    ) -> None:
        super().__init__(store, num_slots, reader)
        self.bytes_per_second = bytes_per_second
        self.latency_seconds = latency_seconds
        self.worst_lateness_seconds = 0.0
        self._free_at = 0.0

    def begin(self, piece: Piece) -> float:
        """Reserve the link and return when this copy starts."""
        start = max(time.perf_counter(), self._free_at)
        self._free_at = self._due(start, piece.num_bytes)
        return start

    def end(self, piece: Piece, begun: object) -> tuple[float, float]:
        assert isinstance(begun, float)
        offset, into = self._route(piece)
        for first in range(0, piece.num_bytes, BLOCK_BYTES):
            _sleep_until(self._due(begun, first))
            self._read(offset + first, into[first : first + BLOCK_BYTES])
        due = self._due(begun, piece.num_bytes)
        _sleep_until(due)
        end = time.perf_counter()
        self.worst_lateness_seconds = max(self.worst_lateness_seconds, end - due)
        return begun, end

    def _due(self, start_seconds: float, num_bytes: int) -> float:
        return start_seconds + self.latency_seconds + num_bytes / self.bytes_per_second


def _sleep_until(at_seconds: float) -> None:
    left = at_seconds - time.perf_counter()
    if left > 0:
        time.sleep(left)
