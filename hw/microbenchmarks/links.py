"""Devices over one store, one for each way of moving: opened when first asked for, closed together."""

from __future__ import annotations

from typing import NamedTuple

from hideaway.hw.devices.base import Arrival, Transfer
from hideaway.hw.devices.choose import open_device
from hideaway.hw.devices.memory_reader import MemoryReader
from hideaway.hw.devices.paced_memory import PacedMemoryDevice
from hideaway.hw.devices.worker_device import WorkerDevice
from hideaway.hw.engine.open_device import DeviceOptions
from hideaway.hw.microbenchmarks.benchmark import COLD_CACHES
from hideaway.hw.microbenchmarks.block_view import BlockView
from hideaway.hw.store.reader import ExpertStore
from hideaway.sim.commands import Band
from hideaway.sim.errors import HideawayError
from hideaway.sim.units import MIB
from hideaway.sim.world.copies import LinkOptions

_LEAST_SLOTS = 16
_VIEW_BYTES = 256 * MIB
"""Memory that a view of other block sizes may hold; the disk is read over the whole store."""


class OpenLink(NamedTuple):
    """A device, and how many layers and experts can be asked of it."""

    device: WorkerDevice
    num_layers: int
    num_experts: int


class Links:
    """Devices by options, block size and use.

    Parameters
    ----------
    store : ExpertStore or None
        The experts, where any point needs them.
    cache_bytes : int
        Last-level cache, which the slots of a device must exceed.
    """

    def __init__(self, options: DeviceOptions, store: ExpertStore | None, *, cache_bytes: int) -> None:
        self._options = options
        self._store = store
        self._cache_bytes = cache_bytes
        self._open: dict[tuple[LinkOptions, int | None, str], OpenLink] = {}
        self._memory: dict[int, MemoryReader] = {}

    def link(self, options: LinkOptions, block_bytes: int | None, use: str) -> OpenLink:
        """Return a device over the store with these options; with `block_bytes`, over blocks of that size.

        Opened once for each `use`. Changes state.
        """
        key = options, block_bytes, use
        if key not in self._open:
            self._open[key] = self._opened(options, block_bytes)
        return self._open[key]

    def facts(self) -> dict[str, object]:
        """Return what the first device that was opened says of itself; nothing where none was."""
        return next((link.device.facts() for link in self._open.values()), {})

    def close(self) -> None:
        """Close every device. Changes state."""
        for link in self._open.values():
            link.device.close()
        self._open.clear()

    def _opened(self, options: LinkOptions, block_bytes: int | None) -> OpenLink:
        store, name = self._store, self._options.name
        if store is None:
            raise HideawayError(
                "a point needs experts but its benchmark does not say so; this is a fault in it"
            )
        if block_bytes is not None:
            store = BlockView(store, block_bytes, None if name == "disk" else _VIEW_BYTES)
        elif name == "cuda" and self._open:
            store = BlockView(store, store.stride_bytes, _VIEW_BYTES)  # each device pins what it holds
        layers, experts = store.description.num_layers, store.description.num_experts
        wanted = -(-2 * COLD_CACHES * self._cache_bytes // store.stride_bytes)
        num_slots = min(layers * experts, max(_LEAST_SLOTS, wanted))
        return OpenLink(self._device_over(store, num_slots, options), layers, experts)

    def _device_over(self, store: ExpertStore, num_slots: int, options: LinkOptions) -> WorkerDevice:
        if self._options.name != "paced-memory":
            return open_device(self._options.name, store, num_slots, options=options)
        rate = self._options.link_bytes_per_second
        assert rate is not None
        if store.stride_bytes not in self._memory:
            self._memory[store.stride_bytes] = MemoryReader(store)
        return PacedMemoryDevice(
            store,
            num_slots,
            bytes_per_second=rate,
            latency_seconds=self._options.link_latency_seconds or 0.0,
            options=options,
            reader=self._memory[store.stride_bytes],
        )


def move(device: WorkerDevice, transfers: list[Transfer], band: Band = Band.ON_DEMAND) -> list[Arrival]:
    """Bring experts in, wait for all of them, return their arrivals. Changes state.

    Raises
    ------
    HideawayError
        One could not be brought in.
    """
    device.submit(transfers, band)
    return drain(device, len(transfers))


def drain(device: WorkerDevice, count: int) -> list[Arrival]:
    """Wait for so many arrivals and return them; errors as `move`. Changes state."""
    arrived: list[Arrival] = []
    while len(arrived) < count:
        found = device.wait()
        if not found:
            raise HideawayError(
                f"only {len(arrived)} of {count} transfers ended; this is a fault in the device"
            )
        arrived += found
    failure = next((arrival.failure for arrival in arrived if arrival.failure is not None), None)
    if failure is not None:
        raise HideawayError(f"the measurement cannot go on: {failure}")
    return arrived
