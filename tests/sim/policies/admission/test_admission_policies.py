"""Seating everybody, and the deficit rule carried from iteration to iteration, consequences included."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.admission import Deficit2D, VerifyDemand
from hideaway.sim.errors import InputError
from hideaway.sim.policies.admission.admit_all import AdmitAll
from hideaway.sim.policies.admission.deficit import UNBOUNDED_BYTES, DeficitAdmission

sizes = st.tuples(st.integers(0, 20), st.integers(0, 1000))
rounds_of_demands = st.lists(st.lists(sizes, max_size=6), min_size=1, max_size=8)


def demands_of(pairs):
    return [VerifyDemand(seq_id, tokens, num_bytes) for seq_id, (tokens, num_bytes) in enumerate(pairs)]


@given(st.lists(sizes, max_size=6))
def test_admit_all_seats_everybody_in_order(pairs):
    demands = demands_of(pairs)
    assert AdmitAll().admit(demands).admitted_ids == tuple(range(len(pairs)))


def literal_rule(rounds, budget, cap):
    """Return who is admitted in each round, by the rule's own words."""
    carried_tokens = carried_bytes = 0
    admitted = []
    for pairs in rounds:
        tokens_left, bytes_left = budget[0] + carried_tokens, budget[1] + carried_bytes
        now = []
        for seq_id, (tokens, num_bytes) in enumerate(pairs):
            if tokens <= tokens_left and num_bytes <= bytes_left:
                tokens_left, bytes_left = tokens_left - tokens, bytes_left - num_bytes
                now.append(seq_id)
        carried_tokens, carried_bytes = min(tokens_left, cap[0]), min(bytes_left, cap[1])
        admitted.append(tuple(now))
    return admitted


@given(rounds_of_demands, sizes, sizes)
def test_the_deficit_is_carried_from_one_iteration_to_the_next(rounds, budget, spare):
    cap = (20 + spare[0], 1000 + spare[1])
    policy = DeficitAdmission(Deficit2D(*budget), Deficit2D(*cap))
    found = [policy.admit(demands_of(pairs)).admitted_ids for pairs in rounds]
    assert found == literal_rule(rounds, budget, cap)


@given(rounds_of_demands, st.integers(0, 20))
def test_by_tokens_alone_bytes_never_bind(rounds, budget):
    policy = DeficitAdmission.by_tokens(budget, 20)
    free = [[(tokens, 0) for tokens, _ in pairs] for pairs in rounds]
    found = [policy.admit(demands_of(pairs)).admitted_ids for pairs in rounds]
    assert found == literal_rule(free, (budget, 0), (20, 0))


def test_only_a_finite_byte_budget_asks_for_byte_demands():
    assert not AdmitAll.needs_bytes
    assert not DeficitAdmission.by_tokens(8, 8).needs_bytes
    assert DeficitAdmission(Deficit2D(8, 100), Deficit2D(8, 100)).needs_bytes
    assert not DeficitAdmission(Deficit2D(8, UNBOUNDED_BYTES), Deficit2D(8, UNBOUNDED_BYTES)).needs_bytes


def test_a_large_demand_starves_behind_small_ones_that_each_fit():
    policy = DeficitAdmission(Deficit2D(100, 10), Deficit2D(100, 10))
    line = [VerifyDemand(0, 1, 10), *(VerifyDemand(seq_id, 1, 4) for seq_id in (1, 2, 3))]
    line = line[1:] + line[:1]
    seated = Counter()
    for _ in range(50):
        seated.update(policy.admit(line).admitted_ids)
    assert seated[0] == 0
    assert min(seated[1], seated[2]) == 50


def test_an_expert_that_two_sequences_share_is_counted_in_both_demands():
    policy = DeficitAdmission(Deficit2D(100, 10), Deficit2D(100, 10))
    same_expert = [VerifyDemand(0, 1, 10), VerifyDemand(1, 1, 10)]
    assert policy.admit(same_expert).admitted_ids == (0,)


def test_after_an_idle_stretch_budget_and_cap_are_spent_at_once():
    policy = DeficitAdmission(Deficit2D(4, 10), Deficit2D(8, 20))
    for _ in range(10):
        policy.admit([])
    assert policy.carried == Deficit2D(8, 20)
    burst = policy.admit([VerifyDemand(seq_id, 4, 10) for seq_id in range(9)])
    assert len(burst.admitted_ids) == 3
    assert len(policy.admit([VerifyDemand(seq_id, 4, 10) for seq_id in range(9)]).admitted_ids) == 1


def test_a_cap_below_the_largest_demand_is_one_sentence():
    policy = DeficitAdmission(Deficit2D(4, 10), Deficit2D(8, 20))
    with pytest.raises(InputError, match="largest single demand is 4 tokens, 21 bytes"):
        policy.admit([VerifyDemand(0, 4, 21)])
