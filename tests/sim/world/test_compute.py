"""What one forward costs, and how contention stretches work."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.costs import CostModel
from hideaway.sim.inputs.models import load_model
from hideaway.sim.inputs.profiles import load_profile
from hideaway.sim.masks import mask_of
from hideaway.sim.world.compute import ForwardCosts, stretched

COSTS = CostModel(load_model("gpt-oss-20b"), load_profile("rtx-pro-6000"))
times = st.floats(0.0, 100.0)


def costs_of(rows=16, lookahead=0):
    return ForwardCosts(COSTS, rows, [(rows, 900)], head_rows=rows, top_k=4, lookahead=lookahead)


def test_without_contention_work_takes_its_time():
    assert stretched(3.0, 1.0, 99.0, 0.0) == 3.0
    assert stretched(3.0, 5.0, 5.0, 0.5) == 3.0


def test_work_wholly_beside_a_busy_link_is_slowed_throughout():
    assert stretched(2.0, 1.0, 99.0, 0.5) == 3.0


def test_work_that_outlasts_the_link_is_slowed_only_beside_it():
    assert stretched(4.0, 0.0, 3.0, 0.5) == pytest.approx(3.0 + 2.0)


@given(times, times, times, st.floats(0.0, 2.0))
def test_what_is_done_adds_up_to_the_work(seconds, start, busy_until, slowdown):
    taken = stretched(seconds, start, busy_until, slowdown)
    beside = max(0.0, min(taken, busy_until - start))
    assert beside / (1 + slowdown) + (taken - beside) == pytest.approx(seconds, abs=1e-9)
    assert seconds * (1 - 1e-12) <= taken <= seconds * (1 + slowdown) * (1 + 1e-12)


@given(st.sets(st.integers(0, 31), min_size=1), st.sets(st.integers(0, 31)))
def test_hits_and_arrivals_together_serve_every_row_once(needed, some):
    costs = costs_of()
    hits = needed & some
    together = costs.hits_seconds(mask_of(hits), mask_of(needed))
    together += (len(needed) - len(hits)) * costs.arrival_seconds(mask_of(needed))
    groups = bool(hits) + len(needed) - len(hits)
    at_once = COSTS.experts_seconds(len(needed), 16 * 4)
    assert together == pytest.approx(at_once + (groups - 1) * COSTS.experts.group_seconds, rel=1e-12)


def test_no_hit_launches_nothing():
    assert costs_of().hits_seconds(0, 0b11) == 0.0


def test_each_layer_looked_ahead_costs_one_more_router():
    assert costs_of(lookahead=2).router_seconds == 3 * COSTS.router_seconds(16)


def test_a_layer_whose_attention_is_done_costs_only_that_of_the_prompt():
    costs = costs_of()
    assert costs.with_dense(COSTS, 0, []).before_experts_seconds == costs.router_seconds
    prompt = costs.with_dense(COSTS, 5, [(5, 50)])
    assert prompt.before_experts_seconds == COSTS.dense_seconds(5, [(5, 50)]) + costs.router_seconds
    assert prompt.hits_seconds(0b1, 0b1) == costs.hits_seconds(0b1, 0b1)
    assert costs.before_experts_seconds == COSTS.dense_seconds(16, [(16, 900)]) + costs.router_seconds
