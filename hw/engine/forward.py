"""One forward of the target on a real device: layer visits, head, and what its end commits.

Mirrors `hideaway.sim.world.forward`, except that the work walks through the layers and calls at each layer's experts.
Next: `visitor.py` for what happens there.
"""

from __future__ import annotations

from hideaway.hw.engine.content import Content
from hideaway.hw.engine.failures import Failures
from hideaway.hw.engine.slot_table import SlotTable
from hideaway.hw.engine.visitor import Visitor
from hideaway.hw.engine.work import Clock, ForwardWork, Work
from hideaway.sim.commands import Forward
from hideaway.sim.events import ForwardDone, LayersHit
from hideaway.sim.scheduler import Scheduler
from hideaway.sim.timeline import Timeline
from hideaway.sim.world.request_book import RequestBook


class ForwardRunner:
    """Executes forwards; requests of an open loop may arrive between its layer visits."""

    def __init__(
        self,
        scheduler: Scheduler,
        book: RequestBook,
        content: Content,
        *,
        visitor: Visitor,
        table: SlotTable,
        work: Work,
        clock: Clock,
        failures: Failures,
        timeline: Timeline | None,
    ) -> None:
        self._scheduler = scheduler
        self._book = book
        self._content = content
        self._visitor = visitor
        self._table = table
        self._work = work
        self._clock = clock
        self._failures = failures
        self._timeline = timeline
        self._all_resident = scheduler.cache.all_resident()

    def run(self, work: Forward) -> ForwardDone:
        """Execute a forward and return the event of its end; failed sequences commit nothing. Changes state."""
        forward = self._content.begin(work)
        self._failures.begin()
        if self._all_resident:
            self._run_resident(forward)
        else:
            self._visitor.begin(self._book.meter.forwards)
            self._work.forward(forward, self._visit)
            self._log("head", self._visitor.ended)
        self._book.let_arrive(self._clock.now_seconds())
        outcome = self._content.end(work, self._failures.seq_ids)
        prefilled = None
        if work.prefill is not None and work.prefill[0] not in self._failures.seq_ids:
            prefilled = (work.prefill[0], work.prefill[2])
        now = self._clock.now_seconds()
        return ForwardDone(now, outcome.committed, prefilled, outcome.last_rows, outcome.kept_rows)

    def _visit(self, layer: int) -> None:
        self._visitor.visit(layer)
        self._book.let_arrive(self._clock.now_seconds())

    def _run_resident(self, forward: ForwardWork) -> None:
        """Run a wholly resident model; nobody need be asked between its layers. Changes state."""
        start = end = self._clock.now_seconds()
        masks = []

        def compute(layer: int) -> None:
            nonlocal end
            needed = self._work.needed(layer)
            masks.append(needed)
            self._work.hits(layer, self._table.slots_of(layer, needed))
            self._work.finish_layer(layer)
            end = self._clock.now_seconds()

        self._work.forward(forward, compute)
        self._scheduler.handle(LayersHit(start, tuple(masks)))
        if self._timeline is not None:
            step = self._book.meter.forwards
            self._timeline.add(start, end, "compute", "experts", step=step)
        self._log("head", end)

    def _log(self, kind: str, start: float) -> None:
        if self._timeline is not None:
            end = self._clock.now_seconds()
            self._timeline.add(start, end, "compute", kind, step=self._book.meter.forwards)
