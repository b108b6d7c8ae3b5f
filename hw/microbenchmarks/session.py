"""The harness: runs prepared points in random order, as often as their spread asks for and the time allows.

A session goes through: *warm-up* (each point until two successive medians agree), then *rounds*. A round visits every
point that still needs samples once, in an order drawn anew; what drifts in the machine hits all points alike, and an
operation follows others as it does in the engine. Points that have converged are visited in every fourth round, so
that their samples, too, span the whole time. `run` may be called many times with other work in between: a session
keeps its points open and their samples together. Time is handed in; nothing here knows what is timed.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from hideaway.hw.microbenchmarks.benchmark import COLD_CACHES
from hideaway.hw.microbenchmarks.disturbance import Probe, disturbance
from hideaway.hw.microbenchmarks.point import Point
from hideaway.hw.microbenchmarks.stopping import Effort, WarmUp, has_converged
from hideaway.sim.inputs.measurements import Measurement

WARM_UP_SHARE = 0.25
"""Share of a session's first slice after which no point is warmed up any longer (each is run once in any case)."""
_SHORT_WINDOW_SECONDS = 0.02
_CONVERGED_STRIDE = 4
_DEAR = 4.0
_MOST_STRIDE = 8


class Clock(Protocol):
    """Where time comes from."""

    def now(self) -> float:
        """Return seconds from any origin."""


class Session:
    """Samples points.

    Parameters
    ----------
    points : sequence of Point
        Prepared; they stay open until `close`.
    seed : int
        Of the order of visits.
    empty_cache : callable
        Makes the last-level cache forget.
    cache_bytes : int
        Its size.

    Attributes
    ----------
    interrupted : bool
        Set by whoever cuts a session short; then points that lack samples say so.
    """

    def __init__(
        self,
        points: Sequence[Point],
        effort: Effort,
        *,
        seed: int,
        clock: Clock,
        probe: Probe,
        empty_cache: Callable[[], object],
        cache_bytes: int,
    ) -> None:
        self.points = list(points)
        self.interrupted = False
        self._effort = effort
        self._rng = np.random.default_rng(seed)
        self._clock = clock
        self._probe = probe
        self._empty_cache = empty_cache
        self._cache_bytes = cache_bytes
        self._origin = clock.now()
        self._round = 0
        self._slow = False
        self._begins = True
        self._waiting: list[Point] = []

    def run(
        self,
        seconds: float,
        *,
        past_convergence: bool = False,
        on_progress: Callable[[float], None] = lambda share: None,
    ) -> bool:
        """Sample for about `seconds`; return whether every point has what it needs. Changes state.

        The first slice runs every point twice at least (once to warm up), however short it is.

        Parameters
        ----------
        past_convergence : bool
            Go on sampling points that have converged, for as long as the time lasts: to watch a drift.
        on_progress : callable
            Told the share of the time that has passed after each visit.
        """
        begin = self._clock.now()
        end = begin + seconds
        self._begins = True

        def tell() -> None:
            on_progress(min(1.0, (self._clock.now() - begin) / seconds) if seconds > 0 else 1.0)

        self._warm_up(begin + WARM_UP_SHARE * seconds, tell)
        while not self._is_done() or past_convergence:
            if not self._one_round(end, tell, past_convergence=past_convergence):
                break
        return self._is_done()

    def measurements(self) -> tuple[Measurement, ...]:
        """Return every series so far; a point of which nothing was sampled has none."""
        return tuple(
            series
            for point in self.points
            for series in point.series(self._effort, interrupted=self.interrupted)
        )

    def close(self) -> None:
        """Give back what the points hold. Changes state."""
        for point in self.points:
            point.operation.close()

    def _warm_up(self, until: float, tell: Callable[[], None]) -> None:
        """Run each point until it is steady; once in any case, so that its cost is known. Changes state."""
        cold = [point for point in self.points if not point.warm_up.is_over]
        while cold:
            for index in self._rng.permutation(len(cold)):
                point = cold[index]
                if point.warm_up.runs and self._clock.now() >= until:
                    point.warm_up.is_over = True
                    continue
                seconds = self._visit(point, warming=True)
                self._begins = False
                if point.warm_up.runs == 0 and seconds > _SHORT_WINDOW_SECONDS:
                    point.warm_up = WarmUp(window=1, most=4)  # long operations are steady sooner
                point.warm_up.note(seconds)
                tell()
            cold = [point for point in cold if not point.warm_up.is_over]

    def _one_round(self, end: float, tell: Callable[[], None], *, past_convergence: bool) -> bool:
        """Visit every point that is due, in a random order; return whether there was time for one. Changes state.

        What no longer fits comes first the next time, and begins the next slice even if it is longer than that. A
        point that has no sample yet is visited even where the time is over: none is missing from the file.
        """
        self._slow = self._probe.clock_dropped()
        waiting, self._waiting = self._waiting, []
        due = [
            point for point in self.points if point not in waiting and self._is_due(point, past_convergence)
        ]
        order = waiting + [due[index] for index in self._rng.permutation(len(due))]
        self._round += 1
        visited = not order
        for point in order:
            fits = self._clock.now() + point.cost_seconds <= end
            if fits or self._begins or point.visits <= point.warm_up.runs:
                self._visit(point)
                self._begins, visited = False, True
                tell()
            else:
                self._waiting.append(point)
        return visited and self._clock.now() < end

    def _is_due(self, point: Point, past_convergence: bool) -> bool:
        if past_convergence:
            return True
        count = len(point.seconds())
        if count >= self._effort.most:
            return False
        if count < self._effort.fewest:
            return True
        if has_converged(point.seconds(), self._effort):
            return self._round % _CONVERGED_STRIDE == 0
        typical = statistics.median(other.cost_seconds for other in self.points)
        stride = min(_MOST_STRIDE, max(1, round(point.cost_seconds / max(_DEAR * typical, 1e-9))))
        return self._round % stride == 0

    def _is_done(self) -> bool:
        return all(self._has_enough(point) for point in self.points)

    def _has_enough(self, point: Point) -> bool:
        samples = point.seconds()
        return len(samples) >= self._effort.most or has_converged(samples, self._effort)

    def _visit(self, point: Point, *, warming: bool = False) -> float:
        """Take one sample and return its seconds. Changes state."""
        operation, clock = point.operation, self._clock
        begin = clock.now()
        if operation.cycle_bytes is not None and operation.cycle_bytes < COLD_CACHES * self._cache_bytes:
            self._empty_cache()
        operation.set_up()
        before = self._probe.read()
        start = clock.now()
        operation.run()
        elapsed = clock.now() - start
        after = self._probe.read()
        flaw = operation.flaw()
        operation.settle()
        readings = operation.readings()
        point.note_cost(clock.now() - begin)
        reason = "warm-up" if warming else flaw
        if reason is None and self._slow:
            reason = "clock dropped"
        if reason is None:
            reason = disturbance(before, after, elapsed, computes=operation.activity == "computes")
        point.note(start - self._origin, elapsed, readings, reason)
        return elapsed
