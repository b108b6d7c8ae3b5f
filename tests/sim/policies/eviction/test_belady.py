"""The bound is a bound: at most LRU's misses, and exactly the fewest possible on cases small enough to search."""

from functools import cache
from itertools import combinations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hideaway.sim.masks import experts_of, mask_of
from hideaway.sim.policies.eviction.aged_lfu import AgedLfu
from hideaway.sim.policies.eviction.base import BypassingPolicy
from hideaway.sim.policies.eviction.belady import Belady
from hideaway.sim.policies.eviction.lru import Lru
from tests.cache_runs import misses
from tests.strategies import event_lists, masks

EXPERTS = 6


def fewest_misses(events, slots):
    """Return the fewest misses of any choice that drops nothing its event reads and may refuse a slot."""

    @cache
    def best(index, resident):
        if index == len(events):
            return 0
        needed = frozenset(experts_of(events[index]))
        missing = needed - resident
        stay = resident & needed
        pool = (resident | missing) - stay
        afterwards = [
            stay | frozenset(chosen)
            for size in range(min(len(pool), slots - len(stay)) + 1)
            for chosen in combinations(sorted(pool), size)
        ]
        return len(missing) + min(best(index + 1, state) for state in afterwards)

    return best(0, frozenset())


@given(event_lists(5, max_events=7), st.integers(1, 4))
@example([0b11, 0b11, 0b10], 1)
@example([0b01, 0b10, 0b11, 0b10], 1)
def test_no_choice_of_victims_misses_less(events, slots):
    found = misses(Belady(1, 5, [events]), events, slots=slots, num_experts=5)
    assert found == fewest_misses(events, slots)


@given(event_lists(EXPERTS), st.integers(1, EXPERTS))
def test_it_never_misses_more_than_a_rule_without_the_future(events, slots):
    bound = misses(Belady(1, EXPERTS, [events]), events, slots=slots, num_experts=EXPERTS)
    for rule in (Lru(1, EXPERTS), AgedLfu(1, EXPERTS)):
        assert bound <= misses(rule, events, slots=slots, num_experts=EXPERTS)


@given(event_lists(EXPERTS), st.integers(1, EXPERTS - 1))
def test_another_slot_never_costs_a_miss(events, slots):
    few, many = (
        misses(Belady(1, EXPERTS, [events]), events, slots=count, num_experts=EXPERTS)
        for count in (slots, slots + 1)
    )
    assert many <= few


def future_uses(events, position, expert):
    """Return the events from `position` on that read `expert`, and at the end one that never comes."""
    return [index for index in range(position, len(events)) if events[index] >> expert & 1] + [len(events)]


@given(event_lists(EXPERTS), st.integers(0, 45), masks(EXPERTS), st.integers(0, EXPERTS))
def test_victims_are_those_whose_next_use_is_farthest(events, position, candidates, count):
    policy = Belady(1, EXPERTS, [events])
    for index in range(position):
        policy.touch(0, events[index] if index < len(events) else 0)
    ranked = sorted(experts_of(candidates), key=lambda e: (future_uses(events, position, e), e), reverse=True)
    assert policy.victims(0, count, candidates) == mask_of(ranked[:count])


def test_an_arriving_expert_that_is_never_read_again_is_refused_even_a_free_slot():
    policy = Belady(1, EXPERTS, [[0b11, 0b01]])
    policy.touch(0, 0b11)
    assert policy.keep(0, 0b11, 0, free_slots=2) == 0b01


def test_an_arriving_expert_is_refused_the_slot_of_one_that_is_read_sooner():
    policy = Belady(1, EXPERTS, [[0b001, 0b010, 0b100, 0b001]])
    policy.touch(0, 0b001)
    assert policy.keep(0, 0b001, candidates=0b010, free_slots=0) == 0
    assert policy.keep(0, 0b001, candidates=0b001000, free_slots=0) == 0b001


def test_of_two_experts_with_the_same_next_use_the_one_read_again_sooner_is_worth_more():
    policy = Belady(1, EXPERTS, [[0b11, 0b11, 0b11, 0b10]])
    policy.touch(0, 0b11)
    assert policy.victims(0, 1, 0b11) == 0b01
    assert policy.keep(0, 0b11, 0, free_slots=1) == 0b10


def test_where_the_run_shifts_it_goes_on_with_the_recorded_future():
    policy = Belady(1, EXPERTS, [[0b001, 0b010, 0b100]])
    policy.touch(0, 0b100)
    assert policy.victims(0, 1, 0b110) == 0b100
    for _ in range(5):
        policy.touch(0, 0b111)
    assert policy.victims(0, 1, 0b110) == 0b100, "past its end every expert is equally far"


def test_it_may_refuse_a_slot():
    assert isinstance(Belady(1, 2, [[1]]), BypassingPolicy)


def test_a_future_of_another_model_is_refused():
    with pytest.raises(ValueError, match="the future covers 1 layers; the model has 2"):
        Belady(2, EXPERTS, [[1]])
