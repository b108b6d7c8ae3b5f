"""Slots: absent, in flight, resident; what breaks the count raises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.errors import HideawayError, IllegalEventError
from hideaway.sim.residency import Residency
from tests.strategies import masks, submasks


def test_nothing_is_resident_unless_said():
    residency = Residency([2, 3])
    assert residency.resident == [0, 0]
    assert residency.in_flight == [0, 0]
    assert [residency.free_slots(layer) for layer in range(2)] == [2, 3]


def test_an_expert_takes_its_slot_when_it_is_reserved_and_is_resident_when_it_arrives():
    residency = Residency([2])
    residency.reserve(0, 0b01, victims=0)
    assert (residency.resident, residency.in_flight, residency.free_slots(0)) == ([0], [0b01], 1)
    residency.arrive(0, 0b01)
    assert (residency.resident, residency.in_flight, residency.free_slots(0)) == ([0b01], [0], 1)
    assert residency.resident_count() == 1


def test_a_victim_leaves_as_its_successor_is_reserved():
    residency = Residency([2], [0b011])
    residency.reserve(0, 0b100, victims=0b001)
    assert (residency.resident, residency.in_flight) == ([0b010], [0b100])


def test_a_dropped_copy_gives_its_slot_back():
    residency = Residency([1])
    residency.reserve(0, 0b1, victims=0)
    residency.cancel(0, 0b1)
    assert residency.free_slots(0) == 1


def test_more_resident_experts_than_slots_are_refused():
    with pytest.raises(HideawayError, match="layer 1 holds 2 resident and 0 arriving experts in 1 slots"):
        Residency([1, 1], [0b1, 0b11])


def test_reserving_beyond_the_slots_is_refused():
    with pytest.raises(HideawayError, match="1 resident and 2 arriving experts in 2 slots"):
        Residency([2], [0b1]).reserve(0, 0b110, victims=0)


def test_an_expert_is_never_counted_twice():
    with pytest.raises(HideawayError, match="layer 0"):
        Residency([4], [0b1]).reserve(0, 0b1, victims=0)


def test_an_expert_that_nobody_asked_for_cannot_arrive():
    residency = Residency([4])
    residency.reserve(0, 0b01, victims=0)
    with pytest.raises(IllegalEventError, match="experts 0x2 of layer 0 arrived unasked"):
        residency.arrive(0, 0b11)


def test_a_copy_that_nobody_asked_for_cannot_be_dropped():
    residency = Residency([4])
    residency.reserve(0, 0b01, victims=0)
    with pytest.raises(IllegalEventError, match="experts 0x2 of layer 0 were dropped unasked"):
        residency.cancel(0, 0b11)


@given(st.data())
def test_any_legal_walk_keeps_slots_and_states_apart(data):
    slots = data.draw(st.integers(1, 8))
    residency = Residency([slots])
    for _ in range(30):
        resident, in_flight = residency.resident[0], residency.in_flight[0]
        step = data.draw(st.sampled_from(["reserve", "arrive", "cancel"]))
        if step == "arrive":
            residency.arrive(0, data.draw(submasks(in_flight)))
        elif step == "cancel":
            residency.cancel(0, data.draw(submasks(in_flight)))
        else:
            victims = data.draw(submasks(resident))
            room = residency.free_slots(0) + victims.bit_count()
            wanted = data.draw(masks(8, maximum=room)) & ~(resident | in_flight)
            residency.reserve(0, wanted, victims)
        resident, in_flight = residency.resident[0], residency.in_flight[0]
        assert resident & in_flight == 0
        assert residency.free_slots(0) == slots - resident.bit_count() - in_flight.bit_count() >= 0
