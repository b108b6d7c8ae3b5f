"""Routing traces: what they hold and what is refused."""

import numpy as np
import pytest

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.routing import RoutingTrace


def made(**changes):
    values = {
        "name": "t",
        "expert_ids": np.array([[[0, 1]], [[2, 1]], [[3, -1]]]),
        "num_experts": 4,
        "top_k": 2,
        "seq_lengths": np.array([2, 1]),
        "origin": "made up",
    }
    return RoutingTrace(**(values | changes))


def test_arrays_become_small_and_read_only_and_borders_are_known():
    trace = made()
    assert (trace.num_tokens, trace.num_layers) == (3, 1)
    assert trace.expert_ids.dtype == np.int16
    assert trace.sequence_starts.tolist() == [0, 2]
    with pytest.raises(ValueError, match="read-only"):
        trace.expert_ids[0, 0, 0] = 3


def test_the_callers_array_stays_its_own():
    ids = np.array([[[0, 1]], [[2, 1]], [[3, -1]]], dtype=np.int16)
    trace = made(expert_ids=ids)
    ids[0, 0, 0] = 3
    assert trace.expert_ids[0, 0, 0] == 0


def test_choices_that_were_not_recorded_may_repeat():
    assert made(expert_ids=np.full((3, 1, 2), -1)).num_tokens == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"expert_ids": np.zeros((3, 1, 2))}, "type float64; store whole numbers"),
        ({"expert_ids": np.zeros((3, 2), int)}, r"shape \(3, 2\)"),
        ({"expert_ids": np.zeros((0, 1, 2), int)}, "none of them zero"),
        ({"expert_ids": np.zeros((3, 1, 3), int)}, r"must be \(tokens, layers, 2\)"),
        ({"expert_ids": np.array([[[0, 4]], [[2, 1]], [[3, 1]]])}, "ids from 0 to 4"),
        ({"expert_ids": np.array([[[0, -2]], [[2, 1]], [[3, 1]]])}, "ids from -2 to 3"),
        ({"expert_ids": np.array([[[1, 1]], [[2, 1]], [[3, 1]]])}, "names an expert twice"),
        ({"num_experts": 0}, "num_experts 0"),
        ({"num_experts": 40_000}, "from 1 to 32767"),
        ({"top_k": 5}, "top_k 5"),
        ({"seq_lengths": np.array([2, 2])}, "sum to 4"),
        ({"seq_lengths": np.array([4, -1])}, "below 1"),
        ({"seq_lengths": np.array([3.0])}, "list of whole numbers"),
        ({"seq_lengths": np.array([], int)}, "list of whole numbers"),
        ({"seq_lengths": np.array([2**63 - 1, 2**63 - 1, 5])}, "below 1|sum to"),
    ],
)
def test_what_is_not_a_routing_trace_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        made(**changes)
