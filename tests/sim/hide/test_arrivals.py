"""Arrival times: the recurrence, its two extremes, and how values are spread over layers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.errors import InputError
from hideaway.sim.hide.arrivals import link_arrival_seconds, link_seconds, split_by_layer, spread_over_layers

eighths = st.integers(0, 80).map(lambda value: value / 8)
transfers = st.lists(st.tuples(eighths, eighths), max_size=30)


@given(costs=transfers, start=eighths)
def test_a_pipelined_arrival_is_the_longest_path_through_issues_and_copies(costs, start):
    issues = [issue for issue, _ in costs]
    copies = [copy for _, copy in costs]
    arrivals = link_arrival_seconds(issues, copies, start_seconds=start)
    for last in range(len(costs)):
        paths = [sum(issues[: turn + 1]) + sum(copies[turn : last + 1]) for turn in range(last + 1)]
        assert arrivals[last] == start + max(paths)


@given(costs=transfers)
def test_pipelining_the_issue_is_never_slower_than_blocking_and_never_faster_than_either_server(costs):
    issues = [issue for issue, _ in costs]
    copies = [copy for _, copy in costs]
    pipelined = link_arrival_seconds(issues, copies)
    blocking = link_arrival_seconds(issues, copies, pipelined_issue=False)
    assert np.all(pipelined <= blocking)
    assert np.all(pipelined >= np.cumsum(copies))
    assert np.all(pipelined >= np.cumsum(issues))
    assert blocking.tolist() == np.cumsum(np.add(issues, copies)).tolist()


def test_a_batch_starts_no_copy_before_it_has_been_issued():
    assert link_arrival_seconds([0.5, 0.0, 0.0], [1.0, 1.0, 1.0]).tolist() == [1.5, 2.5, 3.5]


def test_link_seconds_are_latency_and_bytes_over_bandwidth():
    assert link_seconds([0, 8], h2d_bytes_per_second=4.0, latency_seconds=0.5).tolist() == [0.5, 2.5]


@given(total=st.integers(0, 500), num_layers=st.integers(1, 60))
def test_spreading_keeps_the_total_and_differs_by_at_most_one(total, num_layers):
    counts = spread_over_layers(total, num_layers)
    assert counts.sum() == total
    assert counts.shape == (num_layers,)
    assert counts.max() - counts.min() <= 1


def test_splitting_follows_the_counts():
    assert [part.tolist() for part in split_by_layer([1.0, 2.0, 3.0], [1, 0, 2])] == [[1.0], [], [2.0, 3.0]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: link_arrival_seconds([1.0], []), "issue_seconds has 1 transfers but copy_seconds has 0"),
        (lambda: link_arrival_seconds([-1.0], [1.0]), "issue_seconds holds a negative"),
        (lambda: link_arrival_seconds([1.0], [1.0], start_seconds=-1.0), "start_seconds holds a negative"),
        (lambda: link_seconds(1, h2d_bytes_per_second=0.0), "h2d_bytes_per_second holds zero"),
        (lambda: split_by_layer([1.0], [2]), "num_missing adds up to 2 but there are 1 values"),
        (lambda: spread_over_layers(3, 0), "num_layers is 0"),
    ],
)
def test_bad_input_is_one_sentence(call, message):
    with pytest.raises(InputError, match=message):
        call()
