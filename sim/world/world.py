"""Builds the simulated machine for one run and lets it run: scheduler, link, visitor, engine."""

from __future__ import annotations

import simpy

from hideaway.sim.event_log import EventLog
from hideaway.sim.inputs.scenario.baselines import Baseline
from hideaway.sim.inputs.scenario.fields import Scenario
from hideaway.sim.timeline import Timeline
from hideaway.sim.world.copies import CopyEngine, link_options
from hideaway.sim.world.engine import Engine
from hideaway.sim.world.forward import ForwardRunner
from hideaway.sim.world.host_store import HostStore
from hideaway.sim.world.inputs import Inputs
from hideaway.sim.world.link import Link
from hideaway.sim.world.make_scheduler import make_scheduler
from hideaway.sim.world.memory import MemorySplit
from hideaway.sim.world.serving import make_serving
from hideaway.sim.world.visit import Visitor


class World:
    """One machine, one scheduler, one run.

    Parameters
    ----------
    future : list of list of int or None
        What Belady's rule looks into.
    log : EventLog or None
        Filled with every event and the commands that answered it.
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
        log: EventLog | None = None,
    ) -> None:
        self.env = simpy.Environment()
        self.recorded: list[list[int]] | None = (
            [[] for _ in range(inputs.model.num_layers)] if record else None
        )
        self.scheduler = make_scheduler(scenario, inputs, baseline, memory, future=future, log=log)
        self.link = _make_link(scenario, inputs, timeline)
        self.visitor = Visitor(
            self.scheduler,
            self.link,
            num_experts=inputs.model.num_experts,
            staging_slots=scenario.staging_slots,
            compute_slowdown=inputs.costs.compute_slowdown,
            timeline=timeline,
        )
        serving = make_serving(scenario, inputs, baseline, self.scheduler, timeline)
        self.meter = serving.meter
        forwards = ForwardRunner(
            self.env,
            self.scheduler,
            costs=inputs.costs,
            visitor=self.visitor,
            rows=serving.gatherer,
            foresight=serving.foresight,
            meter=self.meter,
            reused_layers=serving.reused_layers,
            timeline=timeline,
            recorded=self.recorded,
        )
        self.engine = Engine(
            self.env,
            self.scheduler,
            costs=inputs.costs,
            link=self.link,
            forwards=forwards,
            book=serving.book,
        )

    @property
    def visits(self) -> Visitor:
        """Where compute waited."""
        return self.visitor

    @property
    def copies(self) -> CopyEngine:
        """What the link moved."""
        return self.link.copies

    def run(self) -> None:
        """Run every request to its end. Changes state."""
        self.env.run(self.env.process(self.engine.run()))


def _make_link(scenario: Scenario, inputs: Inputs, timeline: Timeline | None) -> Link:
    expert_bytes = inputs.model.expert_bytes
    store = None
    if scenario.page_cache_bytes is not None:
        value = inputs.costs.profile.value
        seconds = value("ssd.latency_seconds") + expert_bytes / value("ssd.read_bytes_per_second")
        store = HostStore(scenario.page_cache_bytes // expert_bytes, seconds)
    options = link_options(scenario)
    copies = CopyEngine(
        inputs.costs.link,
        expert_bytes,
        options,
        store=store,
        link_slowdown=inputs.costs.link_slowdown,
        timeline=timeline,
    )
    return Link(copies, options)
