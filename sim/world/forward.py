"""One forward of the target: rows, layer visits, head, and what its end commits.

Every layer's needed experts are known to the world from the start of the forward (from the routing trace); the
scheduler is told layer by layer. Next: `hideaway.sim.world.visit` for one layer.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import simpy

from hideaway.sim.commands import Forward
from hideaway.sim.costs import CostModel
from hideaway.sim.events import ForwardDone, LayersHit
from hideaway.sim.metrics import Meter
from hideaway.sim.scheduler import Scheduler
from hideaway.sim.timeline import Timeline
from hideaway.sim.world.compute import ForwardCosts
from hideaway.sim.world.forward_rows import RowGatherer, Rows
from hideaway.sim.world.prediction import Foresight
from hideaway.sim.world.visit import Visitor


class ForwardRunner:
    """Executes forwards.

    Parameters
    ----------
    recorded : list of list of int, optional
        Filled with the expert masks that each layer's successive visits read, when given.
    reused_layers : int
        Layers whose attention a route pass has already done for the verified rows.
    """

    def __init__(
        self,
        env: simpy.Environment,
        scheduler: Scheduler,
        *,
        costs: CostModel,
        visitor: Visitor,
        rows: RowGatherer,
        foresight: Foresight,
        meter: Meter,
        reused_layers: int = 0,
        timeline: Timeline | None = None,
        recorded: list[list[int]] | None = None,
    ) -> None:
        self._env = env
        self._scheduler = scheduler
        self._costs = costs
        self._visitor = visitor
        self._rows = rows
        self._foresight = foresight
        self._meter = meter
        self._reused_layers = reused_layers
        self._timeline = timeline
        self._recorded = recorded
        self._all_resident = scheduler.cache.all_resident()
        self._top_k = scheduler.cache.top_k

    def run(self, now: float, work: Forward, accepted: dict[int, int]) -> Generator[Any, Any, ForwardDone]:
        """Execute a forward that starts at `now`; the value is the event of its end. Part of a SimPy process."""
        rows = self._rows.gather(work, accepted)
        if self._recorded is not None:
            for layer, mask in enumerate(rows.needed):
                self._recorded[layer].append(mask)
        costs = ForwardCosts(
            self._costs,
            rows.num_rows,
            rows.contexts,
            head_rows=rows.head_rows,
            top_k=self._top_k,
            lookahead=self._foresight.lookahead,
        )
        if self._all_resident:
            now = self._resident_layers(now, rows.needed, costs)
        else:
            now = yield from self._visits(now, work, rows, costs)
        if self._timeline is not None:
            self._timeline.add(now, now + costs.other_seconds, "compute", "head", step=self._meter.forwards)
        now += costs.other_seconds
        if now > self._env.now:
            yield self._env.timeout(now - self._env.now)
        last, kept = self._rows.row_experts(rows.kept)
        prefilled = None if work.prefill is None else (work.prefill[0], work.prefill[2])
        return ForwardDone(now, rows.committed, prefilled, last, kept)

    def _resident_layers(self, now: float, needed: tuple[int, ...], costs: ForwardCosts) -> float:
        """Run all layers of a wholly resident model as one stretch of work."""
        end = now
        for mask in needed:
            end += costs.before_experts_seconds + costs.hits_seconds(mask, mask)
        self._scheduler.handle(LayersHit(now, needed))
        if self._timeline is not None:
            self._timeline.add(now, end, "compute", "experts", step=self._meter.forwards)
        return end

    def _visits(
        self, now: float, work: Forward, rows: Rows, costs: ForwardCosts
    ) -> Generator[Any, Any, float]:
        """Visit the layers in order, giving time back to SimPy when something else happens first."""
        env, visit = self._env, self._visitor.visit
        self._visitor.step = self._meter.forwards
        ahead = self._foresight.ahead(rows.needed, len(work.seats))
        reused = self._reused_costs(work, rows, costs)
        others_at = env.peek()  # holds until time is given back: visits schedule nothing
        for layer, needed in enumerate(rows.needed):
            while others_at <= now:
                yield env.timeout(max(0.0, now - env.now))
                others_at = env.peek()
            now = visit(now, layer, needed, ahead[layer], reused if layer < self._reused_layers else costs)
        return now

    def _reused_costs(self, work: Forward, rows: Rows, costs: ForwardCosts) -> ForwardCosts:
        """Return the costs of layers whose attention the route pass has done: only the prompt's rows need it."""
        if self._reused_layers == 0:
            return costs
        prompt_rows = 0 if work.prefill is None else work.prefill[2]
        return costs.with_dense(self._costs, prompt_rows, rows.contexts[len(work.seats) :])
