"""The link: transfers by size, number, chunk, streams, depth and way of issuing, through the engine's own device.

Timed are the whole (from the call to the last arrival taken), the call, each copy on the device's own clock, the link's
idle time between two copies, and the time from the end of the last until the waiting thread has it in hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, pairwise
from typing import ClassVar

from hideaway.hw.devices.base import Arrival, Transfer
from hideaway.hw.microbenchmarks.benchmark import Axes, Benchmark, Operation, Readings, whole
from hideaway.hw.microbenchmarks.links import drain
from hideaway.hw.microbenchmarks.rig import Rig
from hideaway.sim.commands import Band
from hideaway.sim.units import MIB
from hideaway.sim.world.copies import LinkOptions

PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class _Way:
    """Transfers of a point; zero block bytes mean whole experts."""

    block_bytes: int = 0
    transfers: int = 4
    chunk_bytes: int = 0
    streams: int = 1
    depth: int = 2
    batched: bool = False


_QUICK = (
    _Way(transfers=1),
    _Way(transfers=4),
    _Way(transfers=4, batched=True),
    _Way(transfers=2, chunk_bytes=MIB // 4),
    _Way(block_bytes=8 * MIB, transfers=2),
)
_FULL = (
    *(_Way(transfers=count) for count in (1, 4, 8, 16)),
    *(_Way(transfers=count, batched=True) for count in (4, 16)),
    *(_Way(block_bytes=size, transfers=4) for size in (MIB // 16, MIB // 4, MIB, 4 * MIB, 16 * MIB)),
    *(_Way(chunk_bytes=size) for size in (MIB // 4, MIB)),
    *(_Way(transfers=8, streams=count, depth=max(2, count)) for count in (2, 4)),
    *(_Way(transfers=8, depth=count) for count in (1, 8)),
)


class Link(Benchmark):
    """Transfers into slots."""

    name = "link"
    informs = ("link.h2d_bytes_per_second", "link.latency_seconds")
    axes: ClassVar = {
        "transfers": "asked for in one call",
        "transfer_bytes": "bytes of one transfer",
        "chunk_bytes": "pieces of a transfer, 0 for whole ones",
        "streams": "copies under way at once",
        "submitted_depth": "units on the device at once",
        "batched": "whether one unit is all that a call asks",
    }
    summary = "transfers by size, number, chunk, streams, depth and way of issuing"
    needs_experts = True

    def points(self, *, quick: bool) -> list[Axes]:
        """Return whole experts in several ways, and blocks of other sizes."""
        stride = _pages(self.subject.spec.expert_bytes)
        room = self.subject.num_layers * self.subject.spec.num_experts * stride
        points: list[Axes] = []
        for way in _QUICK if quick else _FULL:
            size = way.block_bytes or stride
            if way.chunk_bytes < size and size * max(way.transfers, 2) <= room:
                points.append(
                    axes_of(
                        way.transfers, size, LinkOptions(way.batched, way.depth, way.chunk_bytes, way.streams)
                    )
                )
        return points

    def bytes(self, axes: Axes) -> int:
        """Return the bytes of all transfers."""
        return whole(axes, "transfers") * whole(axes, "transfer_bytes")

    def prepare(self, rig: Rig, axes: Axes) -> Operation:
        """Return submission and wait."""
        mover = BlockMover(rig, axes, use="transfers")

        def run() -> None:
            mover.submit()
            mover.wait()

        piece = whole(axes, "chunk_bytes") or whole(axes, "transfer_bytes")
        return Operation(
            run,
            mover.choose,
            readings=mover.readings,
            reading_bytes={"copy": piece},
            activity="waits",
        )


class BlockMover:
    """Moves random experts or blocks into slots in turn, and keeps the times of the last move.

    Parameters
    ----------
    axes : Axes
        Of the link.
    use : str
        Devices are opened once for each use.
    """

    def __init__(self, rig: Rig, axes: Axes, *, use: str) -> None:
        size = whole(axes, "transfer_bytes")
        own = _pages(rig.subject.spec.expert_bytes)
        self._rig = rig
        self._link = rig.link(options_of(axes), None if size == own else size, use)
        self._device = self._link.device
        self._count = whole(axes, "transfers")
        self._piece_bytes = whole(axes, "chunk_bytes") or size
        self._slots = cycle(range(self._device.num_slots))
        self._chosen: list[Transfer] = []
        self._called = self._returned = self._taken = 0.0
        self._arrivals: list[Arrival] = []

    def choose(self) -> None:
        """Choose what moves next. Changes state."""
        keys = self._rig.keys(self._link, self._count)
        self._chosen = [Transfer(*key, next(self._slots)) for key in keys]

    def submit(self) -> None:
        """Hand the transfers to the device. Changes state."""
        self._called = self._device.now_seconds()
        self._device.submit(self._chosen, Band.ON_DEMAND)
        self._returned = self._device.now_seconds()

    def wait(self) -> None:
        """Wait for all of them. Changes state."""
        self._arrivals = drain(self._device, self._count)
        self._taken = self._device.now_seconds()

    def readings(self) -> Readings:
        """Return the times of the last move."""
        ends = [arrival.end_seconds for arrival in self._arrivals]
        return {
            "submit": (self._returned - self._called,),
            "copy": copy_seconds(self._arrivals, self._piece_bytes),
            "gap": gap_seconds(self._arrivals),
            "wake": (self._taken - max(ends),),
        }


def copy_seconds(arrivals: Sequence[Arrival], piece_bytes: int) -> list[float]:
    """Return the seconds of each copy of a whole piece; a last chunk is shorter and left out."""
    return [
        copy.end_seconds - copy.start_seconds
        for arrival in arrivals
        for copy in arrival.copies
        if copy.bytes == piece_bytes
    ]


def gap_seconds(arrivals: Sequence[Arrival]) -> list[float]:
    """Return the seconds between each copy's end and the next one's start, where copies follow one another."""
    copies = sorted(
        (copy for arrival in arrivals for copy in arrival.copies), key=lambda copy: copy.start_seconds
    )
    gaps = [later.start_seconds - earlier.end_seconds for earlier, later in pairwise(copies)]
    return [gap for gap in gaps if gap > 0]


def axes_of(transfers: int, transfer_bytes: int, options: LinkOptions) -> Axes:
    """Return the axes of a point."""
    return {
        "transfers": transfers,
        "transfer_bytes": transfer_bytes,
        "chunk_bytes": options.chunk_bytes,
        "streams": options.streams,
        "submitted_depth": options.submitted_depth,
        "batched": options.batched,
    }


def options_of(axes: Axes) -> LinkOptions:
    """Return the options of a point."""
    return LinkOptions(
        bool(axes["batched"]),
        whole(axes, "submitted_depth"),
        whole(axes, "chunk_bytes"),
        whole(axes, "streams"),
    )


def _pages(num_bytes: int) -> int:
    return -(-num_bytes // PAGE_BYTES) * PAGE_BYTES
