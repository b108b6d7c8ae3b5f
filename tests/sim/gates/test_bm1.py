"""BM1: router against verify."""

import math

import pytest

from hideaway.sim.gates import summarise_row

ROW = {"t_router_seconds": 0.002, "t_verify_seconds": 0.020, "output_tokens_per_second": 1.0}


def test_summary_holds_both_times_their_ratio_and_the_verdict():
    assert summarise_row(ROW) == {
        "t_router_seconds": 0.002,
        "t_verify_seconds": 0.020,
        "bm1_router_to_verify_ratio": 0.1,
        "bm1_pass": True,
    }


@pytest.mark.parametrize(("router", "passes"), [(0.0, True), (0.0199, True), (0.02, False), (0.03, False)])
def test_router_must_be_strictly_cheaper(router, passes):
    summary = summarise_row(ROW | {"t_router_seconds": router})
    assert summary["bm1_pass"] is passes
    assert summary["bm1_router_to_verify_ratio"] == router / 0.02


@pytest.mark.parametrize("name", ["t_router_seconds", "t_verify_seconds"])
@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf, None, True, "1"], ids=str)
def test_a_malformed_time_is_named(name, value):
    with pytest.raises(ValueError, match=f"{name} is "):
        summarise_row(ROW | {name: value})


@pytest.mark.parametrize("name", ["t_router_seconds", "t_verify_seconds"])
def test_a_missing_time_is_named(name):
    with pytest.raises(ValueError, match=f"no {name}"):
        summarise_row({key: value for key, value in ROW.items() if key != name})


@pytest.mark.parametrize("verify", [0, 0.0, 5e-324])
def test_a_verify_that_takes_no_time_is_refused(verify):
    with pytest.raises(ValueError, match="t_verify_seconds is "):
        summarise_row(ROW | {"t_verify_seconds": verify, "t_router_seconds": 1.0})
