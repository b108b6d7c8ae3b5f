"""Bare copies between host and a CUDA device: both directions, pinned and pageable, by size, number and streams.

The engine's own transfers are in `link.py`; these say what the card and its driver allow. Timed with events on the
stream that copies, and from the host. No other device has points here.
"""

from __future__ import annotations

import time
from itertools import cycle
from typing import Any, ClassVar

import torch

from hideaway.hw.microbenchmarks.benchmark import Axes, Benchmark, Operation, Readings, whole
from hideaway.hw.microbenchmarks.rig import Rig
from hideaway.sim.units import MIB, MILLISECOND

_SIZES = (MIB // 16, MIB, 4 * MIB, 16 * MIB)


class CudaCopies(Benchmark):
    """`Tensor.copy_` between host and device memory."""

    name = "cuda_copy"
    informs = (
        "link.h2d_bytes_per_second",
        "link.latency_seconds",
        "link.pageable_bytes_per_second",
        "link.pageable_issue_seconds",
        "issue.seconds_per_call",
    )
    axes: ClassVar = {
        "direction": "to_device or to_host",
        "memory": "pinned or pageable host memory",
        "transfer_bytes": "bytes of one copy",
        "transfers": "copies one after another",
        "streams": "streams on which they take turns",
    }
    cache = "cold"
    summary = "bare copies to and from a CUDA device, pinned and pageable (cuda only)"

    def points(self, *, quick: bool) -> list[Axes]:
        """Return points on a CUDA device, none elsewhere."""
        if self.subject.device != "cuda":
            return []
        own = self.subject.spec.expert_bytes
        sizes = (MIB, own) if quick else (*_SIZES, own)
        found = [
            self._point(direction, memory, size)
            for direction in ("to_device", "to_host")
            for memory in ("pinned", "pageable")
            for size in sorted(set(sizes))
        ]
        ways = ((4, 1),) if quick else ((4, 1), (16, 1), (8, 2), (8, 4))
        return found + [self._point("to_device", "pinned", own, *way) for way in ways]

    def bytes(self, axes: Axes) -> int:
        """Return the bytes of all copies."""
        return whole(axes, "transfers") * whole(axes, "transfer_bytes")

    def prepare(self, rig: Rig, axes: Axes) -> Operation:
        """Return the copies, issued and awaited."""
        size, count = whole(axes, "transfer_bytes"), whole(axes, "transfers")
        pinned = axes["memory"] == "pinned"
        hosts = [torch.empty(size, dtype=torch.uint8, pin_memory=pinned).zero_() for _ in range(count)]
        devices = [torch.zeros(size, dtype=torch.uint8, device=rig.torch_device) for _ in range(count)]
        pairs = (
            zip(devices, hosts, strict=True)
            if axes["direction"] == "to_device"
            else zip(hosts, devices, strict=True)
        )
        copies = list(pairs)
        cuda: Any = torch.cuda
        streams = [cuda.Stream(rig.torch_device) for _ in range(whole(axes, "streams"))]
        start, end = (cuda.Event(enable_timing=True) for _ in range(2))
        issued = [0.0]

        def run() -> None:
            begin = time.perf_counter()
            turns = cycle(streams)
            start.record(streams[0])
            for target, source in copies:
                with cuda.stream(next(turns)):
                    target.copy_(source, non_blocking=True)
            end.record(streams[0])
            issued[0] = time.perf_counter() - begin
            for stream in streams:
                stream.synchronize()

        def readings() -> Readings:
            found = {"submit": (issued[0],)}
            if len(streams) == 1:
                found["device"] = (start.elapsed_time(end) * MILLISECOND,)
            return found

        return Operation(run, readings=readings, reading_bytes={"device": self.bytes(axes)}, activity="waits")

    def _point(
        self, direction: str, memory: str, transfer_bytes: int, transfers: int = 1, streams: int = 1
    ) -> Axes:
        return {
            "direction": direction,
            "memory": memory,
            "transfer_bytes": transfer_bytes,
            "transfers": transfers,
            "streams": streams,
        }
