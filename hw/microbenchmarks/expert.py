"""Routed experts straight from the device's slots: resident ones one after another, and one that has just arrived.

Through the engine's own `hits` and `arrival`, rows gathered and results put in their places. Slots are read in turn,
so that an expert's bytes have left the cache; after an arrival they are where the link left them.
"""

from __future__ import annotations

from typing import ClassVar

from hideaway.hw.devices.base import Transfer
from hideaway.hw.microbenchmarks.benchmark import Axes, Benchmark, Operation, whole
from hideaway.hw.microbenchmarks.forwards import spread_ids
from hideaway.hw.microbenchmarks.links import move
from hideaway.hw.microbenchmarks.rig import Rig

INFORMS = ("expert.group_launch_seconds", "expert.launch_seconds", "memory.read_bytes_per_second",
           "compute.expert_flops_per_second")  # fmt: skip
_MOST_PAIRS = 2048


class Experts(Benchmark):
    """The hits of a layer visit: so many experts, each serving so many rows."""

    name = "experts"
    informs = INFORMS
    axes: ClassVar = {
        "shape": "model",
        "format": "stored format",
        "experts": "resident experts computed one after another",
        "rows_each": "rows that each of them serves",
    }
    summary = "resident experts by their number and rows"
    needs_experts = True

    def points(self, *, quick: bool) -> list[Axes]:
        """Return single experts by rows, then groups."""
        if quick:
            wanted = [(1, 1), (1, 8), (1, 64), (4, 1), (8, 4), (16, 2)]
        else:
            wanted = [(experts, rows) for experts in (1, 4, 16) for rows in (1, 2, 4, 8, 16, 32, 64, 128)]
        return [
            self._point(experts, rows)
            for experts, rows in wanted
            if experts <= self.subject.spec.num_experts and experts * rows <= _MOST_PAIRS
        ]

    def bytes(self, axes: Axes) -> int:
        """Return the bytes of the experts."""
        return whole(axes, "experts") * self.subject.spec.expert_bytes

    def flops(self, axes: Axes) -> int:
        """Return two operations a weight and row."""
        pairs = whole(axes, "experts") * whole(axes, "rows_each")
        return pairs * self.subject.spec.expert_flops_per_row

    def prepare(self, rig: Rig, axes: Axes) -> Operation:
        """Return `hits` over slots that have not been read for long."""
        count = whole(axes, "experts")
        work = rig.work(spread_ids(count, whole(axes, "rows_each"), self.subject.spec.top_k))
        work.dense(0)  # the rows that its experts read
        slots: dict[int, int] = {}

        def set_up() -> None:
            slots.update(enumerate(rig.next_slots(count)))

        return Operation(
            lambda: work.hits(0, slots), set_up, cycle_bytes=rig.device.num_slots * rig.device.slot_bytes
        )

    def _point(self, experts: int, rows_each: int) -> Axes:
        return {
            "shape": self.subject.name,
            "format": self.subject.spec.expert_format,
            "experts": experts,
            "rows_each": rows_each,
        }


class Arrival(Benchmark):
    """One expert, right after the link brought it."""

    name = "arrival"
    informs = INFORMS
    axes: ClassVar = {"shape": "model", "format": "stored format", "rows": "rows that it serves"}
    cache = "arrived"
    summary = "one expert that has just come over the link, by rows"
    needs_experts = True

    def points(self, *, quick: bool) -> list[Axes]:
        """Return points by rows."""
        rows = (1, 8) if quick else (1, 2, 4, 8, 16, 64)
        spec = self.subject.spec
        return [{"shape": self.subject.name, "format": spec.expert_format, "rows": count} for count in rows]

    def bytes(self, axes: Axes) -> int:
        """Return the bytes of the expert."""
        return self.subject.spec.expert_bytes

    def flops(self, axes: Axes) -> int:
        """Return two operations a weight and row."""
        return whole(axes, "rows") * self.subject.spec.expert_flops_per_row

    def prepare(self, rig: Rig, axes: Axes) -> Operation:
        """Return `arrival` after a transfer."""
        work = rig.work(spread_ids(1, whole(axes, "rows"), self.subject.spec.top_k))
        work.dense(0)
        slot = rig.next_slots(1)

        def set_up() -> None:
            slot[:] = rig.next_slots(1)
            ((layer, expert),) = rig.keys(rig.resident, 1)
            move(rig.device, [Transfer(layer, expert, slot[0])])

        return Operation(lambda: work.arrival(0, 0, slot[0]), set_up)
