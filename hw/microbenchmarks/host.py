"""Host memory read and copied by as many threads as compute, cold: the roof under which experts and slots are read."""

from __future__ import annotations

from itertools import cycle
from typing import ClassVar

import torch

from hideaway.hw.fp4.build import KernelBuildError
from hideaway.hw.fp4.compiled_kernel import CompiledKernel, load_kernel
from hideaway.hw.microbenchmarks.benchmark import COLD_CACHES, Axes, Benchmark, Operation, whole
from hideaway.hw.microbenchmarks.rig import Rig
from hideaway.sim.units import MIB

_BLOCK_BYTES = 16 * MIB


class Memory(Benchmark):
    """Blocks of memory in turn."""

    name = "memory"
    informs = ("memory.read_bytes_per_second", "host.memory_bytes_per_second")
    axes: ClassVar = {"call": "read, or copy to another place", "transfer_bytes": "bytes of a block"}
    summary = "cold blocks of memory read and copied"

    def points(self, *, quick: bool) -> list[Axes]:
        """Return reading and copying."""
        return [{"call": call, "transfer_bytes": _BLOCK_BYTES} for call in ("read", "copy")]

    def bytes(self, axes: Axes) -> int:
        """Return the bytes of a block."""
        return whole(axes, "transfer_bytes")

    def prepare(self, rig: Rig, axes: Axes) -> Operation:
        """Return one block, read by the experts' own threads, or copied by torch."""
        size = whole(axes, "transfer_bytes")
        count = 2 + COLD_CACHES * self.subject.cache_bytes // size
        blocks = torch.zeros((count, size), dtype=torch.uint8, device=rig.torch_device)
        target = torch.empty_like(blocks[0])
        kernel = _kernel(rig)
        turns = cycle(range(count))
        current = [0]

        def set_up() -> None:
            current[0] = next(turns)

        def run() -> None:
            block = blocks[current[0]]
            if axes["call"] == "copy":
                target.copy_(block)
            elif kernel is not None:
                kernel.read(block.data_ptr(), size)
            else:
                block.view(torch.float32).sum()
            rig.settle()

        return Operation(run, set_up, cycle_bytes=count * size)


def _kernel(rig: Rig) -> CompiledKernel | None:
    """Return the compiled kernel, None on an accelerator and where it cannot be built."""
    if rig.torch_device.type != "cpu":
        return None
    try:
        return load_kernel(rig.options.threads)
    except KernelBuildError:
        return None
