"""Everything in force in a run, defaults included: a figure without its conditions is no figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

from hideaway.sim.inputs.predictor_file import predictor_named
from hideaway.sim.inputs.scenario.baselines import BASELINES, Baseline
from hideaway.sim.inputs.scenario.fields import Scenario
from hideaway.sim.policies.admission.deficit import DeficitAdmission
from hideaway.sim.world.inputs import Inputs
from hideaway.sim.world.memory import CapacityError, MemorySplit, split_memory
from hideaway.sim.world.policies import make_admission, route_depth
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
    settings["predictor_origin"] = predictor_named(scenario.predictor).source
    settings["concurrency"] = scenario.closed_loop
    settings["prefetch"] = scenario.prefetch or baseline.prefetch
    settings["admission"] = scenario.admission or baseline.admission
    settings["router_exact_depth"] = (
        inputs.model.num_layers if baseline.oracle else scenario.router_exact_depth or 1
    )
    settings["model"] = inputs.model.name
    settings["expert_format"] = inputs.model.expert_format
    settings["expert_bytes"] = inputs.model.expert_bytes
    settings |= _budgets(scenario, baseline, inputs)
    if memory is not None:
        settings["slots"] = memory.slots_per_layer
        settings["slot_fraction"] = round(memory.slots_per_layer / inputs.model.num_experts, 4)
        settings["kv_capacity_bytes"] = memory.kv_bytes
    return settings


def _budgets(scenario: Scenario, baseline: Baseline, inputs: Inputs) -> dict[str, object]:
    """Return the admission budgets in force; None where the baseline has none."""
    admission = make_admission(scenario, baseline, inputs.costs)
    if not isinstance(admission, DeficitAdmission):
        return {"token_budget": None, "byte_budget": None}
    bounded = admission.needs_bytes
    return {
        "token_budget": admission.budget.tokens,
        "token_deficit_cap": admission.deficit_cap.tokens,
        "byte_budget": admission.budget.expert_bytes if bounded else None,
        "byte_deficit_cap": admission.deficit_cap.expert_bytes if bounded else None,
    }


def settings_rows(settings: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return (name, value) of each setting for a table; what is not set is a dash."""
    return [(name, _text(value)) for name, value in settings.items()]


def _text(value: object) -> str:
    if value is None or value == {}:
        return "-"
    if isinstance(value, dict):
        return ", ".join(f"{name} = {number:g}" for name, number in value.items())
    if isinstance(value, list):
        return " ".join(map(str, value))
    return str(value)


BASELINE_COLUMNS = ("baseline", "slots", "prefetch", "admission", "exact depth", "meaning")


def baseline_rows(scenario: Scenario, inputs: Inputs, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return what each baseline of a matrix runs with, for a table under `BASELINE_COLUMNS`."""
    rows: list[tuple[str, ...]] = []
    for name in names:
        baseline = BASELINES[name]
        routes = (scenario.prefetch or baseline.prefetch) in (
            "route-ahead",
            "cross-round",
        ) and not baseline.resident
        try:
            slots = str(split_memory(scenario, baseline, inputs.costs).slots_per_layer)
        except CapacityError:
            slots = "does not fit"
        rows.append(
            (
                name,
                slots,
                "none" if baseline.resident else scenario.prefetch or baseline.prefetch,
                scenario.admission or baseline.admission if baseline.speculative else "-",
                str(route_depth(scenario, baseline, inputs.model.num_layers)) if routes else "-",
                baseline.meaning,
            )
        )
    return rows
