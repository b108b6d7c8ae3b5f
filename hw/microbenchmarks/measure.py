"""One measurement from the plan to the file: `measure(...)`, or `Measuring` for slices between other work.

with Measuring(plan, rig, seed=1, version="…") as measuring:
    measuring.run(5.0)              # some seconds now,
    …                               # something else, a real run say,
    measuring.run(5.0, past_convergence=True)   # and some later: drift shows in the times of the samples
    measuring.file().write("M.json")
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

import numpy as np
import torch

from hideaway.hw.microbenchmarks.benchmark import COLD_CACHES
from hideaway.hw.microbenchmarks.cuda_events import with_events
from hideaway.hw.microbenchmarks.disturbance import SystemProbe
from hideaway.hw.microbenchmarks.environment import environment_of, load_average, utc_text
from hideaway.hw.microbenchmarks.plan import Plan, left_seconds
from hideaway.hw.microbenchmarks.point import Point
from hideaway.hw.microbenchmarks.rig import Rig
from hideaway.hw.microbenchmarks.session import Session
from hideaway.sim.inputs.measurements import MeasurementFile


class HostClock:
    """The engine's clock."""

    def now(self) -> float:
        """Return seconds."""
        return time.perf_counter()


class Measuring:
    """Prepared points that are sampled in slices. Used by one thread, the one that plays the engine.

    Parameters
    ----------
    version : str
        Of this program, for the file.
    facts : mapping, optional
        More for the file's environment: the arguments of a command, say.
    on_prepared : callable, optional
        Called after each point that was prepared.
    """

    def __init__(
        self,
        plan: Plan,
        rig: Rig,
        *,
        seed: int,
        version: str,
        facts: Mapping[str, Any] | None = None,
        on_prepared: Callable[[], None] = lambda: None,
    ) -> None:
        self._rig = rig
        self._seed, self._version = seed, version
        self._facts = dict(facts or {})
        self._begun = time.time()
        self._load = load_average()
        self._probe = SystemProbe(_cuda_mhz if rig.torch_device.type == "cuda" else None)
        self._measured_seconds = 0.0
        self._num_slices = 0
        with torch.inference_mode(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            points = []
            for planned in plan.points:
                operation = planned.benchmark.prepare(rig, planned.axes)
                if rig.torch_device.type == "cuda":
                    operation = with_events(operation)
                points.append(Point(planned.benchmark, planned.axes, operation))
                on_prepared()
        self._warnings = list(dict.fromkeys(str(warning.message) for warning in caught))
        self._started = time.time()
        self._session = Session(
            points,
            plan.effort,
            seed=seed,
            clock=HostClock(),
            probe=self._probe,
            empty_cache=_cache_emptier(rig),
            cache_bytes=rig.subject.cache_bytes,
        )

    def run(
        self,
        seconds: float,
        *,
        past_convergence: bool = False,
        on_progress: Callable[[float], None] = lambda share: None,
    ) -> bool:
        """Sample for about so many seconds; as `Session.run`. Changes state.

        An interrupt ends the slice after it is noted, so that `file` still returns what there is.
        """
        begin = time.perf_counter()
        try:
            with torch.inference_mode():
                return self._session.run(seconds, past_convergence=past_convergence, on_progress=on_progress)
        except KeyboardInterrupt:
            self._session.interrupted = True
            raise
        finally:
            self._measured_seconds += time.perf_counter() - begin
            self._num_slices += 1

    def file(self) -> MeasurementFile:
        """Return everything sampled so far, with the environment as it is now."""
        environment = {
            **environment_of(self._rig, seed=self._seed, version=self._version),
            **self._facts,
            "started": utc_text(self._started),
            "started_unix_seconds": round(self._started, 3),
            "preparing_seconds": round(self._started - self._begun, 3),
            "measured_seconds": round(self._measured_seconds, 3),
            "slices": self._num_slices,
            "load_average_before": self._load,
            "load_average_after": load_average(),
            "disturbances_seen": self._probe.facts(),
            "interrupted": self._session.interrupted,
            "warnings": self._warnings,
        }
        return MeasurementFile(environment, self._session.measurements())

    def close(self) -> None:
        """Give back what the points hold; the rig stays open. Changes state."""
        self._session.close()
        self._probe.close()

    def __enter__(self) -> Measuring:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def measure(
    plan: Plan,
    rig: Rig,
    *,
    seed: int,
    version: str,
    facts: Mapping[str, Any] | None = None,
    on_prepared: Callable[[], None] = lambda: None,
    on_progress: Callable[[float], None] = lambda share: None,
) -> MeasurementFile:
    """Return one measurement of a plan, taken within its seconds.

    Parameters
    ----------
    on_prepared, on_progress : callable
        As `Measuring` and its `run` take them.
    """
    begun = time.perf_counter()
    with Measuring(plan, rig, seed=seed, version=version, facts=facts, on_prepared=on_prepared) as measuring:
        measuring.run(left_seconds(plan, time.perf_counter() - begun), on_progress=on_progress)
        return measuring.file()


def _cache_emptier(rig: Rig) -> Callable[[], object]:
    """Return what reads (on an accelerator: writes) more memory than the last-level cache holds."""
    if rig.torch_device.type == "cuda":
        cache = torch.cuda.get_device_properties(rig.torch_device).L2_cache_size
        scratch = torch.empty(COLD_CACHES * cache, dtype=torch.uint8, device=rig.torch_device)

        def overwrite() -> None:
            scratch.zero_()
            rig.settle()

        return overwrite
    words = np.zeros(COLD_CACHES * rig.subject.cache_bytes // 8)
    return words.sum


def _cuda_mhz() -> float | None:
    """Return the present clock of the CUDA device, None where NVML is not installed."""
    try:
        return float(torch.cuda.clock_rate())
    except Exception:
        return None
