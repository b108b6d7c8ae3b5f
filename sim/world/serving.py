"""The parts of a run that both worlds share besides the scheduler: rows, foresight, request book.

What is random in them comes from the scenario's seed alone, so that either world serves the same requests, reads
the same experts and accepts the same drafts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hideaway.sim.inputs.routing.recorded import RecordedAcceptance
from hideaway.sim.inputs.scenario.baselines import Baseline
from hideaway.sim.inputs.scenario.fields import Scenario
from hideaway.sim.metrics import Meter
from hideaway.sim.scheduler import Scheduler
from hideaway.sim.timeline import Timeline
from hideaway.sim.world.forward_rows import RowGatherer
from hideaway.sim.world.inputs import Inputs
from hideaway.sim.world.prediction import Foresight
from hideaway.sim.world.recorded_rows import RecordedRows
from hideaway.sim.world.request_book import RequestBook
from hideaway.sim.world.rows import RowRouting


@dataclass(frozen=True, slots=True)
class Serving:
    """What an engine asks while it serves.

    Attributes
    ----------
    reused_layers : int
        Layers whose attention a route pass has already done for the verified rows.
    """

    gatherer: RowGatherer
    foresight: Foresight
    book: RequestBook
    reused_layers: int

    @property
    def meter(self) -> Meter:
        """What the run reports."""
        return self.book.meter


def make_serving(
    scenario: Scenario,
    inputs: Inputs,
    baseline: Baseline,
    scheduler: Scheduler,
    timeline: Timeline | None = None,
) -> Serving:
    """Return fresh parts for one run of `scheduler`."""
    acceptance = inputs.acceptance
    if inputs.recorded is None:
        rows = RowRouting(inputs.trace, inputs.table, rejected=scenario.rejected_routing, seed=scenario.seed)
    else:
        rows = RecordedRows(inputs.recorded, inputs.table)
        acceptance = RecordedAcceptance(inputs.recorded)
    prefetch = scheduler.cache.prefetch
    foresight = Foresight(
        scenario,
        inputs.table,
        top_k=inputs.model.top_k,
        block_size=scenario.block_size if baseline.speculative else 1,
        lookahead=prefetch.lookahead,
        rng=np.random.default_rng([scenario.seed, 4]),
    )
    book = RequestBook(
        scheduler,
        rows=rows,
        foresight=foresight,
        acceptance=acceptance,
        requests=inputs.requests,
        closed_loop=scenario.closed_loop,
        seed=scenario.seed,
        meter=Meter(),
        timeline=timeline,
    )
    depth = scheduler.options.exact_depth
    reuses = scenario.verify_reuses_route and baseline.speculative and prefetch.routes and depth > 1
    return Serving(RowGatherer(scheduler, rows), foresight, book, depth if reuses else 0)
