"""What extra memory buys: it comes on top, and a purchase without effect is known without a run."""

from dataclasses import replace

import pytest

from hideaway.campaigns.figures import Figures, run_figures
from hideaway.campaigns.limits import Setup, make_setup, with_parameters
from hideaway.campaigns.memory_worth import Purchase, purchases, worth_of
from hideaway.campaigns.shared_inputs import inputs_of
from hideaway.sim.inputs.scenario import BASELINES, Scenario
from hideaway.sim.units import GB
from hideaway.sim.world.memory import MemorySplit, split_memory

SMALL = Scenario(baseline="B1", requests=6, concurrency=2)


def setup_of(scenario: Scenario) -> Setup:
    return make_setup(scenario, inputs_of(scenario))


def bought(scenario: Scenario) -> dict[str, Purchase]:
    return {purchase.use: purchase for purchase in purchases(setup_of(scenario))}


def memory_of(scenario: Scenario) -> MemorySplit:
    return split_memory(scenario, BASELINES[scenario.baseline], inputs_of(scenario).costs)


@pytest.mark.parametrize("baseline", ["B0", "OURS"])
def test_slots_are_bought_in_whole_numbers_nearest_to_a_gigabyte(baseline: str) -> None:
    scenario = replace(SMALL, baseline=baseline)
    purchase = bought(scenario)["expert slots"]
    assert purchase.scenario is not None
    before, after = memory_of(scenario), memory_of(purchase.scenario)
    # 24 layers x 13,236,480 bytes a slot: three of them are 0.953 GB, four 1.27 GB.
    assert after.slots_per_layer - before.slots_per_layer == 3
    assert purchase.extra_bytes == 3 * 24 * 13_236_480
    assert after.kv_bytes == before.kv_bytes


def test_slots_stop_short_of_full_residency() -> None:
    purchase = bought(replace(SMALL, slots=30))["expert slots"]
    assert purchase.scenario is not None
    assert purchase.scenario.slots == 31
    none_left = bought(replace(SMALL, slots=31))["expert slots"]
    assert none_left.scenario is None
    assert worth_of(none_left, [], []).per_gb is None


def test_kv_that_does_not_bind_is_worth_exactly_nothing() -> None:
    purchase = bought(SMALL)["KV"]
    assert purchase.scenario is None
    assert "does not bind" in purchase.note
    worth = worth_of(purchase, [], []).per_gb
    assert worth is not None
    assert (worth.mean, worth.low, worth.high) == (0.0, 0.0, 0.0)
    device_bytes = inputs_of(SMALL).costs.profile.value("memory.device_bytes")
    larger = with_parameters(SMALL, {"memory.device_bytes": device_bytes + GB})
    assert run_figures(larger) == run_figures(SMALL)


def test_kv_that_binds_is_tried() -> None:
    room = inputs_of(SMALL).costs.profile.value("memory.device_bytes") - memory_of(SMALL).kv_bytes
    tight = replace(SMALL, parameters={"memory.device_bytes": room + 3e7})
    purchase = bought(tight)["KV"]
    assert purchase.scenario is not None
    assert memory_of(purchase.scenario).kv_bytes - memory_of(tight).kv_bytes == GB
    assert memory_of(purchase.scenario).slots_per_layer == memory_of(tight).slots_per_layer


def test_a_larger_drafter_takes_nothing_from_slots_or_kv() -> None:
    purchase = bought(SMALL)["drafter"]
    assert purchase.scenario is not None
    before, after = memory_of(SMALL), memory_of(purchase.scenario)
    assert after.drafter_bytes == 2 * before.drafter_bytes
    assert (after.kv_bytes, after.slots_per_layer) == (before.kv_bytes, before.slots_per_layer)
    assert bought(replace(SMALL, baseline="B0"))["drafter"].scenario is None


def figures(tokens_per_second: float, round_seconds: float) -> Figures:
    return Figures(tokens_per_second, 0.1, 0.1, 0.02, round_seconds, 4.0, 0.0, ())


def test_worth_is_per_gigabyte_and_break_even_makes_up_for_slower_rounds() -> None:
    purchase = Purchase("drafter", "a drafter of twice the size", 2 * GB, SMALL)
    base = [figures(100.0, 0.10), figures(110.0, 0.20)]
    runs = [figures(90.0, 0.12), figures(100.0, 0.24)]
    worth = worth_of(purchase, base, runs)
    assert worth.per_gb is not None
    assert worth.per_gb.mean == pytest.approx(-5.0)
    assert worth.break_even_ratio is not None
    assert worth.break_even_ratio.mean == pytest.approx(1.2)
    assert worth.break_even_acceptance == pytest.approx(4.8)


@pytest.mark.parametrize("use", ["expert slots", "KV"])
def test_only_a_drafter_has_a_break_even(use: str) -> None:
    worth = worth_of(
        Purchase(use, "something", GB, SMALL),
        [figures(1.0, 1.0), figures(2.0, 1.0)],
        [figures(2.0, 1.0), figures(3.0, 1.0)],
    )
    assert worth.break_even_acceptance is None
    assert worth.per_gb is not None
    assert worth.per_gb.mean == pytest.approx(1.0)
