"""The exact two-dimensional deficit rule: every clause, every known consequence, and a literal reference."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.admission import Deficit2D, VerifyAdmission, VerifyDemand, admit_verify_demands

BUDGET = Deficit2D(16, 80)
NOTHING = Deficit2D(0, 0)
CAP = Deficit2D(32, 160)


def admit(*demands, budget=BUDGET, carried=NOTHING, cap=CAP):
    return admit_verify_demands(demands, budget, carried, cap)


def test_in_flight_demands_are_seated_before_anything_is_admitted():
    out = admit(VerifyDemand(1, 16, 80), VerifyDemand(2, 16, 80, in_flight=True))
    assert out == VerifyAdmission(seated_ids=(2,), admitted_ids=(), carried=NOTHING)


def test_in_flight_demands_are_seated_even_beyond_the_pool_and_leave_no_debt():
    out = admit(
        VerifyDemand(1, 32, 160, in_flight=True),
        VerifyDemand(2, 0, 0),
        VerifyDemand(3, 8, 40, in_flight=True),
    )
    assert out.seated_ids == (1, 3)
    assert out.admitted_ids == ()  # even a demand of nothing does not fit a pool below zero
    assert out.carried == NOTHING


def test_what_seating_leaves_is_admitted_from():
    out = admit(VerifyDemand(1, 8, 40, in_flight=True), VerifyDemand(2, 8, 40))
    assert out == VerifyAdmission((1,), (2,), NOTHING)


@pytest.mark.parametrize("demand", [VerifyDemand(1, 17, 1), VerifyDemand(1, 1, 81)], ids=["tokens", "bytes"])
def test_both_dimensions_must_fit_and_what_is_unused_is_carried(demand):
    assert admit(demand) == VerifyAdmission((), (), BUDGET)


def test_a_demand_may_use_the_pool_to_the_last_unit():
    assert admit(VerifyDemand(1, 16, 80)) == VerifyAdmission((), (1,), NOTHING)


def test_admission_is_in_order_until_the_pool_is_used():
    out = admit(*(VerifyDemand(seq_id, 8, 40) for seq_id in (5, 3, 4)))
    assert out == VerifyAdmission((), (5, 3), NOTHING)


def test_a_demand_that_does_not_fit_is_passed_over():
    out = admit(VerifyDemand(1, 12, 10), VerifyDemand(2, 12, 10), VerifyDemand(3, 4, 10))
    assert out == VerifyAdmission((), (1, 3), Deficit2D(0, 60))


def test_one_dimension_used_up_stops_everyone_who_needs_it():
    out = admit(VerifyDemand(1, 1, 80), VerifyDemand(2, 1, 1), VerifyDemand(3, 1, 0))
    assert out == VerifyAdmission((), (1, 3), Deficit2D(14, 0))


@pytest.mark.parametrize(
    ("carried", "expected"),
    [((0, 0), (16, 80)), ((10, 100), (26, 160)), ((30, 150), (32, 160)), ((32, 0), (32, 80))],
)
def test_the_carried_deficit_is_capped_in_each_dimension(carried, expected):
    assert admit(carried=Deficit2D(*carried)).carried == Deficit2D(*expected)


def test_a_large_demand_is_admitted_once_enough_was_carried():
    demand = VerifyDemand(1, 24, 120)
    first = admit(demand)
    second = admit(demand, carried=first.carried)
    assert (first.admitted_ids, first.carried) == ((), BUDGET)
    assert (second.admitted_ids, second.carried) == ((1,), Deficit2D(8, 40))


@pytest.mark.parametrize("in_flight", [False, True])
@pytest.mark.parametrize("demand", [(33, 1), (1, 161)], ids=["tokens", "bytes"])
def test_a_cap_below_the_largest_demand_is_an_error_in_either_dimension(demand, in_flight):
    with pytest.raises(ValueError, match="largest single demand"):
        admit(VerifyDemand(1, *demand, in_flight=in_flight))


def test_a_cap_equal_to_the_largest_demand_of_each_dimension_is_enough():
    admit(VerifyDemand(1, 32, 0), VerifyDemand(2, 0, 160))


@pytest.mark.parametrize("pair", [(-1, 0), (0, -1)])
def test_negative_amounts_are_errors(pair):
    with pytest.raises(ValueError, match=r"(tokens|expert_bytes) is -1"):
        Deficit2D(*pair)
    with pytest.raises(ValueError, match=r"(tokens|expert_bytes) of demand 7 is -1"):
        VerifyDemand(7, *pair)


@pytest.mark.parametrize("amount", [1.5, None, "1", True])
def test_amounts_are_whole_numbers(amount):
    with pytest.raises(ValueError, match="tokens is "):
        Deficit2D(amount, 0)


def test_numpy_amounts_do_not_overflow():
    huge = Deficit2D(np.int64(2**62), np.int64(2**62))
    assert admit_verify_demands([], huge, huge, Deficit2D(2**64, 2**64)).carried == Deficit2D(2**63, 2**63)


def test_values_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        BUDGET.tokens = 1


def test_the_rule_is_pure():
    demands = [VerifyDemand(1, 8, 40), VerifyDemand(2, 8, 40, in_flight=True)]
    before = list(demands)
    assert admit_verify_demands(demands, BUDGET, NOTHING, CAP) == admit_verify_demands(
        demands, BUDGET, NOTHING, CAP
    )
    assert demands == before
    assert admit_verify_demands(iter(demands), BUDGET, NOTHING, CAP).admitted_ids == (1,)


def test_consequence_a_large_demand_starves_behind_small_ones_that_each_fit():
    large = VerifyDemand(0, 24, 0)
    carried = NOTHING
    for small_id in range(1, 1001):
        out = admit(large, VerifyDemand(small_id, 16, 0), carried=carried)
        assert out.admitted_ids == (small_id,)
        carried = out.carried
    assert carried.tokens == 0
    alone = admit(large, carried=admit(large, carried=carried).carried)
    assert alone.admitted_ids == (0,)


def test_consequence_shared_experts_are_counted_twice():
    expert_bytes = 10
    experts = {1: {0, 1, 2, 3, 4, 5}, 2: {0, 1, 2, 3, 4, 5}}
    demands = [VerifyDemand(seq_id, 1, expert_bytes * len(needed)) for seq_id, needed in experts.items()]
    union_bytes = expert_bytes * len(experts[1] | experts[2])
    assert union_bytes <= BUDGET.expert_bytes  # one transfer serves both
    assert admit(*demands).admitted_ids == (1,)


def test_consequence_a_burst_is_budget_plus_cap():
    carried = NOTHING
    for _ in range(100):
        carried = admit(carried=carried).carried
    assert carried == CAP
    ones = [VerifyDemand(seq_id, 1, 5) for seq_id in range(100)]
    burst = admit(*ones, carried=carried)
    assert len(burst.admitted_ids) == BUDGET.tokens + CAP.tokens
    assert len(admit(*ones, carried=burst.carried).admitted_ids) == BUDGET.tokens


AMOUNT = st.integers(0, 12)
PAIR = st.builds(Deficit2D, AMOUNT, AMOUNT)
DEMANDS = st.lists(st.builds(VerifyDemand, st.just(0), AMOUNT, AMOUNT, st.booleans()), max_size=8).map(
    lambda demands: [
        dataclasses.replace(demand, seq_id=index * 3 % 11) for index, demand in enumerate(demands)
    ]
)
BIG_CAP = st.builds(Deficit2D, st.integers(12, 30), st.integers(12, 30))


def literal_rule(demands, budget, carried, cap):
    """Follow the rule's text word by word on plain pairs."""
    demand_pairs = [(d.seq_id, (d.tokens, d.expert_bytes), d.in_flight) for d in demands]
    seated = [(seq_id, pair) for seq_id, pair, in_flight in demand_pairs if in_flight]
    pool = [budget.tokens + carried.tokens, budget.expert_bytes + carried.expert_bytes]
    for _, pair in seated:
        for dimension in (0, 1):
            pool[dimension] -= pair[dimension]
    admitted = []
    for seq_id, pair, in_flight in demand_pairs:
        if not in_flight and all(pair[dimension] <= pool[dimension] for dimension in (0, 1)):
            admitted.append(seq_id)
            for dimension in (0, 1):
                pool[dimension] -= pair[dimension]
    limits = (cap.tokens, cap.expert_bytes)
    rest = [min(max(0, pool[dimension]), limits[dimension]) for dimension in (0, 1)]
    return tuple(seq_id for seq_id, _ in seated), tuple(admitted), tuple(rest)


