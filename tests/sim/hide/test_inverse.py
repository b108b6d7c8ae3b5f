"""Inverses put back into the form they invert; sets that are not intervals."""

import math
from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hideaway.sim.errors import InputError
from hideaway.sim.hide.inverse import (
    as_ranges,
    hiding_set,
    smallest_bandwidth_bytes_per_second,
    smallest_resident_fraction,
)
from hideaway.sim.hide.nominal import evaluate_nominal, nominal_saturation

MANY = settings(max_examples=max(150, settings.default.max_examples))
window = st.fixed_dictionaries(
    {name: st.floats(0, 10) for name in ("draft_seconds", "router_seconds", "overlap_seconds")}
)
saturation = st.one_of(st.just(0.0), st.floats(1e-6, 1))
num_bytes = st.one_of(st.just(0.0), st.floats(1.0, 1e13))
rate = st.floats(1e6, 1e12)


@MANY
@given(window=window, saturation=saturation, num_bytes=num_bytes, rate=rate)
def test_smallest_resident_fraction_hides_and_a_smaller_one_does_not(window, saturation, num_bytes, rate):
    terms = {
        "saturation": saturation,
        "total_expert_bytes": num_bytes,
        "measured_h2d_bytes_per_second": rate,
        **window,
    }
    fraction = float(smallest_resident_fraction(**terms))
    assert 0.0 <= fraction <= 1.0
    assert evaluate_nominal(resident_fraction=fraction, **terms).hidden
    if fraction > 1e-9:
        assert not evaluate_nominal(resident_fraction=fraction - 1e-9, **terms).hidden or math.isclose(
            (1 - fraction) * saturation * num_bytes / rate, sum(window.values()), rel_tol=1e-12
        )


@MANY
@given(
    window=window,
    saturation=saturation,
    num_bytes=num_bytes,
    fraction=st.one_of(st.just(1.0), st.floats(0, 0.999999)),
)
def test_smallest_bandwidth_hides_and_a_smaller_one_does_not(window, saturation, num_bytes, fraction):
    terms = {
        "saturation": saturation,
        "total_expert_bytes": num_bytes,
        "resident_fraction": fraction,
        **window,
    }
    bandwidth = float(smallest_bandwidth_bytes_per_second(**terms))
    if bandwidth == 0.0:
        assert evaluate_nominal(measured_h2d_bytes_per_second=1e-3, **terms).fetch_seconds == 0.0
    elif math.isinf(bandwidth):
        assert not evaluate_nominal(measured_h2d_bytes_per_second=1e300, **terms).hidden
    else:
        assert evaluate_nominal(measured_h2d_bytes_per_second=bandwidth, **terms).hidden
        if bandwidth > 1e-290:
            slower = bandwidth * (1 - 1e-12)
            assert not evaluate_nominal(measured_h2d_bytes_per_second=slower, **terms).hidden


def test_inverses_take_arrays():
    terms = {"saturation": 1.0, "total_expert_bytes": 10.0, "router_seconds": 0.0, "overlap_seconds": 0.0}
    fractions = smallest_resident_fraction(
        measured_h2d_bytes_per_second=[[1.0], [2.0]], draft_seconds=[2.0, 5.0, 20.0], **terms
    )
    assert fractions.tolist() == [[0.8, 0.5, 0.0], [0.6, 0.0, 0.0]]
    rates = smallest_bandwidth_bytes_per_second(
        resident_fraction=[0.5, 1.0, 0.5], draft_seconds=[2.0, 0.0, 0.0], **terms
    )
    assert rates.tolist() == [2.5, 0.0, math.inf]


def test_block_sizes_that_hide_need_not_be_an_interval():
    blocks = list(range(1, 33))
    form = evaluate_nominal(
        resident_fraction=0.5,
        saturation=nominal_saturation(num_sequences=1, block_size=blocks, top_k=4, num_experts=32),
        total_expert_bytes=10e9,
        measured_h2d_bytes_per_second=50e9,
        draft_seconds=0.01 + 0.004 * np.array(blocks),
        router_seconds=0.0,
        overlap_seconds=0.0,
    )
    chosen = hiding_set(blocks, form.fetch_seconds, form.hide_window_seconds)
    assert as_ranges(chosen, blocks) == "1, 23 to 32"
    for block, hidden in zip(blocks, form.hidden, strict=True):
        assert (block in chosen) == bool(hidden)


def fifo_misses(requests, num_slots):
    held, misses = deque(maxlen=num_slots), 0
    for request in requests:
        if request not in held:
            misses += 1
            held.append(request)
    return misses


def test_slots_that_hide_need_not_be_an_interval_when_the_policy_is_not_a_stack():
    # L. Belady, R. Nelson, G. Shedler, "An anomaly in space-time characteristics", CACM 12(6), 1969.
    requests = [1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5]
    slots = [2, 3, 4, 5]
    fetch = [fifo_misses(requests, num_slots) * 0.01 for num_slots in slots]
    chosen = hiding_set(slots, fetch, 0.09)
    assert chosen == (3, 5)
    assert as_ranges(chosen, slots) == "3, 5"


@pytest.mark.parametrize(
    ("chosen", "text"),
    [((), "none"), ((1,), "1"), ((1, 2, 4), "1 to 2, 4"), ((4, 8, 16), "4 to 16"), ((16,), "16")],
)
def test_sets_are_written_as_runs_of_neighbouring_candidates(chosen, text):
    candidates = (1, 2, 3, 4, 8, 16) if chosen == (4, 8, 16) else (1, 2, 3, 4, 16)
    assert as_ranges(chosen, candidates) == text


def test_sides_of_another_length_are_refused():
    with pytest.raises(InputError, match="there are 2 candidates"):
        hiding_set([1, 2], [1.0, 2.0, 3.0], 1.0)
