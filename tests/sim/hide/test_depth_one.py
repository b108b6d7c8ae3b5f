"""Depth 1 against the replays, and the counter-example to the nominal form."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hideaway.sim.errors import InputError
from hideaway.sim.hide.arrivals import link_arrival_seconds
from hideaway.sim.hide.depth_one import depth_one_exposed_seconds, depth_one_stalls_seconds
from hideaway.sim.hide.nominal import evaluate_nominal
from hideaway.sim.hide.staggered import staggered_exposed_seconds


def arrivals_of(round_):
    """Arrivals of each layer from its own router."""
    return [
        link_arrival_seconds([miss[0] for miss in layer], [miss[1] for miss in layer])
        for layer in round_.misses
    ]


@pytest.mark.parametrize("world", ["list", "simpy"])
@settings(max_examples=max(150, settings.default.max_examples))
@given(data=st.data())
def test_closed_form_equals_the_replayed_stalls(world, data, rounds, replays):
    round_ = data.draw(rounds())
    seen = replays[world](round_, depth_one=True)
    assert depth_one_stalls_seconds(round_.hits, arrivals_of(round_), round_.works).tolist() == seen.stalls
    assert depth_one_exposed_seconds(round_.hits, arrivals_of(round_), round_.works) == seen.exposed


@given(data=st.data())
def test_prefetch_that_knows_every_layer_is_never_worse(data, rounds, replays):
    round_ = data.draw(rounds())
    ahead = replays["list"](round_)
    exposed = staggered_exposed_seconds(
        round_.window, round_.dense, round_.hits, ahead.arrivals, round_.works
    )
    assert exposed <= depth_one_exposed_seconds(round_.hits, arrivals_of(round_), round_.works)


def test_nominal_hidden_is_exposed_at_depth_one():
    nominal = evaluate_nominal(
        resident_fraction=0.0,
        saturation=1.0,
        total_expert_bytes=2.0,
        measured_h2d_bytes_per_second=1.0,
        draft_seconds=100.0,
        router_seconds=0.0,
        overlap_seconds=0.0,
    )
    assert bool(nominal.hidden)
    assert depth_one_exposed_seconds([0.25, 0.25], [[1.0], [1.0]], [[0.0], [0.0]]) == 1.5


def test_each_layer_waits_for_its_worst_arrival_after_its_hits_and_earlier_arrivals():
    stalls = depth_one_stalls_seconds([1.0, 5.0, 0.0], [[2.0, 4.0], [2.0], []], [[0.5, 0.5], [1.0], []])
    assert stalls.tolist() == [2.5, 0.0, 0.0]


def test_bad_input_is_one_sentence():
    with pytest.raises(InputError, match="arrival_compute_seconds has 0 layers"):
        depth_one_exposed_seconds([1.0], [[1.0]], [])
