"""The simulated engine: a SimPy process that executes the scheduler's commands on one compute stream.

Requests arrive as their own process (open loop) or follow finished ones (closed loop). Drafts, route passes and
forwards take the compute stream one after another (lock step). Inside a forward, layer visits are worked out
in closed form (`hideaway.sim.world.visit`) while no other event of the simulation comes before their end, and
time is handed back to SimPy when one does.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import simpy

from hideaway.sim.commands import Command, Draft, Fetch, Forward, Idle, Route
from hideaway.sim.costs import CostModel
from hideaway.sim.errors import HideawayError
from hideaway.sim.events import DraftDone, Event, Ready, RequestArrived, RouteDone, TransfersArrived
from hideaway.sim.inputs.acceptance import AcceptanceModel, DrawLength
from hideaway.sim.inputs.arrivals import RequestSpec
from hideaway.sim.metrics import Meter
from hideaway.sim.request import Phase
from hideaway.sim.scheduler import Scheduler
from hideaway.sim.timeline import Timeline
from hideaway.sim.world.forward import ForwardRunner
from hideaway.sim.world.link import Link
from hideaway.sim.world.prediction import Foresight
from hideaway.sim.world.rows import RowRouting

Process = Generator[Any, Any, None]


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How requests enter.

    Parameters
    ----------
    closed_loop : int or None
        Requests in the system at once, the next entering when one finishes; None keeps arrival times.
    seed : int
        Seeds each request's own acceptance draws.
    """

    closed_loop: int | None
    seed: int


