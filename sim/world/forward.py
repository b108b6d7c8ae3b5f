"""One forward of the target: rows, layer visits, head, and what its end commits.

Every layer's needed experts are known to the world from the start of the forward (from the routing trace); the
scheduler is told layer by layer. Next: `hideaway.sim.world.visit` for one layer.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import simpy

from hideaway.sim.commands import Forward
from hideaway.sim.costs import CostModel
from hideaway.sim.events import ForwardDone, LayersHit
from hideaway.sim.metrics import Meter
from hideaway.sim.scheduler import Scheduler
from hideaway.sim.timeline import Timeline
from hideaway.sim.world.compute import ForwardCosts
from hideaway.sim.world.prediction import Foresight
from hideaway.sim.world.rows import Range, RowRouting
from hideaway.sim.world.visit import Visitor


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one forward.

    Attributes
    ----------
    needed : list of int
        Per layer, the experts that all rows read.
    kept : list of Range
        Committed rows of each sequence in the trace.
    committed : tuple of (seq_id, tokens)
        What each verified sequence commits.
    contexts : list of (rows, context tokens)
    num_rows, head_rows : int
        All token rows, and those whose logits are needed.
    """

    needed: list[int]
    kept: list[Range]
    committed: tuple[tuple[int, int], ...]
    contexts: list[tuple[int, int]]
    num_rows: int
    head_rows: int


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
        rows: RowRouting,
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
        prefetch = scheduler.cache.prefetch
        self._wants_last_rows = prefetch.last_rows
        self._wants_kept_rows = prefetch.kept_rows or prefetch.last_rows or prefetch.prefetches

    def run(self, now: float, work: Forward, accepted: dict[int, int]) -> Generator[Any, Any, ForwardDone]:
        """Execute a forward that starts at `now`; the value is the event of its end. Part of a SimPy process."""
        rows = self._gather(work, accepted)
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
        last, kept = self._row_experts(rows)
        prefilled = None if work.prefill is None else (work.prefill[0], work.prefill[2])
        return ForwardDone(now, rows.committed, prefilled, last, kept)

    def _gather(self, work: Forward, accepted: dict[int, int]) -> Rows:
        """Look up what every row of the forward reads."""
        ranges: list[Range] = []
        kept: list[Range] = []
        contexts: list[tuple[int, int]] = []
        committed: list[tuple[int, int]] = []
        num_rows = 0
        running = self._scheduler.batch.running
        for seq_id, block in work.seats:
            sequence = running[seq_id]
            tokens = accepted.get(seq_id, 1)
            ranges += self._rows.block(seq_id, block, tokens)
            tokens = min(tokens, sequence.output_tokens - sequence.committed)
            kept.append(self._rows.kept(seq_id, tokens))
            committed.append((seq_id, tokens))
            contexts.append((block, sequence.prompt_tokens + sequence.committed))
            num_rows += block
        head_rows = num_rows
        if work.prefill is not None:
            seq_id, first, tokens = work.prefill
            chunk = self._rows.prompt(seq_id, first, tokens, running[seq_id].prompt_tokens)
            ranges.append(chunk)
            kept.append(chunk)
            contexts.append((tokens, first + tokens))
            num_rows += tokens
            head_rows += 1
        return Rows(self._rows.unions(ranges), kept, tuple(committed), contexts, num_rows, head_rows)

    def _resident_layers(self, now: float, needed: list[int], costs: ForwardCosts) -> float:
        """Run all layers of a wholly resident model as one stretch of work."""
        end = now
        for mask in needed:
            end += costs.dense_seconds + costs.router_seconds + costs.hits_seconds(mask, mask)
        self._scheduler.handle(LayersHit(now, tuple(needed)))
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
        for layer, needed in enumerate(rows.needed):
            while env.peek() <= now:
                yield env.timeout(max(0.0, now - env.now))
            now = visit(now, layer, needed, ahead[layer], reused if layer < self._reused_layers else costs)
        return now

    def _reused_costs(self, work: Forward, rows: Rows, costs: ForwardCosts) -> ForwardCosts:
        """Return the costs of layers whose attention the route pass has done: only the prompt's rows need it."""
        if self._reused_layers == 0:
            return costs
        prompt_rows = 0 if work.prefill is None else work.prefill[2]
        return costs.with_dense(self._costs, prompt_rows, rows.contexts[len(work.seats) :])

    def _row_experts(self, rows: Rows) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return what the last and all committed rows read, per layer, as far as the prefetch policy asks."""
        last: tuple[int, ...] = ()
        kept: tuple[int, ...] = ()
        if self._wants_last_rows:
            last = tuple(self._rows.unions([(start + tokens - 1, 1) for start, tokens in rows.kept]))
        if self._wants_kept_rows:
            kept = tuple(self._rows.unions(rows.kept))
        return last, kept
