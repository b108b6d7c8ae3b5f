"""The cost model: affine and roofline operations, in the units of the profile."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.costs import CostModel, LinkCosts
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.models import load_model
from hideaway.sim.inputs.profiles import (
    DENSE_READ,
    OPTIONAL_PARAMETERS,
    SERIAL_SHARE,
    builtin_profile_names,
    load_profile,
)

MODEL = load_model("gpt-oss-20b")
PROFILE = load_profile("rtx-pro-6000")
RATES = [
    "memory.read_bytes_per_second",
    "compute.flops_per_second",
    "compute.expert_flops_per_second",
    "link.h2d_bytes_per_second",
    "link.pageable_bytes_per_second",
]
TIMES = [name for name, parameter in PROFILE.parameters.items() if parameter.unit == "seconds"]

rows = st.integers(1, 20_000)
contexts = st.lists(st.tuples(st.integers(1, 64), st.integers(0, 50_000)), max_size=4)


def costs_with(model=MODEL, launch="eager", pageable=False, **values):
    named = {name.replace("__", "."): value for name, value in values.items()}
    return CostModel(model, PROFILE.with_values(named), launch=launch, pageable=pageable)


def seconds_of(costs, num_rows=100, context=((8, 3000),)):
    """Return every operation's seconds."""
    return {
        "dense": costs.dense_seconds(num_rows, context),
        "router": costs.router_seconds(num_rows),
        "experts": costs.experts_seconds(7, num_rows),
        "other": costs.other_seconds(num_rows, num_rows),
        "draft": costs.draft_seconds(3, 8),
        "route": costs.route_seconds(num_rows, 5),
        "floor": costs.forward_floor_seconds(num_rows, 20, 4),
        "copy": costs.link.copy_seconds(10**6),
        "issue": costs.issue_seconds(9, batched=False),
        "batch": costs.issue_seconds(9, batched=True),
    }


@pytest.mark.parametrize("launch", ["eager", "graph"])
@pytest.mark.parametrize("pageable", [False, True])
def test_a_machine_twice_as_fast_in_everything_takes_half_of_every_operation(launch, pageable):
    slow = CostModel(MODEL, PROFILE, launch=launch, pageable=pageable)
    twice = {name: 2 * PROFILE.value(name) for name in RATES}
    twice |= {name: PROFILE.value(name) / 2 for name in TIMES}
    fast = CostModel(MODEL, PROFILE.with_values(twice), launch=launch, pageable=pageable)
    for name, seconds in seconds_of(slow).items():
        assert seconds_of(fast)[name] == pytest.approx(seconds / 2, rel=1e-12), name
    assert fast.round_trip_seconds == slow.round_trip_seconds / 2
    assert fast.iteration_seconds == slow.iteration_seconds / 2


@given(rows, st.integers(0, 5000), contexts, contexts)
def test_more_rows_or_more_context_never_takes_less_time(few, more, context, added):
    costs = CostModel(MODEL, PROFILE)
    many = few + more
    assert costs.dense_seconds(many, context + added) >= costs.dense_seconds(few, context)
    assert costs.router_seconds(many) >= costs.router_seconds(few)
    assert costs.other_seconds(many, many) >= costs.other_seconds(few, few)
    assert costs.head_seconds(many) >= costs.head_seconds(few)
    assert costs.route_seconds(many, 3) >= costs.route_seconds(few, 3)
    assert costs.draft_seconds(many, 8) >= costs.draft_seconds(few, 8)


@given(st.integers(0, 128), st.integers(0, 128), st.integers(0, 1000), st.integers(0, 1000))
def test_expert_work_is_affine_in_experts_and_rows(experts, more_experts, pairs, more_pairs):
    costs = CostModel(MODEL, PROFILE)
    floor = PROFILE.value("expert.group_launch_seconds")
    each = PROFILE.value("expert.launch_seconds")
    each += MODEL.expert_bytes / PROFILE.value("memory.read_bytes_per_second")
    row = MODEL.expert_flops_per_row / PROFILE.value("compute.expert_flops_per_second")
    wanted = floor + experts * each + pairs * row if experts else 0.0
    assert costs.experts_seconds(experts, pairs) == pytest.approx(wanted, rel=1e-12)
    larger = costs.experts_seconds(experts + more_experts, pairs + more_pairs)
    assert larger >= costs.experts_seconds(experts, pairs)


def test_computing_no_expert_launches_nothing():
    assert CostModel(MODEL, PROFILE).experts_seconds(0, 0) == 0.0


def test_few_rows_cost_the_reading_of_the_weights():
    costs = costs_with(compute__layer_launch_seconds=0.0)
    read = MODEL.dense_bytes_per_layer - MODEL.router_bytes_per_layer
    assert costs.dense_seconds(1) == pytest.approx(read / 1597e9, rel=1e-12)
    assert costs.dense_seconds(2) == costs.dense_seconds(1)


