"""Everything in force in a run, defaults included: a figure without its conditions is no figure."""

from __future__ import annotations

from dataclasses import fields

from hideaway.sim.inputs.prediction import PRESETS
from hideaway.sim.inputs.scenario.baselines import BASELINES
from hideaway.sim.inputs.scenario.fields import Scenario
from hideaway.sim.world.inputs import Inputs
from hideaway.sim.world.memory import MemorySplit
from hideaway.sim.world.simulate import default_routing


def defaults_in_force(scenario: Scenario, inputs: Inputs, memory: MemorySplit | None) -> dict[str, object]:
    """Return name and value of every setting of a run, with what was worked out from them."""
    settings: dict[str, object] = {}
    for spec in fields(scenario):
        value = getattr(scenario, spec.name)
        settings[spec.name] = dict(value) if spec.name == "parameters" else value
    baseline = BASELINES[scenario.baseline]
    settings["routing"] = scenario.routing or default_routing(inputs.model)
    settings["routing_origin"] = inputs.trace.origin
    settings["acceptance_origin"] = inputs.acceptance.origin
    settings["predictor_origin"] = PRESETS[scenario.predictor].source
    settings["concurrency"] = scenario.closed_loop
    settings["prefetch"] = scenario.prefetch or baseline.prefetch
    settings["admission"] = scenario.admission or baseline.admission
    settings["router_exact_depth"] = (
        inputs.model.num_layers if baseline.oracle else scenario.router_exact_depth or 1
    )
    settings["model"] = inputs.model.name
    settings["expert_format"] = inputs.model.expert_format
    settings["expert_bytes"] = inputs.model.expert_bytes
    if memory is not None:
        settings["slots"] = memory.slots_per_layer
        settings["slot_fraction"] = round(memory.slots_per_layer / inputs.model.num_experts, 4)
        settings["kv_capacity_bytes"] = memory.kv_bytes
    return settings
