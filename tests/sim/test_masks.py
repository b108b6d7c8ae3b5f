"""Masks agree with Python sets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.masks import experts_of, lowest, mask_of, packed
from tests.strategies import masks

experts = st.sets(st.integers(0, 300))


@given(experts)
def test_a_mask_holds_the_experts_it_was_made_of_in_ascending_order(chosen):
    assert list(experts_of(mask_of(chosen))) == sorted(chosen)


@given(st.lists(st.integers(0, 40)))
def test_naming_an_expert_twice_changes_nothing(chosen):
    assert mask_of(chosen) == mask_of(set(chosen))


@given(experts, st.integers(-2, 310))
def test_the_lowest_are_the_first_of_the_sorted_experts(chosen, count):
    assert list(experts_of(lowest(mask_of(chosen), count))) == sorted(chosen)[: max(0, count)]


@given(st.lists(masks(20), max_size=6), st.integers(20, 70))
def test_packed_layers_are_counted_and_combined_as_one_number(layers, num_experts):
    one = packed(layers, num_experts)
    assert one.bit_count() == sum(mask.bit_count() for mask in layers)
    size = 8 * -(-num_experts // 8)
    assert [one >> (size * layer) & ((1 << size) - 1) for layer in range(len(layers))] == layers


def test_a_mask_wider_than_the_layer_cannot_be_packed_into_its_neighbour():
    with pytest.raises(OverflowError):
        packed([1 << 8, 0], 8)
