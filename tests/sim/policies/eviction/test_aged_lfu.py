"""Aged counts against exact fractions that are multiplied at every event."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.masks import experts_of, mask_of
from hideaway.sim.policies.eviction.aged_lfu import AgedLfu
from tests.strategies import event_lists, masks

EXPERTS = 8


def aged_counts(events, decay):
    """Return each expert's uses, every earlier use multiplied by `decay` at each event of the layer."""
    counts = [Fraction(0)] * EXPERTS
    for event in events:
        counts = [count * decay for count in counts]
        for expert in experts_of(event):
            counts[expert] += 1
    return counts


def least_used(counts, candidates, count):
    return mask_of(sorted(experts_of(candidates), key=lambda expert: (counts[expert], expert))[:count])


@given(
    event_lists(EXPERTS),
    st.sampled_from([(0.99, Fraction(99, 100)), (0.5, Fraction(1, 2)), (1.0, Fraction(1))]),
    masks(EXPERTS),
    st.integers(0, EXPERTS),
)
def test_victims_have_the_smallest_decayed_counts(events, decay, candidates, count):
    policy = AgedLfu(1, EXPERTS, decay[0])
    for event in events:
        policy.touch(0, event)
    assert policy.victims(0, count, candidates) == least_used(
        aged_counts(events, decay[1]), candidates, count
    )


def test_counts_survive_the_rescaling_of_a_long_run():
    policy = AgedLfu(1, EXPERTS)
    for event in range(60_000):
        policy.touch(0, mask_of(expert for expert in range(EXPERTS) if event % (2 * expert + 1) == 0))
    everybody = (1 << EXPERTS) - 1
    order = []
    while everybody:
        order.append(policy.victims(0, 1, everybody))
        everybody ^= order[-1]
    assert order == [1 << expert for expert in reversed(range(EXPERTS))]


def test_a_prefetch_is_not_a_use_and_counts_outlive_residency():
    policy = AgedLfu(1, EXPERTS)
    policy.touch(0, 0b01)
    policy.insert(0, 0b10)
    policy.forget(0, 0b01)
    assert policy.victims(0, 1, 0b11) == 0b10


@pytest.mark.parametrize("decay", [0.0, -0.5, 1.01, float("nan")])
def test_a_decay_that_is_no_fraction_is_refused(decay):
    with pytest.raises(ValueError, match=r"decay is .*; it must be above 0 and at most 1"):
        AgedLfu(1, EXPERTS, decay)
