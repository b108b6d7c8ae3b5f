"""The hot set stays, everything else is streamed."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.masks import experts_of
from hideaway.sim.policies.eviction.static_hot_set import StaticHotSet, hot_set
from tests.cache_runs import misses
from tests.strategies import event_lists

EXPERTS = 8


def test_the_hot_set_is_the_most_used_with_ties_to_the_lower_id():
    popularity = np.array([[1.0, 5.0, 5.0, 5.0], [0.0, 0.0, 2.0, 1.0]])
    assert hot_set(popularity, [2, 3]) == [0b0110, 0b1101]


def test_a_layer_without_slots_has_no_hot_set():
    assert hot_set(np.ones((1, 4)), [0]) == [0]


@given(event_lists(EXPERTS), st.integers(1, EXPERTS))
def test_misses_are_exactly_the_uses_outside_the_hot_set(events, slots):
    counts = [[sum(event >> expert & 1 for event in events) for expert in range(EXPERTS)]]
    (hot,) = hot_set(np.array(counts, dtype=float), [slots])
    found = misses(StaticHotSet(), events, slots=slots, num_experts=EXPERTS, resident=hot)
    assert found == sum(
        expert not in set(experts_of(hot)) for event in events for expert in experts_of(event)
    )
    assert found == sum(sorted(counts[0])[: EXPERTS - slots]), "no other fixed set misses less"
