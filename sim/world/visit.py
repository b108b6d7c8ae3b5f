"""One layer visit on the simulated machine, in closed form.

Attention and dense work; router; the host learns the routed set (a device-to-host round trip, skipped only where
the whole layer is known resident); missing experts are requested; resident ones are computed first; each
arrival is computed in order of arrival; experts beyond the slots are streamed through a few staging slots. In
lock step nobody else uses the link before the visit ends, so every arrival time is known at the request
(`Link.land_on_demand`) and the visit needs no event of its own.
"""

from __future__ import annotations

from collections import deque

from hideaway.sim.commands import Cancel, Command, Fetch, Promote, Stream
from hideaway.sim.events import LayerDone, LayerRouted, TransfersArrived, TransfersCancelled
from hideaway.sim.masks import experts_of
from hideaway.sim.scheduler import Scheduler
from hideaway.sim.timeline import Timeline
from hideaway.sim.world.compute import ForwardCosts, stretched
from hideaway.sim.world.link import Link


class Visitor:
    """Executes layer visits; keeps the seconds that the compute stream spent not computing.

    Attributes
    ----------
    exposed_seconds : float
        Compute idle while a pass waits for an expert, issue stalls excluded.
    issue_idle_seconds : float
        Compute idle because copies that it waits for were not issued yet.
    sync_seconds : float
        Compute idle while the host learns the routed set.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        link: Link,
        *,
        num_experts: int,
        staging_slots: int,
        compute_slowdown: float,
        timeline: Timeline | None,
    ) -> None:
        self._scheduler = scheduler
        self._residency = scheduler.cache.residency
        self._link = link
        self._all_experts = (1 << num_experts) - 1
        self._staging_slots = staging_slots
        self._slowdown = compute_slowdown
        self._timeline = timeline
        self.exposed_seconds = 0.0
        self.issue_idle_seconds = 0.0
        self.sync_seconds = 0.0
        self.step = 0

    def visit(
        self, now: float, layer: int, needed: int, ahead: tuple[int, ...], costs: ForwardCosts
    ) -> float:
        """Return when the visit that starts at `now` ends. Changes state."""
        link, copies, scheduler, residency = self._link, self._link.copies, self._scheduler, self._residency
        routed = now + stretched(costs.before_experts_seconds, now, copies.free_at, self._slowdown)
        asked = routed
        if residency.resident[layer] != self._all_experts:
            asked += costs.round_trip_seconds
            self.sync_seconds += costs.round_trip_seconds
        copies.compute_busy_until = routed
        landed = link.collect(asked)
        if landed:
            scheduler.handle(TransfersArrived(asked, landed))
        hits = needed & residency.resident[layer]
        late = needed & residency.in_flight[layer]
        commands = scheduler.handle(LayerRouted(asked, layer, needed, ahead))
        streamed = self._execute(commands, asked) if commands else 0
        hit_seconds = costs.hits_seconds(hits, needed)
        if needed == hits:
            end = asked + stretched(hit_seconds, asked, copies.free_at, self._slowdown)
            fetched = 0
        else:
            in_air = link.in_air(layer) if late else []
            joined = [copied for copied, expert in in_air if copied > asked and expert & late]
            work = asked, hit_seconds, costs.arrival_seconds(needed)
            end, fetched = self._wait(layer, joined, streamed, work)
        if self._timeline is not None:
            self._log(now, routed, asked, end, layer, needed, hits)
        landed = link.collect(end)
        if landed:
            scheduler.handle(TransfersArrived(end, landed))
        scheduler.handle(LayerDone(end, layer, fetched))
        return end

    def _execute(self, commands: list[Command], at_seconds: float) -> int:
        """Pass the transfers of a visit to the link and return the experts to stream. Changes state."""
        link = self._link
        streamed = 0
        for command in commands:
            if isinstance(command, Fetch):
                link.submit(command.layer, command.experts, command.band, at_seconds)
            elif isinstance(command, Stream):
                streamed = command.experts
            elif isinstance(command, Promote):
                link.promote(command.layer, command.experts, at_seconds)
            elif isinstance(command, Cancel):
                dropped = link.withdraw(command.layer, command.experts)
                if dropped:
                    self._scheduler.handle(TransfersCancelled(at_seconds, command.layer, dropped))
        return streamed

    def _wait(
        self, layer: int, joined: list[float], streamed: int, work: tuple[float, float, float]
    ) -> tuple[float, int]:
        """Return when the last missing expert is computed, and which were fetched into slots. Changes state.

        Parameters
        ----------
        joined : list of float
            Ends of needed copies that were submitted before.
        work : tuple of float
            When the experts were asked for, the seconds of the hits, and of each arrival.
        """
        link, copies = self._link, self._link.copies
        asked, hit_seconds, each = work
        copies.compute_busy_until = asked + hit_seconds
        stalls = copies.issue_stall_seconds
        ends, fetched = link.land_on_demand(layer)
        last = copies.free_at
        finish = asked + stretched(hit_seconds, asked, last, self._slowdown)
        slowed = each * (1.0 + self._slowdown)
        waited = 0.0
        for arrival in joined + ends:
            if arrival > finish:
                waited += arrival - finish
                self._log_wait(finish, arrival, layer)
                finish = arrival
            finish += each if finish >= last else slowed
        if streamed:
            finish, idle = self._stream(asked, layer, streamed, finish, slowed)
            waited += idle
        stalled = min(waited, copies.issue_stall_seconds - stalls)
        self.issue_idle_seconds += stalled
        self.exposed_seconds += waited - stalled
        return finish, fetched

    def _stream(
        self, asked: float, layer: int, streamed: int, finish: float, each: float
    ) -> tuple[float, float]:
        """Move, use and drop experts one by one through the staging slots. Changes state."""
        link = self._link
        if link.copies.plain:
            count = streamed.bit_count()
            return link.copies.run_staged(count, asked, finish, each, self._staging_slots)
        free = deque([asked] * self._staging_slots, maxlen=self._staging_slots)
        waited = 0.0
        for expert in experts_of(streamed):
            arrival = link.stream(layer, 1 << expert, asked, free[0])
            if arrival > finish:
                waited += arrival - finish
                self._log_wait(finish, arrival, layer)
                finish = arrival
            finish += each
            free.append(finish)
        return finish, waited

    def _log_wait(self, start: float, end: float, layer: int) -> None:
        if self._timeline is not None:
            self._timeline.add(start, end, "compute", "wait", step=self.step, layer=layer)

    def _log(
        self, now: float, routed: float, asked: float, end: float, layer: int, needed: int, hits: int
    ) -> None:
        timeline, step = self._timeline, self.step
        assert timeline is not None
        timeline.add(now, routed, "compute", "attention", step=step, layer=layer)
        if asked > routed:
            timeline.add(routed, asked, "compute", "sync", step=step, layer=layer)
        timeline.add(
            asked, end, "compute", "experts", step=step, layer=layer, experts=needed, value=hits.bit_count()
        )
        timeline.add(end, end, "counter", "queue_depth", step=step, value=self._link.queued())
