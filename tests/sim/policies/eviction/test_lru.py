"""Least recently used against a list of ages."""

from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.masks import experts_of, mask_of
from hideaway.sim.policies.eviction.base import BypassingPolicy
from hideaway.sim.policies.eviction.lru import Lru
from tests.strategies import event_lists, masks

EXPERTS = 10


def oldest(age, candidates, count):
    """Return the `count` candidates whose last use is oldest; among equals the lowest id."""
    return mask_of(sorted(experts_of(candidates), key=lambda expert: (age[expert], expert))[:count])


@given(
    st.lists(st.tuples(st.booleans(), masks(EXPERTS)), max_size=30), masks(EXPERTS), st.integers(0, EXPERTS)
)
def test_victims_are_those_whose_last_event_is_oldest(history, candidates, count):
    policy, age = Lru(1, EXPERTS), [-1] * EXPERTS
    for time, (prefetched, experts) in enumerate(history):
        (policy.insert if prefetched else policy.touch)(0, experts)
        for expert in experts_of(experts):
            age[expert] = time
    assert policy.victims(0, count, candidates) == oldest(age, candidates, count)


@given(event_lists(EXPERTS), masks(EXPERTS), st.integers(0, EXPERTS))
def test_asking_for_victims_changes_nothing(events, candidates, count):
    policy = Lru(1, EXPERTS)
    for event in events:
        policy.touch(0, event)
    first = policy.victims(0, count, candidates)
    policy.forget(0, first)
    assert policy.victims(0, count, candidates) == first


@given(event_lists(EXPERTS), event_lists(EXPERTS), masks(EXPERTS))
def test_layers_are_apart(events, other, candidates):
    both, alone = Lru(2, EXPERTS), Lru(2, EXPERTS)
    for event in events:
        both.touch(0, event)
        alone.touch(0, event)
    for event in other:
        both.touch(1, event)
    assert both.victims(0, 3, candidates) == alone.victims(0, 3, candidates)


def test_experts_of_one_event_are_one_use():
    policy = Lru(1, 4)
    policy.touch(0, 0b1010)
    policy.touch(0, 0b0101)
    assert policy.victims(0, 1, 0b1111) == 0b0010
    assert policy.victims(0, 3, 0b1111) == 0b1011


def test_it_never_refuses_a_slot():
    assert not isinstance(Lru(1, 4), BypassingPolicy)
