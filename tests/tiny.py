"""A model and a machine so small that a run can be worked out by hand: every operation takes round seconds.

Attention takes 1 s, the router 0.25 s, the round trip 0.5 s, a group of experts 0.125 s and each expert in it
0.0625 s, a copy 1 s, a draft 2 s, and a forward another 0.75 s; issue costs nothing. Figures per byte and per
operation are zero or negligible (1e-15 s). From pageable memory a copy takes 0.25 s to issue as well, from an SSD
1.5 s more.
"""

from __future__ import annotations

import numpy as np

from hideaway.sim.costs import CostModel
from hideaway.sim.inputs.acceptance import load_acceptance
from hideaway.sim.inputs.arrivals import RequestSpec
from hideaway.sim.inputs.models import ModelSpec
from hideaway.sim.inputs.profiles import load_profile
from hideaway.sim.inputs.routing import RoutingTrace, UnionTable
from hideaway.sim.inputs.scenario import Scenario
from hideaway.sim.world.inputs import Inputs

EXPERT_BYTES = 1000
ATTENTION, ROUTER, ROUND_TRIP, GROUP, EACH, COPY, DRAFT, REST = 1.0, 0.25, 0.5, 0.125, 0.0625, 1.0, 2.0, 0.75

_VALUES = {
    "link.h2d_bytes_per_second": EXPERT_BYTES / COPY,
    "link.latency_seconds": 0.0,
    "link.pageable_bytes_per_second": EXPERT_BYTES / COPY,
    "link.pageable_issue_seconds": 0.25,
    "ssd.read_bytes_per_second": 1e18,
    "ssd.latency_seconds": 1.5,
    "issue.seconds_per_call": 0.0,
    "issue.batch_seconds": 0.0,
    "issue.batch_seconds_per_transfer": 0.0,
    "host.round_trip_seconds": ROUND_TRIP,
    "host.iteration_seconds": REST,
    "memory.device_bytes": 1e9,
    "memory.reserved_bytes": 0.0,
    "memory.read_bytes_per_second": 1e18,
    "compute.layer_launch_seconds": ATTENTION,
    "router.launch_seconds": ROUTER,
    "expert.group_launch_seconds": GROUP,
    "expert.launch_seconds": EACH,
    "draft.launch_seconds": DRAFT,
    "contention.compute_slowdown": 0.0,
    "contention.link_slowdown": 0.0,
}


def tiny_model(*, num_layers: int, num_experts: int, top_k: int, kv_bytes_per_token: int = 1) -> ModelSpec:
    """Return a model that weighs nothing but its experts and its KV cache."""
    return ModelSpec(
        name="tiny",
        aliases=(),
        num_layers=num_layers,
        num_dense_layers=0,
        num_experts=num_experts,
        top_k=top_k,
        hidden_size=1,
        expert_intermediate_size=1,
        expert_format="bf16",
        expert_bytes=EXPERT_BYTES,
        total_expert_bytes=num_layers * num_experts * EXPERT_BYTES,
        dense_bytes=0,
        layer_kinds=("full",) * num_layers,
        sliding_window_tokens=None,
        dense_bytes_per_layer=0,
        dense_flops_per_row=0,
        router_bytes_per_layer=0,
        attention_flops_per_row_per_context_token=0.0,
        head_bytes=0,
        vocab_size=0,
        expert_flops_per_row=0,
        extra_dense_layer_bytes=0,
        growing_cache_bytes_per_token=kv_bytes_per_token,
        sliding_cache_bytes_per_token=0,
        state_cache_bytes=0,
        num_parameters=1,
    )


def tiny_trace(choices, *, num_experts: int, seq_lengths=None) -> RoutingTrace:
    """Return a trace from `choices[token][layer]`, a list of experts each."""
    ids = np.array(choices, dtype=np.int16)
    lengths = np.array([len(ids)] if seq_lengths is None else seq_lengths)
    return RoutingTrace("made up", ids, num_experts, ids.shape[2], lengths, "made up for a test")


def random_trace(seed: int, *, num_tokens=60, num_layers=2, num_experts=6, top_k=2) -> RoutingTrace:
    """Return a trace of uniformly random experts in two sequences."""
    rng = np.random.default_rng(seed)
    choices = [
        [rng.choice(num_experts, size=top_k, replace=False) for _ in range(num_layers)]
        for _ in range(num_tokens)
    ]
    half = num_tokens // 2
    return tiny_trace(choices, num_experts=num_experts, seq_lengths=[half, num_tokens - half])


def tiny_inputs(
    trace: RoutingTrace,
    requests,
    *,
    acceptance="constant:2",
    kv_bytes_per_token=1,
    pageable=False,
    **values,
) -> Inputs:
    """Return what a run needs; `requests` are (arrival_seconds, input_tokens, output_tokens).

    `values` replace profile parameters, the dot of their names written as two underscores.
    """
    model = tiny_model(
        num_layers=trace.num_layers,
        num_experts=trace.num_experts,
        top_k=trace.top_k,
        kv_bytes_per_token=kv_bytes_per_token,
    )
    changed = {name.replace("__", "."): value for name, value in values.items()}
    profile = load_profile("rtx-pro-6000").with_values({**_VALUES, **changed})
    costs = CostModel(model, profile, drafter_parameters=1, pageable=pageable)
    specs = tuple(RequestSpec(*request) for request in requests)
    return Inputs(model, costs, trace, UnionTable(trace), load_acceptance(acceptance), specs)


def tiny_scenario(**fields) -> Scenario:
    """Return a closed loop of one sequence, one copy submitted at a time, unless said otherwise."""
    if not {"concurrency", "rate", "open_loop"} & set(fields):
        fields["concurrency"] = 1
    return Scenario(**{"drafter_parameters": 1.0, "submitted_depth": 1, "block_size": 4, **fields})
