"""The drafter over the blocks of all sequences at once, the target's head included."""

from __future__ import annotations

from typing import ClassVar

from hideaway.hw.engine.work import Seat
from hideaway.hw.microbenchmarks.benchmark import Axes, Benchmark, Operation, whole
from hideaway.hw.microbenchmarks.forwards import spread_ids
from hideaway.hw.microbenchmarks.rig import Rig
from hideaway.hw.microbenchmarks.subject import FLOAT_BYTES

_FLOPS_PER_WEIGHT = 2


class Draft(Benchmark):
    """One parallel draft forward."""

    name = "draft"
    informs = ("draft.launch_seconds", "memory.read_bytes_per_second", "compute.flops_per_second")
    axes: ClassVar = {
        "shape": "model",
        "sequences": "blocks drafted together",
        "block_size": "rows of a block",
        "drafter_parameters": "weights of the drafter, head excluded",
    }
    summary = "draft forward by block and batch"

    def points(self, *, quick: bool) -> list[Axes]:
        """Return points by block size and batch."""
        wanted = [(1, 8), (4, 8)] if quick else [(n, b) for n in (1, 4, 8) for b in (4, 8, 16)]
        return [
            {
                "shape": self.subject.name,
                "sequences": sequences,
                "block_size": block,
                "drafter_parameters": round(self.subject.drafter_parameters),
            }
            for sequences, block in wanted
        ]

    def bytes(self, axes: Axes) -> int:
        """Return the drafter's and the head's weights."""
        return self._weights(axes) * FLOAT_BYTES

    def flops(self, axes: Axes) -> int:
        """Return two operations a weight and row."""
        rows = whole(axes, "sequences") * whole(axes, "block_size")
        return rows * _FLOPS_PER_WEIGHT * self._weights(axes)

    def prepare(self, rig: Rig, axes: Axes) -> Operation:
        """Return the engine's own `draft`."""
        work = rig.work(spread_ids(1, 1, self.subject.spec.top_k))
        block = whole(axes, "block_size")
        seats = tuple(Seat(number, block, block, 0) for number in range(whole(axes, "sequences")))
        return Operation(lambda: work.draft(seats), cycle_bytes=self.bytes(axes))

    def _weights(self, axes: Axes) -> int:
        architecture = self.subject.architecture
        return whole(axes, "drafter_parameters") + architecture.vocab_size * architecture.hidden_size
