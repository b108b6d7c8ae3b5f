"""The device's own time of an operation on CUDA, beside the host's: events on the stream that computes.

The host's time holds launches and the wait for the stream, as the engine's does; the events' time holds what the
stream did from the first launch to the last kernel. Nothing here is used without a CUDA device.
"""

from __future__ import annotations

from typing import Any

import torch

from hideaway.hw.microbenchmarks.benchmark import Operation, Readings
from hideaway.sim.units import MILLISECOND

DEVICE = "device"


def with_events(operation: Operation) -> Operation:
    """Return an operation that also reads the device's time, unless it reads one itself. Changes the operation."""
    cuda: Any = torch.cuda
    start, end = (cuda.Event(enable_timing=True) for _ in range(2))
    run, readings = operation.run, operation.readings

    def timed() -> None:
        start.record()
        run()
        end.record()

    def read() -> Readings:
        end.synchronize()
        return {DEVICE: (start.elapsed_time(end) * MILLISECOND,), **readings()}

    operation.run, operation.readings = timed, read
    operation.activity = "waits"  # the accelerator computes, the thread waits for it
    return operation
