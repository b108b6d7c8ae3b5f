"""A clock that only moves when told, and operations whose durations are scripted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from hideaway.hw.microbenchmarks.benchmark import Benchmark, Operation
from hideaway.hw.microbenchmarks.disturbance import Reading
from hideaway.hw.microbenchmarks.point import Point
from hideaway.hw.microbenchmarks.session import Session
from hideaway.hw.microbenchmarks.stopping import Effort

EFFORT = Effort(relative_width=0.05, fewest=8, most=40)


class ScriptedClock:
    def __init__(self):
        self.at = 100.0

    def now(self):
        return self.at

    def advance(self, seconds):
        self.at += seconds


class ScriptedProbe:
    """Counts processor time as the clock, less what the test takes away."""

    def __init__(self, clock):
        self.clock = clock
        self.waited = self.idle = self.stolen = 0.0
        self.switches = 0
        self.slow = False

    def read(self):
        cpu = self.clock.at - self.waited - self.idle
        return Reading(cpu, self.waited, self.switches, self.stolen)

    def clock_dropped(self):
        return self.slow


class Scripted(Benchmark):
    """One point whose runs take the durations of a script, the last one for ever."""

    summary = "scripted"
    informs = ("link.latency_seconds",)
    axes = {"case": "of the test"}  # noqa: RUF012

    def __init__(self, name="scripted", num_bytes=1000):
        self.name = name
        self._bytes = num_bytes

    def points(self, *, quick):
        return [{"case": 1}]

    def bytes(self, axes):
        return self._bytes

    def prepare(self, rig, axes):
        raise AssertionError("not used")


def forever(durations: Iterable[float]) -> Iterator[float]:
    last = 0.0
    for last in durations:
        yield last
    while True:
        yield last


def scripted_point(clock, durations, *, name="scripted", log=None, during: Callable = lambda: None, **fields):
    script = forever(durations)

    def run():
        if log is not None:
            log.append(name)
        during()
        clock.advance(next(script))

    return Point(Scripted(name), {"case": name}, Operation(run, **fields))


def session_of(
    points, clock, *, probe=None, seed=1, effort=EFFORT, empty_cache=lambda: None, cache_bytes=1000
):
    return Session(
        points,
        effort,
        seed=seed,
        clock=clock,
        probe=probe or ScriptedProbe(clock),
        empty_cache=empty_cache,
        cache_bytes=cache_bytes,
    )
