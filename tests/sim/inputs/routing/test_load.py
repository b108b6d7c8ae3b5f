"""Routing by name: replay, fitted, a path, and names that are wrong."""

import numpy as np
import pytest

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.routing import fitted_router_names, load_routing, routing_trace_names
from hideaway.sim.inputs.routing.load import load_shipped_trace
from hideaway.sim.inputs.routing.npz import write_routing_file
from hideaway.sim.inputs.routing.trace import RoutingTrace

GPT_OSS_20B = {"num_layers": 24, "num_experts": 32, "top_k": 4}


def load(spec, **shape):
    return load_routing(spec, rng=np.random.default_rng(0), **(shape or GPT_OSS_20B))


def test_replay_is_the_recorded_trace():
    trace = load("replay:gpt-oss-20b")
    assert trace.expert_ids.shape == (17_941, 24, 4)
    assert len(trace.seq_lengths) == 40
    assert trace.expert_ids.min() == 0
    assert "GPT-OSS-MoE-ExpertFingerprinting" in trace.origin


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("qwen3-30b-a3b-top6", (128, 48, 6)),
        ("gemma4-26b-a4b-top6", (128, 30, 6)),
        ("gpt-oss-120b-top2", (64, 36, 2)),
    ],
)
def test_short_traces_replay_their_decode_tokens_and_say_that_top_k_was_reduced(name, shape):
    trace = load(f"replay:{name}", num_layers=shape[1], num_experts=128, top_k=shape[2])
    assert trace.expert_ids.shape == shape
    assert trace.expert_ids.min() == 0
    assert "instead of its own top-" in trace.origin
    assert name in routing_trace_names()


@pytest.mark.parametrize("name", ["gpt-oss-20b", "qwen3-30b-a3b"])
@pytest.mark.parametrize("shape", [(24, 32, 4), (20, 200, 8), (1, 1, 1)])
def test_fitted_routing_is_made_in_any_shape(name, shape):
    trace = load(f"fitted:{name}", num_layers=shape[0], num_experts=shape[1], top_k=shape[2])
    assert trace.expert_ids.shape == (8192, shape[0], shape[2])
    assert trace.expert_ids.min() >= 0
    assert len(trace.seq_lengths) > 10
    assert name in fitted_router_names()
    assert "fitted to" in trace.origin


def test_the_same_generator_gives_the_same_fitted_routing():
    shape = {"num_layers": 2, "num_experts": 16, "top_k": 2}
    one, two = (load_routing("fitted:gpt-oss-20b", rng=np.random.default_rng(5), **shape) for _ in range(2))
    other = load_routing("fitted:gpt-oss-20b", rng=np.random.default_rng(6), **shape)
    assert np.array_equal(one.expert_ids, two.expert_ids)
    assert not np.array_equal(one.expert_ids, other.expert_ids[: one.num_tokens])


def test_a_path_is_read_and_checked_against_the_model(tmp_path):
    path = str(tmp_path / "mine.npz")
    write_routing_file(path, RoutingTrace("t", np.zeros((3, 2, 1), int), 4, 1, np.array([3]), "made up"))
    assert load(path, num_layers=2, num_experts=4, top_k=1).num_tokens == 3
    with pytest.raises(InputError, match=r"\(2, 4, 1\) but the model has \(24, 32, 4\); use fitted:"):
        load(path)


def test_replay_of_another_shape_names_the_fit_to_use_instead():
    with pytest.raises(InputError, match="use fitted:qwen3-30b-a3b, which"):
        load("replay:qwen3-30b-a3b-top6", num_layers=48, num_experts=128, top_k=8)
    with pytest.raises(InputError, match="use fitted:gpt-oss-20b, which"):
        load("replay:gemma4-26b-a4b-top6", num_layers=30, num_experts=128, top_k=8)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", "is not known; give replay:NAME"),
        ("gpt-oss-20b", "is not known"),
        ("replay:", "replay: knows gpt-oss-20b"),
        ("replay:nothing", "replay: knows gpt-oss-20b"),
        ("fitted:nothing", "fitted: knows gpt-oss-20b, qwen3-30b-a3b"),
        ("no/such.npz", "cannot read routing trace"),
    ],
)
def test_names_that_lead_nowhere_are_refused(spec, message):
    with pytest.raises(InputError, match=message):
        load(spec)


def test_a_shipped_trace_can_be_had_without_a_model():
    assert load_shipped_trace("gpt-oss-120b-top2").top_k == 2
