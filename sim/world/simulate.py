"""Run one scenario: `simulate(scenario) -> Run`. Everything random comes from the scenario's seed."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import numpy as np

from hideaway.sim.costs import CostModel
from hideaway.sim.errors import InputError
from hideaway.sim.event_log import EventLog
from hideaway.sim.inputs.acceptance import load_acceptance
from hideaway.sim.inputs.arrivals import RequestSpec, load_arrivals
from hideaway.sim.inputs.models import ModelSpec, load_model
from hideaway.sim.inputs.profiles import load_profile
from hideaway.sim.inputs.routing import UnionTable, load_routing
from hideaway.sim.inputs.routing.recorded import RecordedAcceptance, read_recorded_run
from hideaway.sim.inputs.scenario.baselines import BASELINES
from hideaway.sim.inputs.scenario.fields import Scenario
from hideaway.sim.metrics import Meter
from hideaway.sim.timeline import Timeline
from hideaway.sim.timeline_record import MAX_SECONDS
from hideaway.sim.world.inputs import Inputs
from hideaway.sim.world.memory import MemorySplit, split_memory
from hideaway.sim.world.summary import offloading, summarise
from hideaway.sim.world.world import World

MAX_LAYER_VISITS = 10**9
"""Visits if every token were a forward of its own: hours of simulation, so a slip in a length or a chunk size."""


@dataclass(frozen=True, slots=True)
class Run:
    """One finished run.

    Attributes
    ----------
    metrics : dict of str to float
        The contract's figures first, then those that explain them (`hideaway.sim.world.summary`).
    warnings : tuple of str
        What a reader of the figures should know.
    meter : Meter
        Requests and rounds one by one.
    timeline : Timeline or None
        Every piece of work, when asked for.
    recorded : list of list of int or None
        Expert masks that each layer's visits read, when asked for.
    """

    scenario: Scenario
    inputs: Inputs
    memory: MemorySplit
    metrics: dict[str, float]
    warnings: tuple[str, ...]
    meter: Meter
    timeline: Timeline | None = None
    recorded: list[list[int]] | None = None


def default_routing(model: ModelSpec) -> str:
    """Return the routing for a model when none is named: its own trace, or a router fitted to the nearest one."""
    if (model.num_layers, model.num_experts, model.top_k) == (24, 32, 4):
        return "replay:gpt-oss-20b"
    return "fitted:qwen3-30b-a3b" if model.num_experts >= 64 else "fitted:gpt-oss-20b"


def load_inputs(scenario: Scenario) -> Inputs:
    """Load what a scenario names.

    Raises
    ------
    InputError
        Something does not exist, is malformed or does not fit together.
    """
    model = load_model(scenario.model, expert_format=scenario.expert_format)
    profile = load_profile(scenario.profile)
    if scenario.parameters:
        profile = profile.with_values(dict(scenario.parameters))
    costs = CostModel(
        model,
        profile,
        launch=scenario.launch,
        drafter_parameters=scenario.drafter_parameters,
        pageable=scenario.pageable,
    )
    if scenario.rejected_routing == "recorded":
        return _recorded_inputs(scenario, model, costs)
    trace = load_routing(
        scenario.routing or default_routing(model),
        num_layers=model.num_layers,
        num_experts=model.num_experts,
        top_k=model.top_k,
        rng=np.random.default_rng([scenario.seed, 0]),
    )
    acceptance = load_acceptance(scenario.acceptance)
    return Inputs(model, costs, trace, UnionTable(trace), acceptance, _requests(scenario))


def _requests(scenario: Scenario) -> tuple[RequestSpec, ...]:
    return load_arrivals(
        scenario.trace,
        num_requests=scenario.requests,
        rate_requests_per_second=scenario.rate,
        rng=np.random.default_rng([scenario.seed, 3]),
        lengths_only=scenario.closed_loop is not None,
    )


def _recorded_inputs(scenario: Scenario, model: ModelSpec, costs: CostModel) -> Inputs:
    """Return inputs that replay a recorded run: its routing, acceptance and lengths, at the trace's arrival times."""
    if scenario.routing is None or not os.path.isfile(scenario.routing):
        raise InputError(
            f"rejected_routing is recorded but routing is {scenario.routing!r}; give the file of a recorded run"
        )
    run = read_recorded_run(scenario.routing)
    found = run.trace.num_layers, run.trace.num_experts, run.trace.top_k
    if found != (model.num_layers, model.num_experts, model.top_k):
        raise InputError(
            f"the run in {scenario.routing!r} has {found[0]} layers, {found[1]} experts and top-{found[2]} routing, "
            f"which is not {model.name}; simulate the model that was recorded"
        )
    if scenario.requests > run.num_requests:
        raise InputError(
            f"{scenario.requests} requests were asked for but {run.num_requests} were recorded; lower --requests"
        )
    lengths = zip(run.input_tokens, run.output_tokens, strict=True)
    requests = tuple(
        RequestSpec(spec.arrival_seconds, *pair)
        for spec, pair in zip(_requests(scenario), lengths, strict=False)
    )
    return Inputs(model, costs, run.trace, UnionTable(run.trace), RecordedAcceptance(run), requests, run)


