"""The simulated engine: a SimPy process that executes the scheduler's commands on one compute stream.

Requests arrive as their own process (open loop) or follow finished ones (closed loop). Drafts, route passes and
forwards take the compute stream one after another (lock step). Inside a forward, layer visits are worked out
in closed form (`hideaway.sim.world.visit`) while no other event of the simulation comes before their end, and
time is handed back to SimPy when one does.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import simpy

from hideaway.sim.commands import Command, Draft, Fetch, Forward, Idle, Route
from hideaway.sim.costs import CostModel
from hideaway.sim.errors import HideawayError
from hideaway.sim.events import DraftDone, Event, Ready, RouteDone, TransfersArrived
from hideaway.sim.metrics import Meter
from hideaway.sim.scheduler import Scheduler
from hideaway.sim.world.compute import stretched
from hideaway.sim.world.forward import ForwardRunner
from hideaway.sim.world.link import Link
from hideaway.sim.world.request_book import RequestBook

Process = Generator[Any, Any, None]


class Engine:
    """Executes a run of requests.

    Parameters
    ----------
    book : RequestBook
        The requests; what the run reports goes into its meter.
    """

    def __init__(
        self,
        env: simpy.Environment,
        scheduler: Scheduler,
        *,
        costs: CostModel,
        link: Link,
        forwards: ForwardRunner,
        book: RequestBook,
    ) -> None:
        self._env = env
        self._scheduler = scheduler
        self._costs = costs
        self._link = link
        self._forwards = forwards
        self._book = book
        self._meter: Meter = book.meter
        self._wake: simpy.Event | None = None
        self._now = 0.0

    def run(self) -> Process:
        """Run every request to its end. A SimPy process."""
        book = self._book
        book.open_closed_loop()
        if book.next_arrival_seconds < float("inf"):
            self._env.process(self._arrivals())
        while book.unfinished:
            yield from self._until(self._now)
            work = self._ask(Ready(self._now))
            book.note_admissions(self._now)
            if isinstance(work, Idle):
                yield from self._wait_for_request()
                continue
            if isinstance(work, Draft):
                yield from self._until(self._now + self._draft(work))
                work = self._ask(DraftDone(self._now, work.seq_ids))
            if isinstance(work, Route):
                predicted = book.named(work)
                yield from self._until(self._now + self._route_seconds(work))
                work = self._ask(RouteDone(self._now, work.seq_ids, predicted))
            if not isinstance(work, Forward):
                raise HideawayError(f"the scheduler answered with {work!r}; a forward was expected")
            yield from self._forward(work)

    def _forward(self, work: Forward) -> Process:
        """Run one forward and hand out what it committed. Changes state."""
        start = self._now
        done = yield from self._forwards.run(start, work, self._book.accepted)
        self._now = done.at_seconds
        self._book.forward_ended(start, self._now, work)
        self._ask(done)
        self._book.commit(done, work)

    def _arrivals(self) -> Process:
        while (arrival := self._book.next_arrival_seconds) < float("inf"):
            seconds = arrival - self._env.now
            if seconds > 0:
                yield self._env.timeout(seconds)
            self._book.arrive(self._env.now)
            if self._wake is not None and not self._wake.triggered:
                self._wake.succeed()

    def _wait_for_request(self) -> Process:
        if not self._book.more_to_come and self._env.peek() == float("inf"):
            raise HideawayError(
                "nothing runs, nothing waits and no request will come, yet some are unfinished"
            )
        self._wake = self._env.event()
        yield self._wake
        self._now = max(self._now, self._env.now)

    def _until(self, at_seconds: float) -> Process:
        """Let the rest of the simulation catch up with the compute stream. Changes state."""
        self._now = at_seconds
        if at_seconds > self._env.now:
            yield self._env.timeout(at_seconds - self._env.now)
        while self._env.peek() <= at_seconds:  # others of this instant go first
            yield self._env.timeout(max(0.0, at_seconds - self._env.now))

    def _ask(self, event: Event) -> Command:
        """Tell the scheduler what has landed, then `event`; pass its transfers to the link. Changes state.

        Returns what the compute stream does next.
        """
        landed = self._link.collect(self._now)
        if landed:
            self._scheduler.handle(TransfersArrived(self._now, landed))
        commands = self._scheduler.handle(event)
        for command in commands:
            if isinstance(command, Fetch):
                self._link.submit(command.layer, command.experts, command.band, self._now)
        return commands[-1] if commands else Idle()

    def _draft(self, work: Draft) -> float:
        """Return the seconds of a draft forward, and settle how much of each block will be kept. Changes state."""
        block = self._scheduler.batch.options.block_size
        self._book.settle_draft(work.seq_ids)
        seconds = self._beside_link(self._costs.draft_seconds(len(work.seq_ids), block))
        self._meter.draft_seconds += seconds
        self._book.log_phase("draft", self._now, self._now + seconds, work.seq_ids)
        return seconds

    def _route_seconds(self, work: Route) -> float:
        contexts = self._book.contexts(work.seq_ids)
        rows = sum(rows for rows, _ in contexts)
        seconds = self._beside_link(self._costs.route_seconds(rows, work.exact_depth, contexts))
        self._meter.route_seconds += seconds
        self._book.log_phase("route", self._now, self._now + seconds, work.seq_ids)
        return seconds

    def _beside_link(self, seconds: float) -> float:
        """Return how long compute takes from now if the link slows it, and slow the link meanwhile. Changes state."""
        copies = self._link.copies
        copies.compute_busy_until = self._now + seconds
        self._link.advance(self._now)
        taken = stretched(seconds, self._now, copies.free_at, self._costs.compute_slowdown)
        copies.compute_busy_until = self._now + taken
        return taken
