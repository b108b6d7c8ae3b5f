"""One forward of the target on a real device: rows, layer visits, head, and what its end commits.

Mirrors `hideaway.sim.world.forward`. Next: `visitor.py` for one layer.
"""

from __future__ import annotations

from hideaway.hw.engine.failures import Failures
from hideaway.hw.engine.slot_table import SlotTable
from hideaway.hw.engine.visitor import Visitor
from hideaway.hw.engine.work import Clock, ForwardWork, Seat, Work
from hideaway.sim.commands import Forward
from hideaway.sim.events import ForwardDone, LayersHit
from hideaway.sim.scheduler import Scheduler
from hideaway.sim.timeline import Timeline
from hideaway.sim.world.forward_rows import Rows
from hideaway.sim.world.serving import Serving


class ForwardRunner:
    """Executes forwards; requests of an open loop may arrive between its layer visits."""

    def __init__(
        self,
        scheduler: Scheduler,
        serving: Serving,
        *,
        visitor: Visitor,
        table: SlotTable,
        work: Work,
        clock: Clock,
        failures: Failures,
        timeline: Timeline | None,
    ) -> None:
        self._scheduler = scheduler
        self._serving = serving
        self._visitor = visitor
        self._table = table
        self._work = work
        self._clock = clock
        self._failures = failures
        self._timeline = timeline
        self._all_resident = scheduler.cache.all_resident()

    def run(self, work: Forward) -> ForwardDone:
        """Execute a forward and return the event of its end; failed sequences commit nothing. Changes state."""
        rows = self._serving.gatherer.gather(work, self._serving.book.accepted)
        forward = _forward_work(work, rows, self._serving.reused_layers)
        self._failures.begin(forward)
        self._work.begin(forward)
        if self._all_resident:
            self._resident_layers(rows.needed)
        else:
            self._visits(rows.needed, len(work.seats))
        self._finish()
        self._serving.book.let_arrive(self._clock.now_seconds())
        failed = self._failures.seq_ids
        last, kept = self._serving.gatherer.row_experts(rows.kept)
        committed = tuple(pair for pair in rows.committed if pair[0] not in failed)
        prefilled = None
        if work.prefill is not None and work.prefill[0] not in failed:
            prefilled = (work.prefill[0], work.prefill[2])
        return ForwardDone(self._clock.now_seconds(), committed, prefilled, last, kept)

    def _resident_layers(self, needed: list[int]) -> None:
        """Run all layers of a wholly resident model; nobody need be asked between them. Changes state."""
        start = self._clock.now_seconds()
        self._scheduler.handle(LayersHit(start, tuple(needed)))
        for layer, mask in enumerate(needed):
            self._work.dense(layer)
            self._work.hits(layer, self._table.slots_of(layer, mask))
            self._work.finish_layer(layer)
        if self._timeline is not None:
            step = self._serving.meter.forwards
            self._timeline.add(start, self._clock.now_seconds(), "compute", "experts", step=step)

    def _visits(self, needed: list[int], num_blocks: int) -> None:
        self._visitor.step = self._serving.meter.forwards
        ahead = self._serving.foresight.ahead(needed, num_blocks)
        for layer, mask in enumerate(needed):
            self._serving.book.let_arrive(self._clock.now_seconds())
            self._visitor.visit(layer, mask, ahead[layer])

    def _finish(self) -> None:
        start = self._clock.now_seconds()
        self._work.finish_forward()
        if self._timeline is not None:
            end = self._clock.now_seconds()
            self._timeline.add(start, end, "compute", "head", step=self._serving.meter.forwards)


def _forward_work(work: Forward, rows: Rows, reused_layers: int) -> ForwardWork:
    contexts = rows.contexts
    seats = tuple(
        Seat.block(seq_id, num_rows, context)
        for (seq_id, num_rows), (_, context) in zip(work.seats, contexts, strict=False)
    )
    prefill = None if work.prefill is None else Seat.chunk(work.prefill[0], *contexts[-1])
    return ForwardWork(seats, prefill, rows, reused_layers)
