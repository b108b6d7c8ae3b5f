"""What timing itself costs: a pair of looks at the clock, and the counters read around a sample.

Subtracted nowhere; it says below which times a sample means little.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar

from hideaway.hw.microbenchmarks.benchmark import Axes, Benchmark, Operation
from hideaway.hw.microbenchmarks.disturbance import SystemProbe
from hideaway.hw.microbenchmarks.rig import Rig

_REPETITIONS = 1000


class Timer(Benchmark):
    """Cost of a look at the clock, and of letting another thread run."""

    name = "timer"
    axes: ClassVar = {
        "call": "clock: one look at it; probe: the counters read around a sample; yield: time.sleep(0)"
    }
    cache = "warm"
    summary = "overhead of timing: clock, counters, giving way to another thread"

    def points(self, *, quick: bool) -> list[Axes]:
        """Return one point a call."""
        return [{"call": call} for call in ("clock", "probe", "yield")]

    def prepare(self, rig: Rig, axes: Axes) -> Operation:
        """Return a thousand calls in a row."""
        probe = SystemProbe()
        calls: dict[str, Callable[[], object]] = {
            "clock": time.perf_counter,
            "probe": probe.read,
            "yield": lambda: time.sleep(0),
        }
        call = calls[str(axes["call"])]

        def run() -> None:
            for _ in range(_REPETITIONS):
                call()

        return Operation(run, activity="waits", operations_per_sample=_REPETITIONS, close=probe.close)