def simulate(
    scenario: Scenario,
    *,
    inputs: Inputs | None = None,
    timeline: Timeline | None = None,
    record: bool = False,
    future: list[list[int]] | None = None,
    log: EventLog | None = None,
) -> Run:
    """Run one scenario to its end.

    Parameters
    ----------
    inputs : Inputs, optional
        From `load_inputs`, to load once for many runs; must be those of the scenario.
    timeline : Timeline, optional
        Filled with every piece of work.
    record : bool
        Keep the expert masks of every layer visit.
    future : list of list of int, optional
        A recorded run for Belady's rule; made by a first pass when the rule is asked for without it.
    log : EventLog, optional
        Filled with every event and the commands that answered it.

    Raises
    ------
    CapacityError
        The model does not fit the device in this way.
    InputError
        The scenario is wrong in another way.
    """
    inputs = load_inputs(scenario) if inputs is None else inputs
    if scenario.eviction == "belady" and future is None:
        first = simulate(replace(scenario, eviction="lru"), inputs=inputs, record=True)
        future = first.recorded
    _refuse_endless(scenario, inputs)
    baseline = BASELINES[scenario.baseline]
    memory = split_memory(scenario, baseline, inputs.costs)
    if not baseline.resident:
        _refuse_resident(scenario, memory, inputs.model)
    world = World(
        scenario, inputs, baseline, memory, timeline=timeline, record=record, future=future, log=log
    )
    world.run()
    if world.meter.end_seconds > MAX_SECONDS:
        raise InputError(
            f"the run would last {world.meter.end_seconds:g} s, more than {MAX_SECONDS:g}; correct the parameters of"
            f" profile {inputs.costs.profile.name} that are far from any machine"
        )
    metrics, warnings = summarise(scenario, world, inputs.model.expert_bytes)
    metrics |= offloading(metrics, inputs.costs.experts.group_seconds)
    return Run(scenario, inputs, memory, metrics, warnings, world.meter, timeline, world.recorded)


def _refuse_endless(scenario: Scenario, inputs: Inputs) -> None:
    chunk = scenario.prefill_chunk_tokens
    forwards = sum(-(-request.input_tokens // chunk) + request.output_tokens for request in inputs.requests)
    visits = forwards * inputs.model.num_layers
    if visits > MAX_LAYER_VISITS:
        raise InputError(
            f"the requests ask for up to {visits:.3g} layer visits, more than {MAX_LAYER_VISITS:g}; lower --requests,"
            " shorten the trace's lengths or raise --prefill-chunk-tokens"
        )


def _refuse_resident(scenario: Scenario, memory: MemorySplit, model: ModelSpec) -> None:
    if memory.slots_per_layer >= model.num_experts:
        raise InputError(
            f"{scenario.baseline} is an offloaded baseline but all {model.num_experts} experts of a layer have slots, "
            "so nothing is offloaded; lower --slots or --slot-fraction, or ask for B3"
        )
