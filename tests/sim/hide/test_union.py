"""The measured union: counts from masks, full costs, realised overlap apart from idle link."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.errors import InputError
from hideaway.sim.hide.nominal import evaluate_nominal
from hideaway.sim.hide.union import evaluate_union, missing_experts

mask = st.integers(0, 2**128 - 1)


@given(layers=st.lists(st.tuples(mask, mask), max_size=5))
def test_missing_experts_are_needed_ones_that_are_not_resident(layers):
    def as_set(bits):
        return {expert for expert in range(128) if bits >> expert & 1}

    counts = missing_experts([needed for needed, _ in layers], [held for _, held in layers])
    assert counts.tolist() == [len(as_set(needed) - as_set(held)) for needed, held in layers]


def test_masks_are_checked():
    with pytest.raises(InputError, match="needed has 1 layers but resident has 2"):
        missing_experts([1], [1, 2])
    with pytest.raises(InputError, match="mask is negative"):
        missing_experts([-1], [1])


def test_every_transfer_pays_issue_latency_and_bytes_and_a_batch_pays_once():
    form = evaluate_union(
        num_transfers=[0, 10],
        expert_bytes=1000,
        measured_h2d_bytes_per_second=1e6,
        latency_seconds=0.25,
        issue_seconds=0.125,
        batch_issue_seconds=2.0,
        draft_seconds=1.0,
        router_seconds=2.0,
        overlap_seconds=0.5,
        idle_link_seconds=3.0,
    )
    assert form.fetch_seconds.tolist() == [0.0, pytest.approx(10 * (0.125 + 0.25 + 0.001) + 2.0)]
    assert form.fetch_bytes.tolist() == [0, 10_000]
    assert form.hide_window_seconds.tolist() == [3.5, 3.5]
    assert form.overlap_seconds.tolist() == [0.5, 0.5]
    assert form.idle_link_seconds.tolist() == [3.0, 3.0]
    assert form.hidden.tolist() == [True, False]
    assert form.hidden_if_link_used.tolist() == [True, True]


@given(
    num_transfers=st.integers(0, 2000),
    expert_bytes=st.integers(1, 10**8),
    rate=st.floats(1e9, 1e11),
    window=st.floats(0, 10),
)
def test_without_costs_per_transfer_it_is_the_nominal_form_of_the_bytes_that_move(
    num_transfers, expert_bytes, rate, window
):
    union = evaluate_union(
        num_transfers=num_transfers,
        expert_bytes=expert_bytes,
        measured_h2d_bytes_per_second=rate,
        draft_seconds=window,
    )
    nominal = evaluate_nominal(
        resident_fraction=0.0,
        saturation=1.0,
        total_expert_bytes=num_transfers * expert_bytes,
        measured_h2d_bytes_per_second=rate,
        draft_seconds=window,
        router_seconds=0.0,
        overlap_seconds=0.0,
    )
    np.testing.assert_allclose(union.fetch_seconds, nominal.fetch_seconds, rtol=1e-15)
    assert union.hide_window_seconds == nominal.hide_window_seconds


def test_bandwidth_of_zero_is_refused():
    with pytest.raises(InputError, match="measured_h2d_bytes_per_second holds zero"):
        evaluate_union(num_transfers=1, expert_bytes=1, measured_h2d_bytes_per_second=0.0)