class Engine:
    """Executes a run of requests.

    Attributes
    ----------
    meter : Meter
        What the run reports.
    """

    def __init__(
        self,
        env: simpy.Environment,
        scheduler: Scheduler,
        *,
        costs: CostModel,
        link: Link,
        forwards: ForwardRunner,
        rows: RowRouting,
        foresight: Foresight,
        acceptance: AcceptanceModel,
        requests: Sequence[RequestSpec],
        options: EngineOptions,
        meter: Meter,
        timeline: Timeline | None = None,
    ) -> None:
        self._env = env
        self._scheduler = scheduler
        self._costs = costs
        self._link = link
        self._forwards = forwards
        self._rows = rows
        self._foresight = foresight
        self._acceptance = acceptance
        self._requests = requests
        self._options = options
        self._timeline = timeline
        self._draws: dict[int, DrawLength] = {}
        self._accepted: dict[int, int] = {}
        self._waiting_since: dict[int, float] = {}
        self._next_request = 0
        self._wake: simpy.Event | None = None
        self._now = 0.0
        self.meter = meter

    def run(self) -> Process:
        """Run every request to its end. A SimPy process."""
        self._open_first_requests()
        while len(self._draws) or self._next_request < len(self._requests):
            yield from self._until(self._now)
            work = self._ask(Ready(self._now))
            self._note_admissions()
            if isinstance(work, Idle):
                yield from self._wait_for_request()
                continue
            if isinstance(work, Draft):
                yield from self._until(self._now + self._draft(work))
                work = self._ask(DraftDone(self._now, work.seq_ids))
            if isinstance(work, Route):
                predicted = self._route(work)
                yield from self._until(self._now + self._route_seconds(work))
                work = self._ask(RouteDone(self._now, work.seq_ids, predicted))
            if not isinstance(work, Forward):
                raise HideawayError(f"the scheduler answered with {work!r}; a forward was expected")
            yield from self._forward(work)

    def _forward(self, work: Forward) -> Process:
        """Run one forward and hand out what it committed. Changes state."""
        start = self._now
        done = yield from self._forwards.run(start, work, self._accepted)
        self._now = done.at_seconds
        batch = self._scheduler.batch
        held = self._scheduler.cache.residency.resident_count() * self._scheduler.options.expert_bytes
        self.meter.forward(start, self._now, held, batch.kv.used_bytes)
        if self._timeline is not None:
            self._log_forward(start, work, held)
        self._ask(done)
        for seq_id, tokens in done.committed:
            self.meter.round(seq_id, self._now, tokens)
            self._rows.advance(seq_id, tokens)
            self._close_if_finished(seq_id)
        if work.prefill is not None:
            seq_id = work.prefill[0]
            sequence = batch.running.get(seq_id)
            if sequence is None or sequence.phase is Phase.DECODE:
                self.meter.first_token(seq_id, self._now)
                self._rows.advance(seq_id, 1)
            self._close_if_finished(seq_id)

    def _close_if_finished(self, seq_id: int) -> None:
        if seq_id in self._scheduler.batch.running:
            return
        self.meter.finished(seq_id, self._now)
        self._rows.close(seq_id)
        del self._draws[seq_id]
        self._accepted.pop(seq_id, None)
        if self._options.closed_loop is not None and self._next_request < len(self._requests):
            self._arrive(self._now)

    def _log_forward(self, start: float, work: Forward, held_bytes: int) -> None:
        timeline, step = self._timeline, self.meter.forwards - 1
        assert timeline is not None
        for seq_id, rows in work.seats:
            kind = "verify" if rows > 1 else "decode"
            timeline.add(start, self._now, "sequence", kind, step=step, seq_ids=(seq_id,))
        if work.prefill is not None:
            timeline.add(start, self._now, "sequence", "prefill", step=step, seq_ids=(work.prefill[0],))
        slots = held_bytes // self._scheduler.options.expert_bytes
        timeline.add(self._now, self._now, "counter", "slots_used", step=step, value=slots)

    def _open_first_requests(self) -> None:
        if self._options.closed_loop is None:
            self._env.process(self._arrivals())
            return
        for _ in range(min(self._options.closed_loop, len(self._requests))):
            self._arrive(0.0)

    def _arrivals(self) -> Process:
        for request in self._requests:
            seconds = request.arrival_seconds - self._env.now
            if seconds > 0:
                yield self._env.timeout(seconds)
            self._arrive(self._env.now)
            if self._wake is not None and not self._wake.triggered:
                self._wake.succeed()

    def _arrive(self, at_seconds: float) -> None:
        seq_id = self._next_request
        request = self._requests[seq_id]
        self._next_request += 1
        rng = np.random.default_rng([self._options.seed, 2, seq_id])
        self._draws[seq_id] = self._acceptance.sequence(rng)
        self._rows.open(seq_id)
        self.meter.arrived(seq_id, at_seconds, request.output_tokens)
        self._waiting_since[seq_id] = at_seconds
        self._scheduler.handle(
            RequestArrived(at_seconds, seq_id, request.input_tokens, request.output_tokens)
        )

    def _wait_for_request(self) -> Process:
        if self._next_request >= len(self._requests) and self._env.peek() == float("inf"):
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
        while self._env.peek() <= at_seconds:
            yield self._env.timeout(0.0)

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

    def _note_admissions(self) -> None:
        """Note who was seated and who was sent back since the last call. Changes state."""
        batch = self._scheduler.batch
        for seq_id in batch.newly_seated:
            self.meter.admitted(seq_id, self._now)
            since = self._waiting_since.pop(seq_id)
            if self._timeline is not None:
                self._timeline.add(since, self._now, "sequence", "waiting", seq_ids=(seq_id,))
        for seq_id in batch.newly_preempted:
            self._waiting_since[seq_id] = self._now
        batch.newly_seated.clear()
        batch.newly_preempted.clear()

    def _draft(self, work: Draft) -> float:
        """Return the seconds of a draft forward, and settle how much of each block will be kept. Changes state."""
        block = self._scheduler.batch.options.block_size
        for seq_id in work.seq_ids:
            self._accepted[seq_id] = self._draws[seq_id](block)
        seconds = self._costs.draft_seconds(len(work.seq_ids), block)
        self.meter.draft_seconds += seconds
        self._log_phase("draft", self._now, self._now + seconds, work.seq_ids)
        return seconds

    def _route(self, work: Route) -> tuple[tuple[int, ...], ...]:
        """Return what the route pass names for each sequence's block."""
        block = self._scheduler.batch.options.block_size
        rows, foresight = self._rows, self._foresight
        named = []
        for seq_id in work.seq_ids:
            needed = rows.unions(rows.block(seq_id, block, self._accepted[seq_id]))
            named.append(foresight.block(needed[: work.num_layers], work.exact_depth))
        return tuple(named)

    def _route_seconds(self, work: Route) -> float:
        batch = self._scheduler.batch
        block = batch.options.block_size
        sequences = [batch.running[seq_id] for seq_id in work.seq_ids]
        contexts = [(block, sequence.prompt_tokens + sequence.committed) for sequence in sequences]
        seconds = self._costs.route_seconds(len(sequences) * block, work.exact_depth, contexts)
        self.meter.route_seconds += seconds
        self._log_phase("route", self._now, self._now + seconds, work.seq_ids)
        return seconds

    def _log_phase(self, kind: str, start: float, end: float, seq_ids: tuple[int, ...]) -> None:
        if self._timeline is not None:
            self._timeline.add(start, end, "compute", kind, step=self.meter.forwards, seq_ids=seq_ids)
            for seq_id in seq_ids:
                self._timeline.add(start, end, "sequence", kind, step=self.meter.forwards, seq_ids=(seq_id,))
