"""The staggered and barrier forms against two replays that know no formula, and what implies what."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hideaway.sim.errors import InputError
from hideaway.sim.hide.arrivals import link_arrival_seconds, split_by_layer
from hideaway.sim.hide.nominal import evaluate_nominal
from hideaway.sim.hide.staggered import (
    barrier_exposed_seconds,
    barrier_stalls_seconds,
    smallest_staggered_window_seconds,
    staggered_exposed_seconds,
    staggered_stalls_seconds,
)

MANY = settings(max_examples=max(150, settings.default.max_examples))


def arrivals_of(round_, **options):
    issue, copy = ([miss[index] for miss in round_.flat] for index in (0, 1))
    return split_by_layer(link_arrival_seconds(issue, copy, **options), round_.counts)


def layers_of(round_, arrivals=None):
    return round_.dense, round_.hits, arrivals_of(round_) if arrivals is None else arrivals, round_.works


@pytest.mark.parametrize("world", ["list", "simpy"])
@MANY
@given(data=st.data())
def test_closed_form_equals_the_replayed_stalls(world, data, rounds, replays):
    round_ = data.draw(rounds())
    seen = replays[world](round_)
    assert [layer.tolist() for layer in arrivals_of(round_)] == seen.arrivals
    assert staggered_stalls_seconds(round_.window, *layers_of(round_)).tolist() == seen.stalls
    assert staggered_exposed_seconds(round_.window, *layers_of(round_)) == seen.exposed


@pytest.mark.parametrize("world", ["list", "simpy"])
@MANY
@given(data=st.data())
def test_barrier_form_equals_the_replayed_stalls(world, data, rounds, replays):
    round_ = data.draw(rounds())
    seen = replays[world](round_, barrier=True)
    assert barrier_stalls_seconds(round_.window, *layers_of(round_)).tolist() == seen.stalls
    assert barrier_exposed_seconds(round_.window, *layers_of(round_)) == seen.exposed


@given(data=st.data())
def test_blocking_issue_is_the_running_sum_and_equals_its_replay(data, rounds, replays):
    round_ = data.draw(rounds())
    arrivals = arrivals_of(round_, pipelined_issue=False)
    costs = [issue + copy for issue, copy, _ in round_.flat]
    assert np.concatenate([*arrivals, []]).tolist() == np.cumsum(costs).tolist()
    seen = replays["list"](round_, blocking=True)
    assert staggered_stalls_seconds(round_.window, *layers_of(round_, arrivals)).tolist() == seen.stalls


@given(data=st.data())
def test_barrier_form_is_the_formula_with_running_fetch_times(data, rounds):
    round_ = data.draw(rounds(issue=False))
    fetches = np.cumsum([sum(layer) for layer in round_.part(1)])
    behind = np.array(round_.hits) + [sum(layer) for layer in round_.works]
    starts = round_.window + np.cumsum(np.array(round_.dense) + behind) - behind
    needs = np.array(round_.counts) > 0
    expected = max(0.0, *(fetches - starts)[needs], 0.0)
    assert barrier_exposed_seconds(round_.window, *layers_of(round_)) == expected


@given(data=st.data())
def test_hits_first_is_never_worse_than_the_barrier(data, rounds):
    round_ = data.draw(rounds())
    layers = layers_of(round_)
    assert staggered_exposed_seconds(round_.window, *layers) <= barrier_exposed_seconds(
        round_.window, *layers
    )


@given(
    window=st.floats(0, 2),
    layers=st.lists(
        st.tuples(
            st.floats(0, 1),
            st.floats(0, 1),
            st.lists(st.tuples(st.floats(0, 3), st.floats(0, 1)), max_size=4),
        ),
        min_size=1,
        max_size=6,
    ),
    longer=st.floats(0, 1),
    which=st.integers(0, 5),
)
@settings(max_examples=max(150, settings.default.max_examples))
def test_longer_window_or_work_never_exposes_more_and_later_arrivals_never_less(
    window, layers, longer, which
):
    dense = [layer[0] for layer in layers]
    hits = [layer[1] for layer in layers]
    arrivals = [sorted(miss[0] for miss in layer[2]) for layer in layers]
    works = [[miss[1] for miss in layer[2]] for layer in layers]
    exposed = staggered_exposed_seconds(window, dense, hits, arrivals, works)
    layer = which % len(layers)

    def more(values):
        return [value + longer if index == layer else value for index, value in enumerate(values)]

    longer_works = [
        [work + longer for work in row] if index == layer else row for index, row in enumerate(works)
    ]
    later = [[time + longer for time in row] if index == layer else row for index, row in enumerate(arrivals)]
    assert staggered_exposed_seconds(window + longer, dense, hits, arrivals, works) <= exposed
    assert staggered_exposed_seconds(window, more(dense), hits, arrivals, works) <= exposed
    assert staggered_exposed_seconds(window, dense, more(hits), arrivals, works) <= exposed
    assert staggered_exposed_seconds(window, dense, hits, arrivals, longer_works) <= exposed
    assert staggered_exposed_seconds(window, dense, hits, later, works) >= exposed


@given(data=st.data())
def test_time_units_scale_the_exposed_seconds(data, rounds):
    round_ = data.draw(rounds())
    dense, hits, arrivals, works = layers_of(round_)
    scaled = staggered_exposed_seconds(
        round_.window * 1024,
        np.array(dense) * 1024,
        np.array(hits) * 1024,
        [layer * 1024 for layer in arrivals],
        [np.array(layer) * 1024 for layer in works],
    )
    assert scaled == 1024 * staggered_exposed_seconds(round_.window, dense, hits, arrivals, works)


@given(data=st.data())
def test_smallest_window_round_trips(data, rounds):
    round_ = data.draw(rounds())
    layers = layers_of(round_)
    window = smallest_staggered_window_seconds(*layers)
    assert staggered_exposed_seconds(window, *layers) == 0.0
    if window > 0:
        assert staggered_exposed_seconds(window - 1 / 8, *layers) > 0.0


def test_smallest_window_hides_exactly_even_with_numbers_that_round():
    layers = ([0.1, 0.2], [0.3, 0.1], [[0.7, 1.1], [2.3]], [[0.1, 0.1], [0.1]])
    window = smallest_staggered_window_seconds(*layers)
    assert staggered_exposed_seconds(window, *layers) == 0.0
    assert window == pytest.approx(2.3 - (0.1 + 0.3 + 0.2 + 0.2 + 0.1), rel=1e-15)


def test_arrivals_of_a_layer_may_be_given_in_any_order():
    shuffled = staggered_exposed_seconds(1.0, [1.0], [0.5], [[9.0, 3.0]], [[2.0, 1.0]])
    assert shuffled == staggered_exposed_seconds(1.0, [1.0], [0.5], [[3.0, 9.0]], [[1.0, 2.0]]) == 5.5


@given(data=st.data())
def test_nominal_hidden_implies_staggered_hidden_for_the_same_transfers_window_and_free_slots(data, rounds):
    round_ = data.draw(rounds(issue=False))
    fetch = sum(copy for _, copy, _ in round_.flat)
    nominal = evaluate_nominal(
        resident_fraction=0.0,
        saturation=1.0,
        total_expert_bytes=fetch,
        measured_h2d_bytes_per_second=1.0,
        draft_seconds=round_.window,
        router_seconds=0.0,
        overlap_seconds=0.0,
    )
    if nominal.hidden:
        assert staggered_exposed_seconds(round_.window, *layers_of(round_)) == 0.0


def test_nominal_hidden_implies_nothing_when_only_one_form_counts_a_cost_per_transfer():
    copies, latency, window = [1.0, 1.0], 0.5, 2.0
    nominal = evaluate_nominal(
        resident_fraction=0.0,
        saturation=1.0,
        total_expert_bytes=sum(copies),
        measured_h2d_bytes_per_second=1.0,
        draft_seconds=window,
        router_seconds=0.0,
        overlap_seconds=0.0,
    )
    arrivals = link_arrival_seconds([0.0, 0.0], [copy + latency for copy in copies])
    assert bool(nominal.hidden)
    assert staggered_exposed_seconds(window, [0.0], [0.0], [arrivals], [[0.0, 0.0]]) == 1.0


def test_staggered_hidden_does_not_imply_nominal_hidden():
    arrivals = split_by_layer(link_arrival_seconds([0.0, 0.0], [1.0, 1.0]), [1, 1])
    window = 1.0
    assert arrivals[-1][-1] > window
    assert staggered_exposed_seconds(window, [0.0, 0.0], [0.0, 0.0], arrivals, [[1.0], [0.0]]) == 0.0


def test_a_resident_model_exposes_nothing():
    assert staggered_exposed_seconds(0.0, [1.0, 1.0], [1.0, 1.0], [[], []], [[], []]) == 0.0
    assert barrier_exposed_seconds(0.0, [1.0, 1.0], [1.0, 1.0], [[], []], [[], []]) == 0.0
    assert staggered_exposed_seconds(3.0, [], [], [], []) == 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1.0, [1.0], [1.0], [[]], [[]]), "window_seconds holds a negative"),
        ((1.0, [float("nan")], [1.0], [[]], [[]]), "dense_seconds holds a negative, NaN"),
        ((1.0, [1.0], [float("inf")], [[]], [[]]), "hit_seconds holds a negative, NaN or infinite"),
        ((1.0, [1.0, 2.0], [1.0], [[]], [[]]), "dense_seconds has 2 layers but hit_seconds has 1"),
        ((1.0, [1.0], [1.0], [], [[]]), "arrival_seconds has 0 layers but hit_seconds has 1"),
        ((1.0, [1.0], [1.0], [[1.0]], [[]]), "layer 0 has 1 arrivals but 0 works"),
        ((1.0, [1.0], [1.0], [[[1.0]]], [[1.0]]), "has 2 dimensions"),
        ((1.0, ["x"], [1.0], [[]], [[]]), "dense_seconds is not an array of numbers"),
        (([1.0], [1.0], [1.0], [[]], [[]]), "window_seconds has 1 dimensions; give one number"),
    ],
)
def test_bad_input_is_one_sentence(arguments, message):
    with pytest.raises(InputError, match=message):
        staggered_exposed_seconds(*arguments)
