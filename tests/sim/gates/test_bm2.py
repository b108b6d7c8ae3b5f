"""BM2: batched issuance ships only where one by one is too slow and batched is not."""

import dataclasses
import math

import pytest

from hideaway.sim.gates import (
    BATCHED_PYBIND,
    CPP_INTERNAL,
    PYTHON_PER_EXPERT,
    Bm2Decision,
    bm2_decision,
    build_bm2_report,
)


@pytest.mark.parametrize(
    ("per_expert", "batched", "required", "ships"),
    [
        (900.0, None, True, False),
        (900.0, 300.0, True, True),
        (900.0, 500.0, True, True),
        (900.0, 500.1, True, False),
        (900.0, 0.0, True, True),
        (500.0, 100.0, False, False),
        (400.0, 100.0, False, False),
        (None, 100.0, False, False),
        (None, None, False, False),
    ],
)
def test_decision_table(per_expert, batched, required, ships):
    decision = bm2_decision(per_expert, batched, 90.0, 500.0)
    assert decision == Bm2Decision(per_expert, batched, 90.0, 500.0, required, ships)


def test_decision_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        bm2_decision(900.0, 300.0, None, 500.0).per_expert_us = 1.0


@pytest.mark.parametrize("position", [0, 1, 2])
@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf, True, "1"], ids=str)
def test_a_malformed_median_is_named(position, value):
    medians = [900.0, 300.0, 250.0]
    medians[position] = value
    name = ["per_expert_us", "batched_us", "cpp_internal_us"][position]
    with pytest.raises(ValueError, match=f"{name} is "):
        bm2_decision(*medians, 500.0)


@pytest.mark.parametrize("window", [0.0, -1.0, math.nan, math.inf, None, True], ids=str)
def test_the_window_must_be_finite_and_positive(window):
    with pytest.raises(ValueError, match="window_us is "):
        bm2_decision(900.0, 300.0, 250.0, window)


def report(**changes):
    return build_bm2_report(
        **{
            "model": "tiny",
            "saturated_tensor_count": 768,
            "window_us": 500.0,
            "per_expert_samples_ns": [900_000] * 31 + [1_000_000],
            "batched_samples_ns": None,
            "cpp_internal_samples_ns": None,
            "warmup": 20,
            "iterations": 32,
            **changes,
        }
    )


def test_report_keeps_unmeasured_modes_as_none():
    result = report()
    assert result["benchmark"] == "BM2"
    assert result["modes"][PYTHON_PER_EXPERT]["p99"] == 1000.0
    assert result["medians_us"] == {PYTHON_PER_EXPERT: 900.0, BATCHED_PYBIND: None, CPP_INTERNAL: None}
    assert result["modes"][BATCHED_PYBIND] is None
    assert (result["saturated_tensor_count"], result["warmup"], result["iterations"]) == (768, 20, 32)
    assert (result["candidate_required"], result["ship_batched"]) == (True, False)


def test_report_ships_a_fast_batch_and_takes_further_keys():
    result = report(batched_samples_ns=[300_000], extra={"device": "x"})
    assert result["ship_batched"] is True
    assert result["device"] == "x"


def test_mode_names_are_shared():
    assert (PYTHON_PER_EXPERT, BATCHED_PYBIND, CPP_INTERNAL) == (
        "python-per-expert",
        "batched-pybind",
        "cpp-internal",
    )
