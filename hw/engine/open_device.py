"""From `--device NAME` to a device over a store, and to what computes experts from its slots."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import torch

from hideaway.hw.devices.choose import DEVICE_KINDS, open_device
from hideaway.hw.devices.cuda import CudaDevice
from hideaway.hw.devices.worker_device import WorkerDevice
from hideaway.hw.engine.device_expert import RowByRowExpert, open_device_expert
from hideaway.hw.engine.torch_work import ComputeSlots
from hideaway.hw.fp4.cpu_expert import CpuExpert
from hideaway.hw.fp4.layouts import ExpertLayout
from hideaway.hw.store.reader import ExpertStore
from hideaway.hw.triton_kernels.triton_experts import TritonExperts
from hideaway.sim.costs import LinkCosts
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.scenario.fields import Scenario
from hideaway.sim.world.copies import link_options


@dataclass(frozen=True, slots=True)
class DeviceOptions:
    """Which device, and what only some of them have.

    Parameters
    ----------
    name : str
        One of `DEVICE_KINDS`.
    link_bytes_per_second : float or None
        Rate of the emulated link of paced-memory; the profile's measured one by default.
    link_latency_seconds : float or None
        Its latency, likewise.
    threads : int
        Threads that compute.
    verify : bool
        Check the checksum of every expert that moved.
    """

    name: str
    threads: int
    link_bytes_per_second: float | None = None
    link_latency_seconds: float | None = None
    verify: bool = False

    def __post_init__(self) -> None:
        if self.name not in DEVICE_KINDS:
            raise InputError(f"device is {self.name!r}; it must be one of {', '.join(DEVICE_KINDS)}")
        if self.name != "paced-memory" and not (
            self.link_bytes_per_second is None and self.link_latency_seconds is None
        ):
            raise InputError(
                f"a link rate was given with the {self.name} device; only paced-memory has a set rate"
            )


def open_slots(
    options: DeviceOptions, store: ExpertStore, scenario: Scenario, num_slots: int, link: LinkCosts
) -> WorkerDevice:
    """Return the device with its slots; to be closed by the caller.

    Parameters
    ----------
    link : LinkCosts
        The profile's, for paced-memory where the options say nothing.
    """
    rate, latency = options.link_bytes_per_second, options.link_latency_seconds
    paced = options.name == "paced-memory"
    return open_device(
        options.name,
        store,
        num_slots,
        options=link_options(scenario),
        verify=options.verify,
        bytes_per_second=(link.bytes_per_second if rate is None else rate) if paced else None,
        latency_seconds=link.latency_seconds if latency is None else latency,
    )


class Expert(Protocol):
    """Computes one expert from its bytes."""

    @property
    def kernel_name(self) -> str: ...  # noqa: D102
    def forward(self, buffer: torch.Tensor, rows: torch.Tensor) -> torch.Tensor: ...  # noqa: D102


def open_expert(options: DeviceOptions, layout: ExpertLayout, *, invariant: bool = False) -> Expert:
    """Return what computes experts where the device's slots are; warmed up, which may measure for a second.

    Parameters
    ----------
    invariant : bool
        A row's output is to be the same bits whatever the number of rows, in float32.
    """
    torch.set_num_threads(options.threads)
    if options.name == "cuda":
        device = torch.device("cuda")
        return RowByRowExpert(layout, device) if invariant else open_device_expert(layout, device)
    expert = CpuExpert(layout, threads=options.threads, invariant=invariant)
    expert.way_of(64)
    return expert


def slots_at_once(expert: Expert, device: WorkerDevice) -> ComputeSlots | None:
    """Return what computes the experts of several slots in one launch; None where there is nothing that does."""
    if isinstance(expert, TritonExperts) and isinstance(device, CudaDevice):
        return partial(expert.forward_slots, device.slots)
    return None


def compute_device(options: DeviceOptions) -> torch.device:
    """Return where dense work is done."""
    return torch.device("cuda" if options.name == "cuda" else "cpu")


def environment(options: DeviceOptions, device: WorkerDevice, expert: Expert) -> dict[str, object]:
    """Return what a result must say of where it was made."""
    return {
        "device": device.facts(),
        "threads": options.threads,
        "openmp_wait_policy": os.environ.get("OMP_WAIT_POLICY", "not set"),
        "torch": torch.__version__,
        "expert_kernel": expert.kernel_name,
        "dense_dtype": "float32",
        "machine": platform.machine(),
        "processor": _processor(),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration, UnicodeDecodeError):
        return platform.processor() or "unknown"
