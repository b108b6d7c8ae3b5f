"""The array form: bit for bit the frozen scalar, monotone without tolerance, scaling with units."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hideaway.sim.contract import evaluate_hide_inequality
from hideaway.sim.errors import InputError
from hideaway.sim.hide.nominal import evaluate_nominal, measured_saturation, nominal_saturation

fraction = st.floats(0, 1)
num_bytes = st.floats(0, 1e15)
rate = st.floats(1.0, 1e13)
seconds = st.floats(0, 1e4)
terms = st.fixed_dictionaries(
    {
        "resident_fraction": fraction,
        "saturation": fraction,
        "total_expert_bytes": num_bytes,
        "measured_h2d_bytes_per_second": rate,
        "draft_seconds": seconds,
        "router_seconds": seconds,
        "overlap_seconds": seconds,
    }
)
MANY = settings(max_examples=max(150, settings.default.max_examples))
ORDINARY = {
    "resident_fraction": 0.5,
    "saturation": 1.0,
    "total_expert_bytes": 14e9,
    "measured_h2d_bytes_per_second": 50e9,
    "draft_seconds": 0.05,
    "router_seconds": 0.05,
    "overlap_seconds": 0.05,
}


@MANY
@given(cases=st.lists(terms, min_size=1, max_size=6))
def test_arrays_agree_with_the_frozen_scalar_bit_for_bit(cases):
    arrays = evaluate_nominal(**{name: [case[name] for case in cases] for name in cases[0]})
    for index, case in enumerate(cases):
        frozen = evaluate_hide_inequality(**case)
        assert arrays.fetch_seconds[index] == frozen.fetch_seconds
        assert arrays.hide_window_seconds[index] == frozen.hide_window_seconds
        assert arrays.hidden[index] == frozen.hidden == (arrays.slack_seconds[index] >= 0)


@MANY
@given(case=terms, other=terms, name=st.sampled_from(sorted(ORDINARY)))
def test_each_term_moves_the_verdict_one_way_only(case, other, name):
    helps = name not in {"saturation", "total_expert_bytes"}
    low, high = sorted((case[name], other[name]))
    worse, better = (low, high) if helps else (high, low)
    if evaluate_nominal(**{**case, name: worse}).hidden:
        assert evaluate_nominal(**{**case, name: better}).hidden
    assert (
        evaluate_nominal(**{**case, name: better}).slack_seconds
        >= evaluate_nominal(**{**case, name: worse}).slack_seconds
    )


@MANY
@given(case=terms, exponent=st.integers(-20, 20))
def test_slack_scales_with_the_unit_of_time_and_ignores_the_unit_of_bytes(case, exponent):
    times = ("draft_seconds", "router_seconds", "overlap_seconds")
    assume(
        all(case[name] == 0 or case[name] > 1e-100 for name in ("total_expert_bytes", "saturation", *times))
    )
    unit = 2.0**exponent
    slack = evaluate_nominal(**case).slack_seconds
    in_other_time = case | {name: case[name] * unit for name in times}
    in_other_time["measured_h2d_bytes_per_second"] = case["measured_h2d_bytes_per_second"] / unit
    assert evaluate_nominal(**in_other_time).slack_seconds == slack * unit
    in_other_bytes = dict(case)
    for name in ("total_expert_bytes", "measured_h2d_bytes_per_second"):
        in_other_bytes[name] = case[name] * unit
    assert evaluate_nominal(**in_other_bytes).slack_seconds == slack


def test_terms_broadcast():
    grid = evaluate_nominal(
        **{
            **ORDINARY,
            "resident_fraction": np.linspace(0, 1, 5)[:, None],
            "measured_h2d_bytes_per_second": np.array([25e9, 50e9, 100e9]),
        }
    )
    assert grid.hidden.shape == grid.slack_seconds.shape == (5, 3)
    assert grid.fetch_seconds[2].tolist() == [0.28, 0.14, 0.07]


def test_the_worked_example_takes_0_14_seconds_exactly():
    assert float(evaluate_nominal(**ORDINARY).fetch_seconds) == 0.14


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("resident_fraction", [0.5, 1.5]),
        ("resident_fraction", [0.5, float("nan")]),
        ("saturation", [-0.1, 1.0]),
        ("total_expert_bytes", [1.0, -1.0]),
        ("total_expert_bytes", float("inf")),
        ("measured_h2d_bytes_per_second", [1.0, 0.0]),
        ("draft_seconds", [0.0, -1.0]),
        ("router_seconds", float("nan")),
        ("overlap_seconds", [-0.5]),
        ("draft_seconds", ["fast"]),
        ("draft_seconds", []),
    ],
)
def test_a_term_out_of_range_is_refused_by_name(name, value):
    with pytest.raises(InputError, match=name):
        evaluate_nominal(**{**ORDINARY, name: value})


def test_shapes_that_do_not_broadcast_are_refused():
    with pytest.raises(InputError, match="do not broadcast"):
        evaluate_nominal(**{**ORDINARY, "draft_seconds": [1.0, 2.0], "router_seconds": [1.0, 2.0, 3.0]})


def test_terms_that_overflow_are_refused():
    with pytest.raises(InputError, match="overflows a float"):
        evaluate_nominal(
            **{**ORDINARY, "total_expert_bytes": [1.0, 1e300], "measured_h2d_bytes_per_second": [1.0, 1e-300]}
        )


def test_nominal_saturation_stops_at_one():
    saturation = nominal_saturation(num_sequences=1, block_size=[1, 4, 8, 16], top_k=4, num_experts=32)
    assert saturation.tolist() == [0.125, 0.5, 1.0, 1.0]


def test_measured_saturation_is_the_mean_union_over_all_experts():
    assert measured_saturation([[4, 8], [6, 6]], 32) == 6 / 32
    with pytest.raises(InputError, match="union_sizes reach 33 but num_experts is 32"):
        measured_saturation([33], 32)
    with pytest.raises(InputError, match="empty"):
        measured_saturation([], 32)
