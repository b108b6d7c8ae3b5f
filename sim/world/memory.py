"""How the device's memory is split between weights, drafter, expert slots and KV caches; static within a run."""

from __future__ import annotations

from dataclasses import dataclass

from hideaway.sim.costs import CostModel
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.scenario.baselines import Baseline
from hideaway.sim.inputs.scenario.fields import Scenario
from hideaway.sim.units import GB


class CapacityError(InputError):
    """What was asked for does not fit the device."""


@dataclass(frozen=True, slots=True)
class MemorySplit:
    """Bytes of the device's memory by use.

    Parameters
    ----------
    slots_per_layer : int
        Expert slots of each MoE layer.
    slots_bytes, dense_bytes, drafter_bytes, staging_bytes, reserved_bytes, kv_bytes : int
        They sum to the device's memory; `kv_bytes` is what the rest leaves.
    """

    slots_per_layer: int
    slots_bytes: int
    dense_bytes: int
    drafter_bytes: int
    staging_bytes: int
    reserved_bytes: int
    kv_bytes: int


def split_memory(scenario: Scenario, baseline: Baseline, costs: CostModel) -> MemorySplit:
    """Return the split for one baseline.

    A baseline without a drafter gives the drafter's memory to expert slots, so that all offloaded baselines use
    equal device bytes for drafter and slots together.

    Raises
    ------
    CapacityError
        Weights, slots and one sequence's KV cache do not fit.
    """
    model, profile = costs.model, costs.profile
    device = round(profile.value("memory.device_bytes"))
    reserved = round(profile.value("memory.reserved_bytes"))
    drafter = costs.drafter_bytes if baseline.speculative else 0
    slots = _slots_per_layer(scenario, baseline, costs)
    slots_bytes = slots * model.num_layers * model.expert_bytes
    staging = 0 if slots >= model.num_experts else scenario.staging_slots * model.expert_bytes
    kv_bytes = device - reserved - model.dense_bytes - drafter - slots_bytes - staging
    if kv_bytes <= 0:
        raise CapacityError(
            f"{slots} expert slots per layer take {slots_bytes / GB:.1f} GB, which with "
            f"{model.dense_bytes / GB:.1f} GB of dense weights, {drafter / GB:.1f} GB of drafter and "
            f"{reserved / GB:.1f} GB reserved leaves nothing of {device / GB:.1f} GB for KV caches; "
            "lower the slots or take a card with more memory"
        )
    return MemorySplit(slots, slots_bytes, model.dense_bytes, drafter, staging, reserved, kv_bytes)


def _slots_per_layer(scenario: Scenario, baseline: Baseline, costs: CostModel) -> int:
    model = costs.model
    if baseline.resident:
        return model.num_experts
    slots = scenario.slots
    if slots is None:
        slots = max(1, round(scenario.slot_fraction * model.num_experts))
    if slots > model.num_experts:
        raise InputError(
            f"slots is {slots}; a layer of {model.name} has {model.num_experts} experts, give at most that"
        )
    if not baseline.speculative and slots < model.num_experts:
        extra = costs.drafter_bytes // (model.num_layers * model.expert_bytes)
        slots = min(model.num_experts - 1, slots + extra)
    return slots
