"""Builds the simulated machine for one run and lets it run: scheduler, link, visitor, engine."""

from __future__ import annotations

import numpy as np
import simpy

from hideaway.sim.batch import Batch, BatchOptions
from hideaway.sim.expert_cache import ExpertCache
from hideaway.sim.inputs.scenario.baselines import Baseline
from hideaway.sim.inputs.scenario.fields import Scenario
from hideaway.sim.kv_pool import KvPool
from hideaway.sim.metrics import Meter
from hideaway.sim.residency import Residency
from hideaway.sim.scheduler import Scheduler, SchedulerOptions
from hideaway.sim.timeline import Timeline
from hideaway.sim.world.engine import Engine, EngineOptions
from hideaway.sim.world.forward import ForwardRunner
from hideaway.sim.world.host_store import HostStore
from hideaway.sim.world.inputs import Inputs
from hideaway.sim.world.copies import CopyEngine, LinkOptions
from hideaway.sim.world.link import Link
from hideaway.sim.world.memory import MemorySplit
from hideaway.sim.world.policies import initial_residency, make_admission, make_eviction, make_prefetch, route_depth
from hideaway.sim.world.prediction import Foresight
from hideaway.sim.world.rows import RowRouting
from hideaway.sim.world.visit import Visitor


class World:
    """One machine, one scheduler, one run.

    Parameters
    ----------
    future : list of list of int or None
        What Belady's rule looks into.
    record : bool
        Keep the expert masks of every layer visit in `recorded`.
    """

    def __init__(
        self,
        scenario: Scenario,
        inputs: Inputs,
        baseline: Baseline,
        memory: MemorySplit,
        *,
        timeline: Timeline | None = None,
        record: bool = False,
        future: list[list[int]] | None = None,
    ) -> None:
        self.env = simpy.Environment()
        self.meter = Meter()
        self.recorded: list[list[int]] | None = (
            [[] for _ in range(inputs.model.num_layers)] if record else None
        )
        self.scheduler = _make_scheduler(scenario, inputs, baseline, memory, future)
        self.link = _make_link(scenario, inputs, timeline)
        self.visitor = Visitor(
            self.scheduler,
            self.link,
            num_experts=inputs.model.num_experts,
            staging_slots=scenario.staging_slots,
            compute_slowdown=inputs.costs.compute_slowdown,
            timeline=timeline,
        )
        rows = RowRouting(inputs.trace, inputs.table, rejected=scenario.rejected_routing, seed=scenario.seed)
        foresight = Foresight(
            scenario,
            inputs.table,
            top_k=inputs.model.top_k,
            block_size=scenario.block_size if baseline.speculative else 1,
            lookahead=self.scheduler.cache.prefetch.lookahead,
            rng=np.random.default_rng([scenario.seed, 4]),
        )
        depth = self.scheduler.options.exact_depth
        routes = baseline.speculative and self.scheduler.cache.prefetch.routes
        reuse = scenario.verify_reuses_route and routes and depth > 1
        forwards = ForwardRunner(
            self.env,
            self.scheduler,
            costs=inputs.costs,
            visitor=self.visitor,
            rows=rows,
            foresight=foresight,
            meter=self.meter,
            reused_layers=depth if reuse else 0,
            timeline=timeline,
            recorded=self.recorded,
        )
        self.engine = Engine(
            self.env,
            self.scheduler,
            costs=inputs.costs,
            link=self.link,
            forwards=forwards,
            rows=rows,
            foresight=foresight,
            acceptance=inputs.acceptance,
            requests=inputs.requests,
            options=EngineOptions(scenario.closed_loop, scenario.seed),
            meter=self.meter,
            timeline=timeline,
        )

    def run(self) -> None:
        """Run every request to its end. Changes state."""
        self.env.run(self.env.process(self.engine.run()))


def _make_scheduler(
    scenario: Scenario,
    inputs: Inputs,
    baseline: Baseline,
    memory: MemorySplit,
    future: list[list[int]] | None,
) -> Scheduler:
    model = inputs.model
    slots = [memory.slots_per_layer] * model.num_layers
    cache = ExpertCache(
        Residency(slots, initial_residency(scenario, slots, inputs.table)),
        make_eviction(scenario, model.num_layers, model.num_experts, future),
        make_prefetch(scenario, baseline, model.num_layers),
        num_experts=model.num_experts,
        top_k=model.top_k,
    )
    batch = Batch(
        BatchOptions(
            max_sequences=scenario.most_sequences,
            block_size=scenario.block_size if baseline.speculative else 1,
            prefill_chunk_tokens=scenario.prefill_chunk_tokens,
        ),
        KvPool(memory.kv_bytes, model.kv_bytes),
    )
    depth = route_depth(scenario, baseline, model.num_layers)
    return Scheduler(
        SchedulerOptions(baseline.speculative, depth, model.expert_bytes),
        batch,
        cache,
        make_admission(scenario, baseline, inputs.costs),
    )


def _make_link(scenario: Scenario, inputs: Inputs, timeline: Timeline | None) -> Link:
    expert_bytes = inputs.model.expert_bytes
    store = None
    if scenario.page_cache_bytes is not None:
        value = inputs.costs.profile.value
        seconds = value("ssd.latency_seconds") + expert_bytes / value("ssd.read_bytes_per_second")
        store = HostStore(scenario.page_cache_bytes // expert_bytes, seconds)
    options = LinkOptions(scenario.issue == "batched", scenario.submitted_depth, scenario.chunk_bytes)
    copies = CopyEngine(
        inputs.costs.link,
        expert_bytes,
        options,
        store=store,
        link_slowdown=inputs.costs.link_slowdown,
        timeline=timeline,
    )
    return Link(copies, options)