@given(DEMANDS, PAIR, PAIR, BIG_CAP)
def test_a_literal_reading_of_the_rule_agrees(demands, budget, carried, cap):
    out = admit_verify_demands(demands, budget, carried, cap)
    assert (out.seated_ids, out.admitted_ids, dataclasses.astuple(out.carried)) == literal_rule(
        demands, budget, carried, cap
    )


@given(DEMANDS, PAIR, PAIR, BIG_CAP)
def test_invariants(demands, budget, carried, cap):
    out = admit_verify_demands(demands, budget, carried, cap)
    by_id = {demand.seq_id: demand for demand in demands}
    order = [demand.seq_id for demand in demands]
    assert out.seated_ids == tuple(seq_id for seq_id in order if by_id[seq_id].in_flight)
    assert list(out.admitted_ids) == [seq_id for seq_id in order if seq_id in out.admitted_ids]
    assert not set(out.seated_ids) & set(out.admitted_ids)
    for name in ("tokens", "expert_bytes"):
        pool = getattr(budget, name) + getattr(carried, name)
        seated = sum(getattr(by_id[seq_id], name) for seq_id in out.seated_ids)
        admitted = sum(getattr(by_id[seq_id], name) for seq_id in out.admitted_ids)
        assert 0 <= getattr(out.carried, name) <= getattr(cap, name)
        assert seated + admitted <= max(pool, seated)
        if out.admitted_ids:
            assert seated + admitted <= pool
            assert getattr(out.carried, name) == min(pool - seated - admitted, getattr(cap, name))


@given(st.lists(DEMANDS, max_size=6), PAIR, BIG_CAP)
def test_over_many_iterations_no_more_is_admitted_than_was_budgeted(iterations, budget, cap):
    carried = NOTHING
    admitted = {"tokens": 0, "expert_bytes": 0}
    for count, demands in enumerate(iterations, start=1):
        fresh = [demand for demand in demands if not demand.in_flight]
        out = admit_verify_demands(fresh, budget, carried, cap)
        carried = out.carried
        for name, total in admitted.items():
            admitted[name] = total + sum(getattr(d, name) for d in fresh if d.seq_id in out.admitted_ids)
            assert admitted[name] + getattr(carried, name) <= count * getattr(budget, name)
