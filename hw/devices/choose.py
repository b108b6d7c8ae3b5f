"""A device by its name on the command line."""

from __future__ import annotations

from collections.abc import Callable

from hideaway.hw.devices.cuda import CudaDevice
from hideaway.hw.devices.disk import DiskDevice
from hideaway.hw.devices.paced_memory import PacedMemoryDevice
from hideaway.hw.devices.worker_device import DEFAULT_RETRIES, WorkerDevice
from hideaway.hw.store.reader import ExpertStore
from hideaway.sim.errors import InputError
from hideaway.sim.world.copies import LinkOptions

DEVICE_KINDS = ("cuda", "disk", "paced-memory")


def open_device(
    kind: str,
    store: ExpertStore,
    num_slots: int,
    *,
    options: LinkOptions | None = None,
    retries: int = DEFAULT_RETRIES,
    verify: bool = False,
    bytes_per_second: float | None = None,
    latency_seconds: float = 0.0,
    progress: Callable[[], None] | None = None,
) -> WorkerDevice:
    """Return a device that brings experts of `store` into `num_slots` slots.

    Parameters
    ----------
    kind : {"cuda", "disk", "paced-memory"}
        Which device.
    verify : bool
        Check every expert that was moved (cuda: experts are checked when they are loaded instead).
    bytes_per_second, latency_seconds : float
        Of the emulated link; the first is needed for paced-memory and refused elsewhere.
    options, retries, progress
        As the devices take them; progress is called while experts are loaded into memory.

    Raises
    ------
    InputError
        There is no such device, or its speed is missing or superfluous.
    """
    if kind not in DEVICE_KINDS:
        raise InputError(f"device is {kind!r} but must be one of {', '.join(DEVICE_KINDS)}; choose one")
    if (bytes_per_second is None) == (kind == "paced-memory"):
        what = "needs a bandwidth" if bytes_per_second is None else "has a bandwidth of its own"
        raise InputError(f"the {kind} device {what}; give bytes_per_second for paced-memory and only there")
    if kind == "cuda":
        return CudaDevice(store, num_slots, options=options, retries=retries, progress=progress)
    if bytes_per_second is None:
        return DiskDevice(store, num_slots, options=options, retries=retries, verify=verify)
    return PacedMemoryDevice(
        store,
        num_slots,
        bytes_per_second=bytes_per_second,
        latency_seconds=latency_seconds,
        options=options,
        retries=retries,
        verify=verify,
        progress=progress,
    )
