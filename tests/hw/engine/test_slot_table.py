"""Slots follow the scheduler's residency: no two held experts share one, dropped ones are given back."""

from __future__ import annotations

import random

import pytest

from hideaway.hw.engine.slot_table import SlotTable
from hideaway.sim.errors import HideawayError
from hideaway.sim.masks import experts_of
from hideaway.sim.residency import Residency


def test_a_fetched_expert_keeps_its_slot_until_it_is_dropped() -> None:
    residency = Residency([2, 2])
    table = SlotTable(residency, 1)
    residency.reserve(0, 0b11, 0)
    first = table.assign(0, 0b11)
    residency.arrive(0, 0b11)
    assert table.slots_of(0, 0b11) == first
    residency.reserve(0, 0b100, 0b1)
    assert table.assign(0, 0b100) == {2: first[0]}
    assert table.slots_of(0, 0b110) == {1: first[1], 2: first[0]}


def test_an_expert_that_is_cancelled_and_fetched_again_gets_a_slot_again() -> None:
    residency = Residency([1])
    table = SlotTable(residency, 0)
    residency.reserve(0, 1, 0)
    table.assign(0, 1)
    residency.cancel(0, 1)
    residency.reserve(0, 1, 0)
    assert table.assign(0, 1) == {0: 0}


def test_more_experts_than_slots_is_a_fault() -> None:
    table = SlotTable(Residency([1]), 0)
    with pytest.raises(HideawayError, match="finds no slot among 1"):
        table.assign(0, 0b11)


def test_staging_slots_are_beyond_the_others_and_come_back() -> None:
    table = SlotTable(Residency([3]), 2)
    taken = [table.take_staging(), table.take_staging()]
    assert sorted(taken) == [3, 4]
    assert table.take_staging() is None
    assert all(table.is_staging(slot) for slot in taken)
    table.give_back_staging(taken[0])
    assert table.take_staging() == taken[0]


@pytest.mark.parametrize("seed", range(20))
def test_held_experts_never_share_a_slot(seed: int) -> None:
    rng = random.Random(seed)
    residency = Residency([3, 2, 4])
    table = SlotTable(residency, 0)
    for _ in range(300):
        layer = rng.randrange(3)
        move = rng.randrange(3)
        resident, in_flight = residency.resident[layer], residency.in_flight[layer]
        if move == 0:
            absent = [1 << e for e in range(8) if not (resident | in_flight) >> e & 1]
            wanted = rng.choice(absent)
            victims = 0
            if residency.free_slots(layer) == 0:
                if not resident:
                    continue
                victims = 1 << rng.choice(list(experts_of(resident)))
            residency.reserve(layer, wanted, victims)
            table.assign(layer, wanted)
        elif in_flight:
            one = 1 << rng.choice(list(experts_of(in_flight)))
            (residency.arrive if move == 1 else residency.cancel)(layer, one)
        held = [
            slot
            for at in range(3)
            for slot in table.slots_of(at, residency.resident[at] | residency.in_flight[at]).values()
        ]
        assert len(held) == len(set(held))
