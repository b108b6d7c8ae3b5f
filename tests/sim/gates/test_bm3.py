"""BM3: a band ships when exposed fetch falls, throughput does not, and on-demand stays fastest."""

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.gates import (
    BACKGROUND,
    ON_DEMAND,
    PRIORITY_BANDS,
    ROUTE_AHEAD,
    PriorityArm,
    bm3_decision,
    build_bm3_report,
    priority_arm,
)


def arm(exposed, speed):
    return priority_arm(exposed_fetch_seconds=exposed, tokens_per_second=speed)


def test_bands_are_shared_names_and_numbers():
    assert (ON_DEMAND, ROUTE_AHEAD, BACKGROUND) == (0, 1, 2)
    assert PRIORITY_BANDS == ("background", "route-ahead", "on-demand")


@pytest.mark.parametrize(
    ("route_ahead", "on_demand", "improved", "preserved", "fastest"),
    [
        ((0.012, 105), (0.008, 106), True, True, True),
        ((0.020, 105), (0.008, 106), False, True, True),  # strict
        ((0.012, 100), (0.012, 100), True, True, True),  # inclusive
        ((0.012, 97), (0.008, 101), True, False, True),
        ((0.010, 105), (0.014, 103), True, True, False),
        ((0.030, 105), (0.025, 103), False, True, False),
    ],
)
def test_decision_table(route_ahead, on_demand, improved, preserved, fastest):
    decision = bm3_decision(default=arm(0.020, 100), route_ahead=arm(*route_ahead), on_demand=arm(*on_demand))
    assert decision.exposed_fetch_improved is improved
    assert decision.throughput_preserved is preserved
    assert decision.on_demand_fastest is fastest
    assert decision.ship_priority_band is (improved and preserved and fastest)
    assert decision.default == arm(0.020, 100)


FIGURES = st.floats(0, 10)


@given(st.lists(FIGURES, min_size=6, max_size=6))
def test_a_band_ships_only_when_all_three_conditions_hold(figures):
    default, route_ahead, on_demand = (arm(*figures[i : i + 2]) for i in (0, 2, 4))
    ships = bm3_decision(default=default, route_ahead=route_ahead, on_demand=on_demand).ship_priority_band
    assert ships == (
        on_demand.exposed_fetch_seconds <= route_ahead.exposed_fetch_seconds < default.exposed_fetch_seconds
        and route_ahead.tokens_per_second >= default.tokens_per_second
    )


def test_decision_is_frozen():
    decision = bm3_decision(default=arm(2, 1), route_ahead=arm(1, 1), on_demand=arm(0, 1))
    with pytest.raises(dataclasses.FrozenInstanceError):
        decision.ship_priority_band = False


@pytest.mark.parametrize("name", ["exposed_fetch_seconds", "tokens_per_second"])
@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf, None, True], ids=str)
def test_a_malformed_median_is_named(name, value):
    figures = {"exposed_fetch_seconds": 0.1, "tokens_per_second": 1.0, name: value}
    for build in (priority_arm, PriorityArm):
        with pytest.raises(ValueError, match=f"{name} is "):
            build(**figures)


def samples(exposed, speed):
    return {"exposed_fetch_seconds": exposed, "tokens_per_second": speed}


ARMS = {
    "background": samples([0.021, 0.020, 0.019], [99.0, 100.0, 101.0]),
    "route-ahead": samples([0.013, 0.012, 0.011, 0.015], [104.0, 105.0, 106.0]),
    "on-demand": samples([0.009, 0.008, 0.007], [105.0, 106.0, 107.0]),
}


def test_report_holds_medians_repetitions_and_verdict():
    report = build_bm3_report(models=["tiny"], arms=ARMS, extra={"seed": 1})
    assert report["benchmark"] == "BM3"
    assert report["models"] == ["tiny"]
    assert report["medians"]["background"] == {"exposed_fetch_seconds": 0.020, "tokens_per_second": 100.0}
    assert report["medians"]["route-ahead"]["exposed_fetch_seconds"] == 0.0125
    assert report["repetitions"] == {"background": 3, "route-ahead": 4, "on-demand": 3}
    assert report["priorities"] == {"background": 2, "route-ahead": 1, "on-demand": 0}
    assert report["ship_priority_band"] is True
    assert report["seed"] == 1


@pytest.mark.parametrize("band", PRIORITY_BANDS)
def test_every_arm_is_required(band):
    with pytest.raises(ValueError, match=f"arms missing: {band}"):
        build_bm3_report(models=[], arms={name: arm for name, arm in ARMS.items() if name != band})


@pytest.mark.parametrize(
    "bad", [{}, {"tokens_per_second": [1.0]}, samples([], [1.0]), samples([-1.0], [1.0]), None, 3]
)
def test_a_malformed_arm_is_refused(bad):
    with pytest.raises(ValueError, match=r"exposed_fetch_seconds|samples"):
        build_bm3_report(models=[], arms=ARMS | {"on-demand": bad})
