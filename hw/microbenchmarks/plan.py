"""What will be measured and about how long that takes, before anything is opened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hideaway.hw.microbenchmarks.benchmark import Axes, Benchmark
from hideaway.hw.microbenchmarks.stopping import FULL, QUICK, Effort
from hideaway.hw.microbenchmarks.subject import FLOAT_BYTES, Subject
from hideaway.sim.errors import InputError
from hideaway.sim.units import GB

QUICK_SECONDS = 50.0
FULL_SECONDS = 560.0
"""From the command to its end: under a minute, under ten, with room for a slow end."""
_CLOSING_SECONDS, _CLOSING_SHARE = 1.5, 0.05
_LEAST_SHARE = 0.1
"""Share of its seconds that a plan samples for even where opening took longer than it should."""

_READ_BYTES_PER_SECOND = 6 * GB
_LINK_BYTES_PER_SECOND = 1 * GB
_FLOPS_PER_SECOND = 4e10
_FIXED_SECONDS = 2e-4
_MADE_BYTES_PER_SECOND = 0.08 * GB
_RANDOM_BYTES_PER_SECOND = 0.5 * GB
_WARM_UP_RUNS = 6
"""A modest two-core machine; only the estimate that is printed rests on these, the budget does not."""


@dataclass(frozen=True, slots=True)
class PlannedPoint:
    """One point to be prepared."""

    benchmark: Benchmark
    axes: Axes

    def sample_seconds(self) -> float:
        """Return a guess of one sample, from its bytes and operations."""
        moved = self.benchmark.bytes(self.axes) or 0
        rate = _LINK_BYTES_PER_SECOND if self.benchmark.needs_experts else _READ_BYTES_PER_SECOND
        return _FIXED_SECONDS + moved / rate + (self.benchmark.flops(self.axes) or 0) / _FLOPS_PER_SECOND


@dataclass(frozen=True, slots=True)
class Plan:
    """Points, effort and the seconds they may take.

    Parameters
    ----------
    seconds : float
        For everything, from opening the store on.
    """

    points: tuple[PlannedPoint, ...]
    effort: Effort
    seconds: float

    @property
    def benchmark_names(self) -> tuple[str, ...]:
        """The benchmarks, in order."""
        return tuple(dict.fromkeys(point.benchmark.name for point in self.points))

    def sampling_seconds(self) -> float:
        """Return a guess of warm-up and twice the fewest samples of every point, at most the whole budget."""
        runs = _WARM_UP_RUNS + 2 * self.effort.fewest
        return min(self.seconds, runs * sum(point.sample_seconds() for point in self.points))


def make_plan(benchmarks: Sequence[Benchmark], *, quick: bool, seconds: float | None = None) -> Plan:
    """Return the plan of a quick or a full measurement.

    Raises
    ------
    InputError
        None of the benchmarks has a point on this device.
    """
    points = tuple(
        PlannedPoint(benchmark, axes) for benchmark in benchmarks for axes in benchmark.points(quick=quick)
    )
    if not points:
        names = ", ".join(benchmark.name for benchmark in benchmarks)
        raise InputError(f"{names} has no point on this device; choose another benchmark or device")
    budget = (QUICK_SECONDS if quick else FULL_SECONDS) if seconds is None else seconds
    return Plan(points, QUICK if quick else FULL, budget)


def opening_seconds(subject: Subject, *, store_is_there: bool) -> float:
    """Return a guess of making the store (where it is not there) and the dense weights."""
    spec = subject.spec
    dense = (spec.dense_bytes / 2 + subject.drafter_parameters) * FLOAT_BYTES / _RANDOM_BYTES_PER_SECOND
    made = 0.0 if store_is_there else spec.total_expert_bytes / _MADE_BYTES_PER_SECOND
    return 3.0 + dense + made


def left_seconds(plan: Plan, passed_seconds: float) -> float:
    """Return how long to sample when so much of the plan's time has passed."""
    closing = min(_CLOSING_SECONDS, _CLOSING_SHARE * plan.seconds)
    return max(plan.seconds - closing - passed_seconds, _LEAST_SHARE * plan.seconds)
