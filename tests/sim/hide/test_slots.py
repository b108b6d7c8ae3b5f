"""Slot-limited arrivals against the replay, and the staggered form as a lower bound."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hideaway.sim.errors import InputError
from hideaway.sim.hide.arrivals import link_arrival_seconds, split_by_layer
from hideaway.sim.hide.slots import slot_limited_arrival_seconds
from hideaway.sim.hide.staggered import staggered_exposed_seconds, staggered_stalls_seconds


def slot_arrivals(round_, num_slots, released):
    return slot_limited_arrival_seconds(
        round_.window,
        round_.dense,
        round_.hits,
        round_.part(1),
        round_.works,
        num_slots=num_slots,
        released=released,
    )


@settings(max_examples=max(150, settings.default.max_examples))
@given(data=st.data(), released=st.sampled_from(["expert", "layer"]))
def test_arrivals_and_stalls_equal_the_replay_and_the_unblocked_form_is_a_lower_bound(
    data, released, rounds, replays
):
    round_ = data.draw(rounds(issue=False))
    least = 1 if released == "expert" else max(1, *round_.counts)
    num_slots = data.draw(st.integers(least, least + 6))
    seen = replays["list"](round_, num_slots=num_slots, released=released)
    arrivals = slot_arrivals(round_, num_slots, released)
    assert [layer.tolist() for layer in arrivals] == seen.arrivals
    layers = (round_.dense, round_.hits)
    assert staggered_stalls_seconds(round_.window, *layers, arrivals, round_.works).tolist() == seen.stalls
    costs = [copy for _, copy, _ in round_.flat]
    unblocked = split_by_layer(link_arrival_seconds([0.0] * len(costs), costs), round_.counts)
    assert staggered_exposed_seconds(round_.window, *layers, unblocked, round_.works) <= seen.exposed


@given(data=st.data())
def test_more_slots_never_expose_more_and_enough_slots_never_block(data, rounds):
    round_ = data.draw(rounds(issue=False))
    costs = [copy for _, copy, _ in round_.flat]
    exposed = [
        staggered_exposed_seconds(
            round_.window, round_.dense, round_.hits, slot_arrivals(round_, num_slots, "expert"), round_.works
        )
        for num_slots in range(1, len(costs) + 2)
    ]
    assert exposed == sorted(exposed, reverse=True)
    free = split_by_layer(link_arrival_seconds([0.0] * len(costs), costs), round_.counts)
    assert exposed[-1] == staggered_exposed_seconds(
        round_.window, round_.dense, round_.hits, free, round_.works
    )


def test_transfers_that_would_fit_the_window_are_exposed_when_slots_block():
    arrivals = slot_limited_arrival_seconds(
        10.0, [0.0, 0.0], [0.0, 0.0], [[2.0], [2.0]], [[1.0], [1.0]], num_slots=1
    )
    assert [layer.tolist() for layer in arrivals] == [[2.0], [13.0]]
    assert staggered_exposed_seconds(10.0, [0.0, 0.0], [0.0, 0.0], arrivals, [[1.0], [1.0]]) == 2.0
    assert sum([2.0, 2.0]) <= 10.0


def test_a_layer_larger_than_its_slots_cannot_wait_for_the_layers_end():
    with pytest.raises(InputError, match=r"a layer misses 2 experts but num_slots is 1 .* raise num_slots"):
        slot_limited_arrival_seconds(
            1.0, [1.0], [1.0], [[1.0, 1.0]], [[1.0, 1.0]], num_slots=1, released="layer"
        )


def test_no_slot_at_all_is_refused():
    with pytest.raises(InputError, match="num_slots is 0; give at least one slot"):
        slot_limited_arrival_seconds(1.0, [1.0], [1.0], [[1.0]], [[1.0]], num_slots=0)
