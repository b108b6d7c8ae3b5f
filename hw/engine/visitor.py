"""One layer visit on a real device, in the order of `hideaway.sim.world.visit`.

Attention, dense work and router have run when a visit begins; the host learns the routed set; missing experts are
requested; resident ones are computed first, then each arrival in order of arrival. Time in which nothing could be
computed is exposed, except what passed because a copy had not been issued; the time from the end of the router to the
end of the scheduler's answer is synchronisation.
"""

from __future__ import annotations

from hideaway.hw.engine.content import Content
from hideaway.hw.engine.slot_table import SlotTable
from hideaway.hw.engine.transfers import Transfers
from hideaway.hw.engine.work import Clock, Work
from hideaway.sim.events import LayerDone, LayerRouted
from hideaway.sim.scheduler import Scheduler
from hideaway.sim.timeline import Timeline


class Visitor:
    """Executes layer visits.

    Attributes
    ----------
    exposed_seconds, issue_idle_seconds, sync_seconds : float
        As in the simulated world.
    ended : float
        When the last visit ended, or the forward began before its first one.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        transfers: Transfers,
        table: SlotTable,
        work: Work,
        clock: Clock,
        content: Content,
        *,
        timeline: Timeline | None,
    ) -> None:
        self._scheduler = scheduler
        self._residency = scheduler.cache.residency
        self._transfers = transfers
        self._table = table
        self._work = work
        self._clock = clock
        self._content = content
        self._timeline = timeline
        self._all_experts = (1 << scheduler.cache.num_experts) - 1
        self.exposed_seconds = 0.0
        self.issue_idle_seconds = 0.0
        self.sync_seconds = 0.0
        self.ended = 0.0
        self._step = 0

    def begin(self, step: int) -> None:
        """Take up the forward of number `step`. Changes state."""
        self._step = step
        self.ended = self._clock.now_seconds()

    def visit(self, layer: int) -> None:
        """Execute one visit, from the end of the layer's router to the sum of its experts. Changes state."""
        clock, transfers = self._clock, self._transfers
        start = self.ended
        ahead = self._content.ahead(layer)
        routed = clock.now_seconds()
        if self._residency.resident[layer] != self._all_experts:
            self._work.learn_routing(layer)
        needed = self._work.needed(layer)
        asked = clock.now_seconds()
        transfers.tell(asked)
        hits = needed & self._residency.resident[layer]
        transfers.begin_visit(layer, needed & ~hits, asked)
        commands = self._scheduler.handle(LayerRouted(asked, layer, needed, ahead))
        transfers.execute(commands, asked)
        answered = clock.now_seconds()
        self.sync_seconds += answered - routed
        self._compute(layer, hits)
        self._work.finish_layer(layer)
        self.ended = end = clock.now_seconds()
        if self._timeline is not None:
            self._log(self._timeline, (start, routed, answered, end), layer, needed, hits)
        transfers.tell(end)
        self._scheduler.handle(LayerDone(end, layer, transfers.fetched))

    def _compute(self, layer: int, hits: int) -> None:
        """Compute the hits, then every arrival; count the waits. Changes state."""
        clock, transfers, work = self._clock, self._transfers, self._work
        waited = 0.0
        if hits:
            work.hits(layer, self._table.slots_of(layer, hits))
        while True:
            arrival = transfers.next_arrival()
            if arrival is None:
                if not transfers.awaits:
                    break
                before = clock.now_seconds()
                transfers.wait()
                after = clock.now_seconds()
                waited += after - before
                if self._timeline is not None:
                    self._timeline.add(before, after, "compute", "wait", step=self._step, layer=layer)
                continue
            expert, slot = arrival
            work.arrival(layer, expert, slot)
            transfers.computed(slot)
        stalled = min(waited, transfers.end_visit())
        self.issue_idle_seconds += stalled
        self.exposed_seconds += waited - stalled

    def _log(
        self, timeline: Timeline, times: tuple[float, float, float, float], layer: int, needed: int, hits: int
    ) -> None:
        start, routed, answered, end = times
        step = self._step
        timeline.add(start, routed, "compute", "attention", step=step, layer=layer)
        if answered > routed:
            timeline.add(routed, answered, "compute", "sync", step=step, layer=layer)
        resident = hits.bit_count()
        timeline.add(
            answered, end, "compute", "experts", step=step, layer=layer, experts=needed, value=resident
        )
        queued = self._transfers.queued()
        timeline.add(end, end, "counter", "queue_depth", step=step, value=queued)