def test_many_rows_cost_their_multiplications():
    costs = costs_with(compute__layer_launch_seconds=0.0)
    per_row = MODEL.dense_flops_per_row - MODEL.router_bytes_per_layer
    assert costs.dense_seconds(10_000) == pytest.approx(
        10_000 * per_row / PROFILE.value("compute.flops_per_second"), rel=1e-12
    )


def test_the_roof_bends_where_reading_and_multiplying_take_the_same_time():
    costs = costs_with(compute__layer_launch_seconds=0.0)
    read = MODEL.dense_bytes_per_layer - MODEL.router_bytes_per_layer
    per_row = MODEL.dense_flops_per_row - MODEL.router_bytes_per_layer
    bend = read / 1597e9 * PROFILE.value("compute.flops_per_second") / per_row
    assert costs.dense_seconds(int(bend)) == costs.dense_seconds(1)
    assert costs.dense_seconds(int(bend) + 1) > costs.dense_seconds(1)


def test_the_router_is_counted_once_between_router_and_dense_part():
    costs = costs_with(compute__layer_launch_seconds=0.0, router__launch_seconds=0.0)
    both = costs.dense_seconds(1) + costs.router_seconds(1)
    assert both == pytest.approx(MODEL.dense_bytes_per_layer / 1597e9, rel=1e-12)


def test_each_sequence_reads_its_own_cache_once_however_many_rows_it_has():
    costs = costs_with(compute__layer_launch_seconds=0.0)
    without = costs.dense_seconds(1)
    read = MODEL.kv_bytes(5000) / len(MODEL.layer_kinds) / 1597e9
    assert costs.dense_seconds(1, [(1, 5000)]) == pytest.approx(without + read, rel=1e-12)
    assert costs.dense_seconds(8, [(8, 5000)]) == pytest.approx(without + read, rel=1e-12)
    assert costs.dense_seconds(2, [(1, 5000)] * 2) == pytest.approx(without + 2 * read, rel=1e-12)


def test_a_captured_graph_launches_a_layer_cheaper_than_eager_code():
    eager, graph = costs_with(launch="eager"), costs_with(launch="graph")
    saved = PROFILE.value("compute.layer_launch_seconds") - PROFILE.value(
        "compute.layer_launch_seconds_graph"
    )
    assert eager.dense_seconds(1) - graph.dense_seconds(1) == pytest.approx(saved, rel=1e-9)


def test_an_unknown_launch_is_refused():
    with pytest.raises(InputError, match="launch is 'lazy'; it must be one of eager, graph"):
        costs_with(launch="lazy")


def test_pageable_copies_take_the_pageable_figures_and_hold_the_issue_thread():
    assert costs_with(pageable=True).link == LinkCosts(
        issue_seconds=PROFILE.value("link.pageable_issue_seconds"),
        batch_seconds=PROFILE.value("issue.batch_seconds"),
        batch_transfer_seconds=PROFILE.value("issue.batch_seconds_per_transfer"),
        latency_seconds=PROFILE.value("link.latency_seconds"),
        bytes_per_second=PROFILE.value("link.pageable_bytes_per_second"),
        holds_issue_thread=True,
    )
    assert not costs_with().link.holds_issue_thread


def test_a_copy_is_latency_and_bytes_over_bandwidth():
    assert LinkCosts(9.0, 9.0, 9.0, 0.5, 100.0, False).copy_seconds(250) == 3.0
    assert costs_with().transfer_seconds(10**9) == costs_with().link.copy_seconds(10**9)


def test_issuing_a_batch_costs_one_call_and_a_little_for_each_transfer():
    costs = costs_with(
        issue__seconds_per_call=1e-3, issue__batch_seconds=2e-3, issue__batch_seconds_per_transfer=1e-5
    )
    assert costs.issue_seconds(768, batched=False) == pytest.approx(0.768)
    assert costs.issue_seconds(768, batched=True) == pytest.approx(0.00968)
    assert costs.issue_seconds(0, batched=True) == costs.issue_seconds(0, batched=False) == 0.0


def test_a_block_without_drafts_needs_no_drafter():
    costs = CostModel(MODEL, PROFILE)
    assert costs.draft_seconds(5, 1) == costs.draft_seconds(0, 8) == 0.0


def test_a_draft_reads_drafter_and_head_once_for_all_sequences():
    costs = costs_with(draft__launch_seconds=0.0)
    read = (2 * 0.8e9 + MODEL.head_bytes) / 1597e9
    assert costs.draft_seconds(1, 8) == costs.draft_seconds(4, 8) == pytest.approx(read, rel=1e-12)


