"""What asking for transfers costs the thread that asks: one by one against a batch, by their number."""

from __future__ import annotations

from typing import ClassVar

from hideaway.hw.microbenchmarks.benchmark import Axes, Benchmark, Operation, whole
from hideaway.hw.microbenchmarks.link import PAGE_BYTES, BlockMover, axes_of
from hideaway.hw.microbenchmarks.rig import Rig
from hideaway.sim.world.copies import LinkOptions


class Issue(Benchmark):
    """The call that hands transfers to the device; they move after it."""

    name = "issue"
    informs = ("issue.seconds_per_call", "issue.batch_seconds", "issue.batch_seconds_per_transfer")
    axes: ClassVar = {"transfers": "asked for in one call", "batched": "whether they are one unit"}
    cache = "warm"
    summary = "cost of asking for transfers, by their number, one by one and as a batch"
    needs_experts = True

    def points(self, *, quick: bool) -> list[Axes]:
        """Return points by number of transfers, both ways."""
        counts = (1, 4) if quick else (1, 2, 4, 8, 16)
        room = self.subject.num_layers * self.subject.spec.num_experts
        return [
            {"transfers": count, "batched": batched}
            for count in counts
            if count <= room
            for batched in (False, True)
        ]

    def prepare(self, rig: Rig, axes: Axes) -> Operation:
        """Return the call alone; the arrivals are awaited untimed."""
        expert_bytes = -(-self.subject.spec.expert_bytes // PAGE_BYTES) * PAGE_BYTES
        options = LinkOptions(batched=bool(axes["batched"]))
        mover = BlockMover(rig, axes_of(whole(axes, "transfers"), expert_bytes, options), use="transfers")
        return Operation(mover.submit, mover.choose, mover.wait, activity="waits")
