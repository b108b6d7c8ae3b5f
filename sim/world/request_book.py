"""What an engine keeps of its requests: who came, what of each block will be kept, who finished, when.

Both engines keep one and report through it to the meter and the timeline, so that a request means the same in
either. The book has no clock: every moment is handed in.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hideaway.sim.commands import Forward, Route
from hideaway.sim.events import ForwardDone, RequestArrived
from hideaway.sim.inputs.acceptance import AcceptanceModel, DrawLength
from hideaway.sim.inputs.arrivals import RequestSpec
from hideaway.sim.metrics import Meter
from hideaway.sim.request import Phase
from hideaway.sim.scheduler import Scheduler
from hideaway.sim.timeline import Timeline
from hideaway.sim.world.prediction import Foresight
from hideaway.sim.world.rows import RowRouting


class RequestBook:
    """Requests from arrival to end.

    Parameters
    ----------
    closed_loop : int or None
        Requests in the system at once, the next entering when one finishes; None keeps arrival times.
    seed : int
        Seeds each request's own acceptance draws.

    Attributes
    ----------
    accepted : dict of seq_id to int
        Rows of the drafted block that verify will keep.
    meter : Meter
        What the run reports.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        *,
        rows: RowRouting,
        foresight: Foresight,
        acceptance: AcceptanceModel,
        requests: Sequence[RequestSpec],
        closed_loop: int | None,
        seed: int,
        meter: Meter,
        timeline: Timeline | None = None,
    ) -> None:
        self._scheduler = scheduler
        self._rows = rows
        self._foresight = foresight
        self._acceptance = acceptance
        self._requests = requests
        self._closed_loop = closed_loop
        self._seed = seed
        self._timeline = timeline
        self._draws: dict[int, DrawLength] = {}
        self._waiting_since: dict[int, float] = {}
        self._next_request = 0
        self.accepted: dict[int, int] = {}
        self.meter = meter

    @property
    def unfinished(self) -> bool:
        """Whether a request is in the system or still to come."""
        return bool(self._draws) or self.more_to_come

    @property
    def more_to_come(self) -> bool:
        """Whether a request has yet to arrive."""
        return self._next_request < len(self._requests)

    @property
    def next_arrival_seconds(self) -> float:
        """When the next request of an open loop arrives; infinity where none does on its own."""
        if self._closed_loop is not None or not self.more_to_come:
            return float("inf")
        return self._requests[self._next_request].arrival_seconds

    def open_closed_loop(self) -> None:
        """Let the first wave of a closed loop arrive; nothing in an open loop. Changes state."""
        for _ in range(min(self._closed_loop or 0, len(self._requests))):
            self.arrive(0.0)

    def arrive(self, at_seconds: float) -> None:
        """Let the next request arrive. Changes state."""
        seq_id = self._next_request
        request = self._requests[seq_id]
        self._next_request += 1
        rng = np.random.default_rng([self._seed, 2, seq_id])
        self._draws[seq_id] = self._acceptance.sequence(rng)
        self._rows.open(seq_id)
        self.meter.arrived(seq_id, at_seconds, request.output_tokens)
        self._waiting_since[seq_id] = at_seconds
        self._scheduler.handle(
            RequestArrived(at_seconds, seq_id, request.input_tokens, request.output_tokens)
        )

    def let_arrive(self, now: float) -> None:
        """Let every request of an open loop that has come by now arrive, at its own time. Changes state."""
        while self.next_arrival_seconds <= now:
            self.arrive(self.next_arrival_seconds)

    def note_admissions(self, now: float) -> tuple[int, ...]:
        """Note who was seated and who was sent back since the last call; return those. Changes state."""
        batch = self._scheduler.batch
        for seq_id in batch.newly_seated:
            self.meter.admitted(seq_id, now)
            since = self._waiting_since.pop(seq_id)
            if self._timeline is not None:
                self._timeline.add(since, now, "sequence", "waiting", seq_ids=(seq_id,))
        preempted = tuple(batch.newly_preempted)
        for seq_id in preempted:
            self._waiting_since[seq_id] = now
        batch.newly_seated.clear()
        batch.newly_preempted.clear()
        return preempted

    def settle_draft(self, seq_ids: tuple[int, ...]) -> None:
        """Settle how much of each drafted block will be kept. Changes state."""
        block = self._scheduler.batch.options.block_size
        for seq_id in seq_ids:
            self.accepted[seq_id] = self._draws[seq_id](block)

    def named(self, work: Route) -> tuple[tuple[int, ...], ...]:
        """Return what a route pass names for each sequence's block."""
        block = self._scheduler.batch.options.block_size
        rows, foresight = self._rows, self._foresight
        named = []
        for seq_id in work.seq_ids:
            needed = rows.unions(rows.block(seq_id, block, self.accepted[seq_id]))
            named.append(foresight.block(needed[: work.num_layers], work.exact_depth))
        return tuple(named)

    def contexts(self, seq_ids: tuple[int, ...]) -> list[tuple[int, int]]:
        """Return (rows, context tokens) of each sequence's block."""
        batch = self._scheduler.batch
        sequences = [batch.running[seq_id] for seq_id in seq_ids]
        block = batch.options.block_size
        return [(block, sequence.prompt_tokens + sequence.committed) for sequence in sequences]

    def log_phase(self, kind: str, start: float, end: float, seq_ids: tuple[int, ...]) -> None:
        """Put a draft or a route pass on the timeline. Changes the timeline only."""
        if self._timeline is not None:
            step = self.meter.forwards
            self._timeline.add(start, end, "compute", kind, step=step, seq_ids=seq_ids)
            for seq_id in seq_ids:
                self._timeline.add(start, end, "sequence", kind, step=step, seq_ids=(seq_id,))

    def forward_ended(self, start: float, end: float, work: Forward) -> None:
        """Note a forward and what it held; to be called before the scheduler is told. Changes state."""
        held = self._scheduler.cache.residency.resident_count() * self._scheduler.options.expert_bytes
        self.meter.forward(start, end, held, self._scheduler.batch.kv.used_bytes)
        if self._timeline is not None:
            self._log_forward(self._timeline, start, end, work, held)

    def commit(self, done: ForwardDone, work: Forward) -> tuple[int, ...]:
        """Hand out what a forward committed and return who finished. Changes state."""
        now = done.at_seconds
        finished = []
        for seq_id, tokens in done.committed:
            self.meter.round(seq_id, now, tokens)
            self._rows.advance(seq_id, tokens)
            if self._close_if_finished(seq_id, now):
                finished.append(seq_id)
        if done.prefilled is not None:
            seq_id = done.prefilled[0]
            sequence = self._scheduler.batch.running.get(seq_id)
            if sequence is None or sequence.phase is Phase.DECODE:
                self.meter.first_token(seq_id, now)
                self._rows.advance(seq_id, 1)
            if self._close_if_finished(seq_id, now):
                finished.append(seq_id)
        return tuple(finished)

    def fail(self, seq_id: int, now: float) -> None:
        """Forget a request that the scheduler has been told cannot go on. Changes state."""
        self.meter.failed(seq_id)
        self._waiting_since.pop(seq_id, None)
        self._close(seq_id, now)

    def _close_if_finished(self, seq_id: int, now: float) -> bool:
        if seq_id in self._scheduler.batch.running:
            return False
        self.meter.finished(seq_id, now)
        self._close(seq_id, now)
        return True

    def _close(self, seq_id: int, now: float) -> None:
        self._rows.close(seq_id)
        del self._draws[seq_id]
        self.accepted.pop(seq_id, None)
        if self._closed_loop is not None and self.more_to_come:
            self.arrive(now)

    def _log_forward(self, timeline: Timeline, start: float, end: float, work: Forward, held: int) -> None:
        step = self.meter.forwards - 1
        for seq_id, rows in work.seats:
            kind = "verify" if rows > 1 else "decode"
            timeline.add(start, end, "sequence", kind, step=step, seq_ids=(seq_id,))
        if work.prefill is not None:
            timeline.add(start, end, "sequence", "prefill", step=step, seq_ids=(work.prefill[0],))
        slots = held // self._scheduler.options.expert_bytes
        timeline.add(end, end, "counter", "slots_used", step=step, value=slots)