def test_a_route_pass_that_predicts_runs_the_routers_and_no_attention():
    costs = CostModel(MODEL, PROFILE)
    assert (
        costs.route_seconds(64, 1) == costs.route_seconds(64, 1, [(8, 9000)]) == 24 * costs.router_seconds(64)
    )


@given(st.integers(2, MODEL.num_layers), st.integers(1, 500), contexts)
def test_a_deep_route_pass_adds_attention_of_every_layer_it_is_exact_in(depth, num_rows, context):
    costs = CostModel(MODEL, PROFILE)
    attention = depth * costs.dense_seconds(num_rows, context)
    wanted = 24 * costs.router_seconds(num_rows) + attention
    assert costs.route_seconds(num_rows, depth, context) == pytest.approx(wanted, rel=1e-12)


def test_layers_without_experts_are_launched_and_read_once_a_forward():
    model = replace(
        MODEL,
        num_dense_layers=3,
        layer_kinds=("full",) * 27,
        extra_dense_layer_bytes=3_000_000_000,
        head_bytes=0,
        vocab_size=0,
    )
    costs = costs_with(model)
    wanted = 3 * PROFILE.value("compute.layer_launch_seconds") + 3e9 / 1597e9
    assert costs.other_seconds(1, 1) == pytest.approx(wanted, rel=1e-12)


def test_the_floor_of_a_forward_is_the_sum_of_its_parts():
    costs = CostModel(MODEL, PROFILE)
    layer = costs.dense_seconds(64) + costs.router_seconds(64) + costs.experts_seconds(20, 64 * 4)
    wanted = 24 * layer + costs.other_seconds(64, 64) + costs.iteration_seconds
    assert costs.forward_floor_seconds(64, 20, 4) == pytest.approx(wanted, rel=1e-12)


def with_optional(**values):
    named = {name.replace("__", "."): value for name, value in values.items()}
    return CostModel(MODEL, PROFILE.with_values(named))


@pytest.mark.parametrize("name", builtin_profile_names())
@given(num_rows=rows, context=contexts)
def test_shipped_profiles_have_no_optional_parameter_and_cost_what_they_would_with_the_defaults(
    name, num_rows, context
):
    profile = load_profile(name)
    assert not set(profile.parameters) & set(OPTIONAL_PARAMETERS)
    spelled_out = profile.with_values(
        {DENSE_READ: profile.value("memory.read_bytes_per_second"), SERIAL_SHARE: 0.0}
    )
    plain = seconds_of(CostModel(MODEL, profile), num_rows, context)
    assert seconds_of(CostModel(MODEL, spelled_out), num_rows, context) == plain  # to the last bit


@given(num_rows=rows, context=contexts)
def test_a_dense_read_rate_of_its_own_changes_dense_work_and_leaves_experts_alone(num_rows, context):
    rate = PROFILE.value("memory.read_bytes_per_second")
    own = seconds_of(with_optional(memory__dense_read_bytes_per_second=2 * rate), num_rows, context)
    everywhere = seconds_of(costs_with(memory__read_bytes_per_second=2 * rate), num_rows, context)
    usual = seconds_of(costs_with(), num_rows, context)
    for operation in ("dense", "router", "other"):
        assert own[operation] == everywhere[operation]
    assert own["experts"] == usual["experts"] != everywhere["experts"]


@given(share=st.floats(0.0, 1.0), num_rows=rows)
def test_a_serial_share_adds_that_much_of_the_lesser_of_reading_and_multiplying(share, num_rows):
    read = MODEL.head_bytes / PROFILE.value("memory.read_bytes_per_second")
    multiply = 2 * MODEL.vocab_size * MODEL.hidden_size * num_rows / PROFILE.value("compute.flops_per_second")
    wanted = max(read, multiply) + share * min(read, multiply)
    assert with_optional(compute__serial_share=share).head_seconds(num_rows) == pytest.approx(wanted)


@given(num_rows=st.integers(1, 64), tokens=st.integers(1, 50_000))
def test_rates_of_its_own_for_the_context_are_paid_beside_the_weights(num_rows, tokens):
    read, compute = 1e9, 1e10
    costs = with_optional(attention__cache_read_bytes_per_second=read, attention__flops_per_second=compute)
    cache = MODEL.kv_read_bytes_per_row(tokens) / len(MODEL.layer_kinds)
    work = MODEL.attention_flops_per_row_per_context_token * num_rows * tokens
    wanted = costs_with().dense_seconds(num_rows) + cache / read + work / compute
    assert costs.dense_seconds(num_rows, [(num_rows, tokens)]) == pytest.approx(wanted)
    assert costs.dense_seconds(num_rows) == costs_with().dense_seconds(num_rows)
