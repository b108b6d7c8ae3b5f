"""An *emulated link*: real copies between two places in memory, held to a latency and a rate that the user sets.

The bytes are real and so is their cost to cores and memory; the speed is not a measurement and every result says so
(`facts()["kind"]`). A copy starts when it is submitted or when the one before it on its stream is due to end, and is
due to end latency + bytes / rate later: the first-in first-out affine link of `hideaway.sim.world.copies`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from hideaway.hw.devices.host_mover import HostMover, Route
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
        options = options or LinkOptions()
        self._paced = _PacedMover(store, num_slots, source, (rate, latency), options.streams)
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


class _Window(NamedTuple):
    """When a copy starts, when its first byte may move and when its last one must have."""

    start: float
    bytes_from: float
    due: float


class _PacedMover(HostMover):
    def __init__(
        self, store: ExpertStore, num_slots: int, reader: Reader, link: tuple[float, float], streams: int
    ) -> None:
        super().__init__(store, num_slots, reader)
        self.bytes_per_second, self.latency_seconds = link
        self.worst_lateness_seconds = 0.0
        self._free_at = 0.0
        self._streams: deque[float] = deque([0.0] * streams, maxlen=streams)

    def begin(self, piece: Piece) -> tuple[Route, _Window]:
        """Reserve the link: a copy takes turns for the bandwidth, but its latency runs beside other streams."""
        start = max(time.perf_counter(), self._streams[0])
        bytes_from = max(start + self.latency_seconds, self._free_at)
        self._free_at = bytes_from + piece.num_bytes / self.bytes_per_second
        self._streams.append(self._free_at)
        return self.route(piece), _Window(start, bytes_from, self._free_at)

    def end(self, piece: Piece, begun: tuple[Route, _Window]) -> tuple[float, float]:
        route, window = begun
        for first in range(0, piece.num_bytes, BLOCK_BYTES):
            _sleep_until(window.bytes_from + first / self.bytes_per_second)
            self.read(route.offset + first, route.into[first : first + BLOCK_BYTES])
        _sleep_until(window.due)
        end = time.perf_counter()
        self.worst_lateness_seconds = max(self.worst_lateness_seconds, end - window.due)
        return window.start, end


def _sleep_until(at_seconds: float) -> None:
    left = at_seconds - time.perf_counter()
    if left > 0:
        time.sleep(left)
