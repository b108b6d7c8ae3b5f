"""The disk device: experts are read from a store straight into slots of host memory, a true slow tier on any machine.

One reader thread by default: a single large read already keeps the disk busy, more of them only lengthen each.
"""

from __future__ import annotations

import time

from hideaway.hw.devices.direct_reader import DirectReader
from hideaway.hw.devices.host_mover import HostMover, Route
from hideaway.hw.devices.mover import Reader
from hideaway.hw.devices.transfer_queue import Piece
from hideaway.hw.devices.worker_device import DEFAULT_RETRIES, WorkerDevice
from hideaway.hw.store.reader import ExpertStore
from hideaway.sim.world.copies import LinkOptions


class DiskDevice(WorkerDevice):
    """Reads experts of a store into `num_slots` slots.

    Parameters
    ----------
    store : ExpertStore
        Where the experts are.
    num_slots : int
        Slots of the arena, one expert each.
    options : LinkOptions, optional
        Batching, submitted depth, chunks, and as many reader threads as it has streams.
    retries : int
        Attempts after the first before a transfer is reported as failed.
    verify : bool
        Check the checksum of every expert that was read.
    reader : Reader, optional
        Reads the store's data file; a `DirectReader` of the device's own by default.
    """

    def __init__(
        self,
        store: ExpertStore,
        num_slots: int,
        *,
        options: LinkOptions | None = None,
        retries: int = DEFAULT_RETRIES,
        verify: bool = False,
        reader: Reader | None = None,
    ) -> None:
        self._opened = DirectReader(store.data_path) if reader is None else None
        source = self._opened or reader
        assert source is not None
        self._fallback_reason: object = getattr(source, "fallback_reason", None)
        super().__init__(
            _DiskMover(store, num_slots, source),
            num_layers=store.description.num_layers,
            num_experts=store.description.num_experts,
            transfer_bytes=store.stride_bytes,
            options=options,
            num_movers=1 if options is None else options.streams,
            retries=retries,
            verify=verify,
        )

    def facts(self) -> dict[str, object]:
        """Return what a result file must say: whether reads were direct, and if not why."""
        return {
            "kind": "disk",
            **super().facts(),
            "direct": self._fallback_reason is None,
            "fallback_reason": self._fallback_reason,
        }

    def close(self) -> None:
        """Fail what is queued, let what is submitted end, stop the workers, close the file. Changes state."""
        super().close()
        if self._opened is not None:
            self._opened.close()


class _DiskMover(HostMover):
    def begin(self, piece: Piece) -> Route:
        """Return the way of a piece, so that its reader thread need not find it; nothing moves yet."""
        return self.route(piece)

    def end(self, piece: Piece, begun: Route) -> tuple[float, float]:
        start = time.perf_counter()
        self.read(begun.offset, begun.into)
        return start, time.perf_counter()
