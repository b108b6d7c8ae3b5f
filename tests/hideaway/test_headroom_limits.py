"""Removing one limit changes that limit and nothing else; what is not there is said to be absent."""

from dataclasses import fields, replace

import pytest

from hideaway.campaigns.figures import run_figures
from hideaway.campaigns.limits import Limit, Setup, limits_of, make_setup, resident_bound
from hideaway.campaigns.shared_inputs import inputs_of
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.scenario import BASELINES, Scenario
from hideaway.sim.world.memory import split_memory
from hideaway.sim.world.simulate import load_inputs, simulate

SMALL = Scenario(baseline="B1", requests=6, concurrency=2)


def setup_of(scenario: Scenario) -> Setup:
    return make_setup(scenario, inputs_of(scenario))


def limits(scenario: Scenario) -> dict[str, Limit]:
    return {limit.name: limit for limit in limits_of(setup_of(scenario))}


def changed(before: Scenario, after: Scenario) -> set[str]:
    return {spec.name for spec in fields(before) if getattr(before, spec.name) != getattr(after, spec.name)}


ONLY = {
    "link": {"parameters"},
    "issue cost": {"parameters"},
    "host round trip": {"parameters"},
    "contention": {"parameters"},
    "eviction": {"eviction"},
    "router depth": {"router_exact_depth"},
    "prediction": {"recall", "precision"},
    "rejected drafts": {"acceptance"},
    "queueing": {"admission"},
}


@pytest.mark.parametrize(("name", "touched"), ONLY.items())
def test_a_removal_touches_its_own_limit_only(name: str, touched: set[str]) -> None:
    scenario = replace(SMALL, baseline="OURS", parameters={"link.latency_seconds": 1e-4})
    removed = limits(scenario)[name].scenario
    assert removed is not None
    assert changed(scenario, removed) == touched
    if touched == {"parameters"} and name != "link":
        assert dict(removed.parameters)["link.latency_seconds"] == 1e-4


@pytest.mark.parametrize(
    ("scenario", "name", "reason"),
    [
        (SMALL, "queueing", "not applicable"),
        (replace(SMALL, concurrency=None, rate=2.0), "queueing", "a seat already"),
        (replace(SMALL, eviction="belady"), "eviction", "already"),
        (replace(SMALL, baseline="OURS-oracle"), "router depth", "already"),
        (replace(SMALL, router_exact_depth=24), "router depth", "already"),
        (replace(SMALL, prefetch="route-ahead", recall=1.0, precision=1.0), "prediction", "already"),
        (replace(SMALL, acceptance="constant:8"), "rejected drafts", "already"),
        (replace(SMALL, baseline="B0"), "rejected drafts", "nothing is drafted"),
        (replace(SMALL, baseline="B0"), "router depth", "no route pass"),
        (replace(SMALL, parameters={"host.round_trip_seconds": 0.0}), "host round trip", "has none"),
    ],
)
def test_a_limit_that_is_not_there_says_why(scenario: Scenario, name: str, reason: str) -> None:
    limit = limits(scenario)[name]
    assert limit.scenario is None
    assert reason in limit.note


@pytest.mark.parametrize("name", ["router depth", "prediction"])
def test_exact_routes_need_a_prefetcher_that_uses_them_and_say_so(name: str) -> None:
    switched = limits(SMALL)[name]
    assert switched.scenario is not None
    assert switched.scenario.prefetch == "route-ahead"
    assert "route-ahead instead of previous-token" in switched.note
    kept = limits(replace(SMALL, prefetch="cross-round"))[name]
    assert kept.scenario is not None
    assert kept.scenario.prefetch == "cross-round"
    assert "instead of" not in kept.note


def test_an_open_loop_is_rid_of_queueing_by_a_seat_for_each_request() -> None:
    scenario = Scenario(baseline="B2", requests=40, rate=5.0, max_sequences=3)
    removed = limits(scenario)["queueing"].scenario
    assert removed is not None
    assert (removed.admission, removed.max_sequences) == ("all", 40)


def test_an_ssd_is_a_limit_where_there_is_one() -> None:
    assert "SSD" not in limits(SMALL)
    removed = limits(replace(SMALL, page_cache_bytes=10**9))["SSD"].scenario
    assert removed is not None
    assert removed.page_cache_bytes is None


@pytest.mark.parametrize(("baseline", "bound"), [("OURS", "B3"), ("B0", "B3-AR")])
@pytest.mark.parametrize("device_bytes", [1.5e10, 9.6e10])
def test_the_bound_has_every_expert_and_the_same_kv_memory(
    baseline: str, bound: str, device_bytes: float
) -> None:
    setup = setup_of(replace(SMALL, baseline=baseline, parameters={"memory.device_bytes": device_bytes}))
    limit = resident_bound(setup)
    assert limit.scenario is not None
    assert limit.scenario.baseline == bound
    memory = split_memory(limit.scenario, BASELINES[bound], inputs_of(limit.scenario).costs)
    assert memory.slots_per_layer == setup.inputs.model.num_experts
    assert memory.kv_bytes == setup.memory.kv_bytes
    assert ("do not fit" in limit.note) == (device_bytes < 2e10)


@pytest.mark.parametrize("baseline", ["B3", "B3-AR"])
def test_a_resident_baseline_has_no_headroom_of_offloading(baseline: str) -> None:
    with pytest.raises(InputError, match="nothing is offloaded"):
        setup_of(replace(SMALL, baseline=baseline))


def test_slots_for_all_are_refused() -> None:
    with pytest.raises(InputError, match="every one of the 32 experts"):
        setup_of(replace(SMALL, slots=32))


@pytest.mark.parametrize("seed", [1408, 1409])
def test_costs_that_fall_away_raise_throughput_and_residency_bounds_them(seed: int) -> None:
    """Same forwards in the same order: admission seats all, so less cost per visit can only shorten the run."""
    scenario = replace(SMALL, prefetch="none", seed=seed)
    setup = setup_of(scenario)
    base = run_figures(scenario).tokens_per_second
    removed = limits_of(setup)
    for name in ("link", "issue cost", "host round trip", "contention"):
        (variant,) = [limit.scenario for limit in removed if limit.name == name]
        assert variant is not None
        assert base < run_figures(variant).tokens_per_second
    bound = resident_bound(setup).scenario
    (link,) = [limit.scenario for limit in removed if limit.name == "link"]
    assert bound is not None
    assert link is not None
    assert run_figures(link).tokens_per_second < run_figures(bound).tokens_per_second


VARIED = [
    SMALL,
    replace(SMALL, seed=7, acceptance="constant:3", drafter_parameters=1e9, launch="graph"),
    replace(SMALL, parameters={"link.latency_seconds": 1e-3}, pageable=True, profile="rtx-5090"),
    replace(SMALL, concurrency=None, rate=3.0, baseline="B2", trace="sharegpt"),
    replace(SMALL, concurrency=None, open_loop=True, requests=3),
]


@pytest.mark.parametrize("scenario", VARIED)
def test_shared_inputs_are_those_that_the_simulator_loads(scenario: Scenario) -> None:
    shared = simulate(scenario, inputs=inputs_of(scenario))
    alone = simulate(scenario, inputs=load_inputs(scenario))
    assert shared.metrics == alone.metrics
    assert shared.inputs.acceptance.origin == alone.inputs.acceptance.origin
