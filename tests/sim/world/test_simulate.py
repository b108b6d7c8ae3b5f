"""Runs from a scenario to its metrics, on the data that is shipped.

The makespans below are exact and change only when the model of the machine does; the changelog names such a change.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from hideaway.sim.contract import aggregate_result_matrices, make_observation_row
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.models import load_model
from hideaway.sim.inputs.scenario import Scenario, load_scenario
from hideaway.sim.world.memory import CapacityError
from hideaway.sim.world.simulate import default_routing, load_inputs, simulate

DRAFTED = Scenario(baseline="B1", concurrency=2, requests=6)
OPEN_LOOP = Scenario(baseline="B0", rate=2.0, requests=8, trace="azure-code", slots=12)
BATCHED = Scenario(
    baseline="OURS", concurrency=4, requests=10, block_size=16, issue="batched", eviction="aged-lfu"
)
FROM_SSD = Scenario(
    profile="rtx-5090",
    baseline="B2",
    concurrency=3,
    requests=5,
    slot_fraction=0.25,
    trace="sharegpt",
    acceptance="rate:0.8",
    prefetch="cross-round",
    page_cache_bytes=4 * 10**9,
)
MANY_EXPERTS = Scenario(
    model="qwen3-30b-a3b", profile="rtx-5090", baseline="B2", concurrency=3, requests=3, slot_fraction=0.25
)


@cache
def run_of(scenario):
    return simulate(scenario)


@pytest.mark.parametrize(
    ("scenario", "makespan_seconds", "tokens_per_second"),
    [
        (DRAFTED, 2.6903034559378485, 120.43251079534913),
        (OPEN_LOOP, 3.900731839910612, 29.994371518417715),
        (BATCHED, 6.8091926558638, 93.17732311438512),
        (FROM_SSD, 1210.8014223414175, 2.9450383845756916),
    ],
    ids=["drafted", "open loop", "batched", "from SSD"],
)
def test_makespan_and_throughput_of_four_seeded_runs(scenario, makespan_seconds, tokens_per_second):
    metrics = run_of(scenario).metrics
    assert metrics["makespan_seconds"] == pytest.approx(makespan_seconds, rel=1e-12)
    assert metrics["output_tokens_per_second"] == pytest.approx(tokens_per_second, rel=1e-12)


@pytest.mark.parametrize(
    "scenario", [OPEN_LOOP, BATCHED, MANY_EXPERTS], ids=["open loop", "batched", "fitted routing"]
)
def test_the_same_seed_gives_the_same_figures_to_the_last_bit(scenario):
    assert simulate(scenario).metrics == run_of(scenario).metrics


def test_another_seed_gives_another_run():
    assert simulate(replace(DRAFTED, seed=7)).metrics != run_of(DRAFTED).metrics


def test_inputs_loaded_once_serve_many_runs():
    inputs = load_inputs(BATCHED)
    simulate(replace(BATCHED, baseline="B1"), inputs=inputs)
    assert simulate(BATCHED, inputs=inputs).metrics == run_of(BATCHED).metrics


def test_a_scenario_file_runs_as_the_scenario_it_describes(tmp_path):
    path = tmp_path / "scenario.toml"
    path.write_text('baseline = "B1"\nconcurrency = 2\nrequests = 6\n')
    assert simulate(load_scenario(path)).metrics == run_of(DRAFTED).metrics


def test_profile_parameters_of_a_scenario_are_in_force():
    slower = replace(DRAFTED, parameters={"link.h2d_bytes_per_second": 20e9})
    assert simulate(slower).metrics["makespan_seconds"] > run_of(DRAFTED).metrics["makespan_seconds"]


@pytest.mark.parametrize("baseline", ["B0", "B1", "B2", "OURS"])
def test_an_offloaded_baseline_whose_experts_all_fit_is_refused(baseline):
    with pytest.raises(InputError, match=f"{baseline} is an offloaded baseline but all 32 experts"):
        simulate(replace(DRAFTED, baseline=baseline, slots=32))


def test_a_resident_baseline_that_does_not_fit_is_refused_for_its_capacity():
    scenario = Scenario(model="gpt-oss-120b", profile="rtx-5090", baseline="B3", requests=2)
    with pytest.raises(CapacityError, match=r"leaves nothing of .* GB for KV caches"):
        simulate(scenario)


@pytest.mark.parametrize("loop", [{"concurrency": 2}, {"concurrency": None, "open_loop": True}])
def test_a_request_that_can_never_fit_ends_the_run_with_one_sentence(loop):
    memory = run_of(DRAFTED).memory
    parameters = {"memory.device_bytes": 103079215104.0 - memory.kv_bytes + 1e6}
    with pytest.raises(
        InputError, match=r"request 0 needs KV memory for \d+ tokens, more than the 1000000 bytes"
    ):
        simulate(replace(DRAFTED, parameters=parameters, **loop))


def test_without_a_drafter_its_memory_goes_to_slots_so_that_device_bytes_are_equal():
    plain, drafted = run_of(replace(DRAFTED, baseline="B0")).memory, run_of(DRAFTED).memory
    layer_of_slots = drafted.slots_bytes // drafted.slots_per_layer
    gap = drafted.slots_bytes + drafted.drafter_bytes - plain.slots_bytes
    assert 0 <= gap < layer_of_slots
    assert gap == plain.kv_bytes - drafted.kv_bytes


def test_metrics_make_a_row_that_the_contract_takes():
    rows = []
    for baseline in ("B0", "B1", "B2", "B3"):
        run = simulate(replace(DRAFTED, baseline=baseline, requests=3))
        rows.append(
            make_observation_row(
                model=run.inputs.model.name,
                draft="dflash",
                baseline=baseline,
                block_size=8,
                concurrency=2,
                repeat=0,
                metrics=run.metrics,
            )
        )
    matrices = aggregate_result_matrices(rows)
    assert list(matrices) == [("openai/gpt-oss-20b", 8, 2)]


def test_resident_experts_bound_every_offloaded_baseline():
    bound = simulate(replace(DRAFTED, baseline="B3")).metrics
    assert bound["exposed_seconds"] == bound["moved_bytes"] == 0.0
    for baseline in ("B1", "B2", "OURS"):
        metrics = run_of(replace(DRAFTED, baseline=baseline)).metrics
        assert metrics["makespan_seconds"] > bound["makespan_seconds"]


def test_belady_misses_less_than_lru_on_the_run_it_has_seen():
    scenario = replace(DRAFTED, prefetch="none")
    lru, belady = (run_of(replace(scenario, eviction=name)).metrics for name in ("lru", "belady"))
    assert lru["layer_visits"] == belady["layer_visits"]
    assert lru["experts_per_visit"] == belady["experts_per_visit"]
    assert belady["misses_per_visit"] < lru["misses_per_visit"]


def test_a_recorded_run_is_what_its_visits_read():
    run = simulate(replace(DRAFTED, requests=2), record=True)
    sizes = [mask.bit_count() for layer in run.recorded for mask in layer]
    assert len(sizes) == run.metrics["layer_visits"]
    assert np.mean(sizes) == pytest.approx(run.metrics["experts_per_visit"])


def test_the_true_continuation_after_a_rejection_flatters_speculation():
    misses = {
        rejected: run_of(replace(DRAFTED, rejected_routing=rejected, block_size=16)).metrics[
            "misses_per_visit"
        ]
        for rejected in ("true", "same-sequence", "other-sequence")
    }
    assert misses["true"] < misses["same-sequence"]
    assert misses["true"] < misses["other-sequence"]


def test_the_routing_of_a_model_without_a_trace_is_fitted():
    assert default_routing(load_model("gpt-oss-20b")) == "replay:gpt-oss-20b"
    assert default_routing(load_model("qwen3-30b-a3b")) == "fitted:qwen3-30b-a3b"
    assert default_routing(load_model("mixtral-8x7b")) == "fitted:gpt-oss-20b"


def test_requests_of_one_token_end_with_their_prompt(tmp_path):
    path = tmp_path / "requests.csv"
    path.write_text("arrival_seconds,input_tokens,output_tokens\n0,30,1\n1,40,1\n")
    metrics = simulate(Scenario(trace=str(path), requests=2, baseline="B1", open_loop=True)).metrics
    assert metrics["rounds"] == 0
    assert metrics["output_tokens_per_second"] == 2 / metrics["makespan_seconds"]
