"""The split of the device's memory."""

import pytest

from hideaway.sim.costs import CostModel
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.models import load_model
from hideaway.sim.inputs.profiles import load_profile
from hideaway.sim.inputs.scenario import BASELINES, Scenario
from hideaway.sim.world.memory import CapacityError, split_memory

MODEL = load_model("gpt-oss-20b")
PROFILE = load_profile("rtx-pro-6000")


def split(baseline, profile=PROFILE, **fields):
    scenario = Scenario(baseline=baseline, **fields)
    costs = CostModel(MODEL, profile, drafter_parameters=scenario.drafter_parameters)
    return split_memory(scenario, BASELINES[baseline], costs)


@pytest.mark.parametrize("baseline", BASELINES)
def test_the_parts_sum_to_the_devices_memory(baseline):
    memory = split(baseline)
    parts = memory.slots_bytes + memory.dense_bytes + memory.drafter_bytes + memory.staging_bytes
    assert parts + memory.reserved_bytes + memory.kv_bytes == PROFILE.value("memory.device_bytes")
    assert memory.kv_bytes > 0


def test_speculative_baselines_have_equal_parts():
    assert split("B1") == split("B2") == split("OURS") == split("OURS-oracle")


@pytest.mark.parametrize("slots", [1, 8, 16, 24])
def test_without_a_drafter_its_memory_becomes_slots_to_within_one_a_layer(slots):
    drafted, plain = split("B1", slots=slots), split("B0", slots=slots)
    together = drafted.slots_bytes + drafted.drafter_bytes
    layer_of_slots = MODEL.num_layers * MODEL.expert_bytes
    assert plain.drafter_bytes == 0
    assert together - layer_of_slots < plain.slots_bytes <= together
    assert abs(plain.kv_bytes - drafted.kv_bytes) < layer_of_slots


def test_an_offloaded_baseline_never_gets_a_slot_for_every_expert_that_way():
    assert split("B0", slots=31, drafter_parameters=1e10).slots_per_layer == 31


def test_a_share_of_the_experts_is_rounded_to_whole_slots_and_at_least_one():
    assert split("B1", slot_fraction=0.5).slots_per_layer == 16
    assert split("B1", slot_fraction=0.48).slots_per_layer == 15
    assert split("B1", slot_fraction=0.001).slots_per_layer == 1


def test_resident_baselines_have_a_slot_for_every_expert_and_none_for_staging():
    memory = split("B3", slots=4)
    assert (memory.slots_per_layer, memory.staging_bytes) == (32, 0)


def test_more_slots_than_experts_are_refused():
    with pytest.raises(InputError, match="slots is 33; a layer of openai/gpt-oss-20b has 32 experts"):
        split("B1", slots=33)


def test_what_does_not_fit_is_one_sentence():
    small = PROFILE.with_values({"memory.device_bytes": 16e9})
    with pytest.raises(
        CapacityError, match=r"32 expert slots per layer take 10.2 GB.* leaves nothing of 16.0 GB"
    ):
        split("B3", profile=small)
    assert split("B1", profile=small, slots=4).kv_bytes > 0
