"""Compute beside a busy link and a link beside busy compute: how much each slows the other.

The same computation runs with the link idle and with transfers under way from before it begins until after it ends;
copies that lie wholly within it are timed, and so are copies while the calling thread only waits.
"""

from __future__ import annotations

from typing import ClassVar

from hideaway.hw.devices.base import Arrival, Transfer
from hideaway.hw.microbenchmarks.attention import Attention
from hideaway.hw.microbenchmarks.benchmark import Axes, Benchmark, Operation, Readings
from hideaway.hw.microbenchmarks.expert import Experts
from hideaway.hw.microbenchmarks.link import PAGE_BYTES, copy_seconds, gap_seconds
from hideaway.hw.microbenchmarks.links import drain
from hideaway.hw.microbenchmarks.rig import Rig
from hideaway.sim.commands import Band
from hideaway.sim.world.copies import LinkOptions

_ALONE = 4
"""Transfers of the link alone."""
RAN_DRY = "link ran dry"


class Contention(Benchmark):
    """Pairs of points that differ in what the other side does."""

    name = "contention"
    informs = ("contention.compute_slowdown", "contention.link_slowdown")
    axes: ClassVar = {
        "shape": "model",
        "compute": "experts-1, experts-8: eight experts of so many rows; attention: one layer, 8 rows; none",
        "link": "busy throughout, or idle",
    }
    summary = "experts and attention beside a busy link, copies beside busy compute"
    needs_experts = True

    def points(self, *, quick: bool) -> list[Axes]:
        """Return each computation with and without the link, and the link alone."""
        computes = ("experts-1", "attention") if quick else ("experts-1", "experts-8", "attention")
        pairs = [(compute, link) for compute in computes for link in ("idle", "busy")] + [("none", "busy")]
        return [{"shape": self.subject.name, "compute": compute, "link": link} for compute, link in pairs]

    def bytes(self, axes: Axes) -> int | None:
        """Return what the computation reads."""
        family, inner = self._inner(axes)
        if family is None:
            return _ALONE * self._transfer_bytes
        return family.bytes(inner)

    def flops(self, axes: Axes) -> int | None:
        """Return the computation's operations."""
        family, inner = self._inner(axes)
        return None if family is None else family.flops(inner)

    def prepare(self, rig: Rig, axes: Axes) -> Operation:
        """Return the computation beside the link, or either alone."""
        family, inner = self._inner(axes)
        operation = None if family is None else family.prepare(rig, inner)
        if axes["link"] == "idle":
            assert operation is not None
            operation.activity = "waits"  # a pair is compared: samples of both count alike
            return operation
        return _beside(_Background(rig), operation, self._transfer_bytes)

    @property
    def _transfer_bytes(self) -> int:
        return -(-self.subject.spec.expert_bytes // PAGE_BYTES) * PAGE_BYTES

    def _inner(self, axes: Axes) -> tuple[Experts | Attention | None, Axes]:
        compute = str(axes["compute"])
        if compute == "none":
            return None, {}
        if compute == "attention":
            family = Attention(self.subject)
            return family, family.points_of([(1, 8, 512)])[0]
        spec = self.subject.spec
        count = min(8, spec.num_experts)
        rows = int(compute.removeprefix("experts-"))
        point: Axes = {
            "shape": self.subject.name,
            "format": spec.expert_format,
            "experts": count,
            "rows_each": rows,
        }
        return Experts(self.subject), point


class _Background:
    """Keeps a link of its own busy: transfers handed over before, what is left of them cancelled after.

    As many as the computation does not outlast, found out by doubling.
    """

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._link = rig.link(LinkOptions(), use="beside compute")
        self._count = min(_ALONE, self._most)
        self._keys: list[tuple[int, int]] = []
        self._begin = self._end = 0.0
        self._arrivals: list[Arrival] = []

    @property
    def _most(self) -> int:
        link = self._link
        return min(link.device.num_slots, link.num_layers * link.num_experts)

    def start(self) -> None:
        """Hand over transfers. Changes state."""
        self._keys = self._rig.keys(self._link, self._count)
        transfers = [Transfer(*key, slot) for slot, key in enumerate(self._keys)]
        device = self._link.device
        device.submit(transfers, Band.BACKGROUND)
        self._begin = device.now_seconds()

    def flaw(self) -> str | None:
        """Return why the link was not busy to the end, None where it was. Changes how many transfers are next."""
        device = self._link.device
        self._end = device.now_seconds()
        if device.outstanding():
            return None
        self._count = min(2 * self._count, self._most)
        return RAN_DRY

    def stop(self) -> None:
        """Cancel what has not been submitted, wait for the rest. Changes state."""
        device = self._link.device
        by_layer: dict[int, int] = {}
        for layer, expert in self._keys:
            by_layer[layer] = by_layer.get(layer, 0) | 1 << expert
        dropped = sum(device.cancel(layer, experts).bit_count() for layer, experts in by_layer.items())
        self._arrivals = drain(device, len(self._keys) - dropped)

    def wait_all(self) -> None:
        """Wait for every transfer, as the engine does when nothing is left to compute. Changes state."""
        self._arrivals = drain(self._link.device, len(self._keys))
        self._end = self._link.device.now_seconds()

    def readings(self, copy_bytes: int) -> Readings:
        """Return the copies that lay wholly within the computation, and the gaps between them."""
        within = [
            arrival
            for arrival in self._arrivals
            if arrival.start_seconds >= self._begin and arrival.end_seconds <= self._end
        ]
        return {"copy": copy_seconds(within, copy_bytes), "gap": gap_seconds(within)}


def _beside(link: _Background, operation: Operation | None, copy_bytes: int) -> Operation:
    """Return a computation beside a busy link, or the busy link alone."""
    reading_bytes = {"copy": copy_bytes}
    if operation is None:
        return Operation(
            link.wait_all,
            link.start,
            readings=lambda: link.readings(copy_bytes),
            reading_bytes=reading_bytes,
            activity="waits",
        )

    def set_up() -> None:
        operation.set_up()
        link.start()

    return Operation(
        operation.run,
        set_up,
        link.stop,
        flaw=link.flaw,
        readings=lambda: link.readings(copy_bytes),
        reading_bytes=reading_bytes,
        activity="waits",
        cycle_bytes=operation.cycle_bytes,
        close=operation.close,
    )
