"""The first layers of a model, as a model of their own: what fits a machine, with the proportions of the whole.

Layers, their attention and their experts keep their full shapes. What a forward does once for all layers (head,
embedding, drafter) is scaled by kept layers / all layers, so that its share of a forward stays what it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hideaway.hw.store.description import EXPERT_FORMATS
from hideaway.hw.store.source import moe_layers, spec_in_fp4
from hideaway.sim.costs import CostModel
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.models import Architecture, ModelSpec, load_architecture
from hideaway.sim.inputs.models.architecture import DenseLayers
from hideaway.sim.inputs.routing import RoutingTrace, UnionTable
from hideaway.sim.inputs.scenario.fields import Scenario
from hideaway.sim.world.inputs import Inputs
from hideaway.sim.world.simulate import load_inputs


@dataclass(frozen=True, slots=True)
class Truncated:
    """A scenario whose model is cut to its first layers; the simulator can run the same one from `inputs`.

    Attributes
    ----------
    scenario : Scenario
        With the drafter scaled and the experts in FP4.
    architecture : Architecture
        Of the kept layers.
    share : float
        Kept layers / all layers.
    """

    scenario: Scenario
    architecture: Architecture
    inputs: Inputs
    share: float


def truncate(scenario: Scenario, num_layers: int | None) -> Truncated:
    """Return a scenario cut to the first `num_layers` layers with routed experts (all by default).

    Raises
    ------
    InputError
        The model has fewer, or what the scenario names is wrong.
    """
    if scenario.expert_format not in (None, *EXPERT_FORMATS):
        raise InputError(
            f"expert_format is {scenario.expert_format!r}; real experts are {' or '.join(EXPERT_FORMATS)}, choose one"
        )
    whole = load_architecture(scenario.model)
    expert_format = spec_in_fp4(whole, scenario.expert_format).expert_format
    scenario = replace(scenario, expert_format=expert_format)
    loaded = load_inputs(scenario)
    cut = cut_architecture(whole, num_layers)
    share = len(cut.layer_kinds) / len(whole.layer_kinds)
    model = spec_in_fp4(cut, expert_format)
    scenario = replace(scenario, drafter_parameters=max(1.0, scenario.drafter_parameters * share))
    trace = cut_trace(loaded.trace, model)
    costs = CostModel(
        model,
        loaded.costs.profile,
        launch=scenario.launch,
        drafter_parameters=scenario.drafter_parameters,
    )
    recorded = loaded.recorded
    if recorded is not None and trace is not loaded.trace:
        raise InputError(
            "a recorded run can only be replayed over all layers, but --layers cuts some; leave it out"
        )
    inputs = Inputs(model, costs, trace, UnionTable(trace), loaded.acceptance, loaded.requests, recorded)
    return Truncated(scenario, cut, inputs, share)


def cut_architecture(whole: Architecture, num_layers: int | None) -> Architecture:
    """Return the layers up to the `num_layers`-th with routed experts, the vocabulary scaled alike."""
    kept = moe_layers(whole, num_layers)
    count = kept[-1] + 1
    if count == len(whole.layer_kinds):
        return whole
    kinds = whole.layer_kinds[:count]
    indices = tuple(index for index in whole.dense_indices if index < count)
    dense = None
    if whole.dense_layers is not None and indices:
        dense = DenseLayers(indices, whole.dense_layers.intermediate_size)
    return replace(
        whole,
        name=f"{whole.name} (first {len(kept)} layers)",
        layer_kinds=kinds,
        vocab_size=max(1, round(whole.vocab_size * count / len(whole.layer_kinds))),
        dense_layers=dense,
        sliding_window_tokens=whole.sliding_window_tokens if "sliding" in kinds else None,
    )


def cut_trace(trace: RoutingTrace, model: ModelSpec) -> RoutingTrace:
    """Return the choices of the first layers of a trace."""
    if trace.num_layers == model.num_layers:
        return trace
    return RoutingTrace(
        name=trace.name,
        expert_ids=trace.expert_ids[:, : model.num_layers],
        num_experts=trace.num_experts,
        top_k=trace.top_k,
        seq_lengths=trace.seq_lengths,
        origin=f"{trace.origin}; first {model.num_layers} of {trace.num_layers} layers",
    )
