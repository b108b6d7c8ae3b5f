"""Whole runs of tiny scenarios: what happens when, and what can never happen."""

import math
from bisect import bisect_right
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hideaway.sim.events import (
    LayerDone,
    LayerRouted,
    Ready,
    RequestArrived,
    TransfersArrived,
    TransfersCancelled,
)
from hideaway.sim.inputs.scenario import BASELINES
from hideaway.sim.masks import experts_of
from hideaway.sim.timeline import Timeline
from hideaway.sim.world.memory import split_memory
from hideaway.sim.world.simulate import simulate
from hideaway.sim.world.world import World
from tests.tiny import (
    ATTENTION,
    COPY,
    DRAFT,
    EACH,
    GROUP,
    REST,
    ROUND_TRIP,
    ROUTER,
    random_trace,
    tiny_inputs,
    tiny_scenario,
    tiny_trace,
)

ROUTED = ATTENTION + ROUTER
"""From the start of a layer to its routed set."""


def run(trace, requests, *, acceptance="constant:2", values=None, timeline=None, **fields):
    inputs = tiny_inputs(trace, requests, acceptance=acceptance, **(values or {}))
    return simulate(tiny_scenario(**fields), inputs=inputs, timeline=timeline)


def log_of(timeline, track):
    """Return the records of a track in order of time, as (kind, start, end, ...)."""
    records = sorted(timeline.on_track(track), key=lambda r: (r.start_seconds, -r.end_seconds))
    return [(r.kind, r.layer, pytest.approx(r.start_seconds), pytest.approx(r.end_seconds)) for r in records]


def phases_of(timeline, seq_id):
    """Return what a sequence did, as (kind, start, end)."""
    records = [r for r in timeline.on_track("sequence") if r.seq_ids == (seq_id,)]
    return [(r.kind, pytest.approx(r.start_seconds), pytest.approx(r.end_seconds)) for r in records]


# One layer of three experts; a prompt of one token reads the token before the sequence, the last of the trace.
ONE_LAYER = tiny_trace([[[0]], [[1]], [[1]], [[2]], [[2]], [[0]]], num_experts=3)


def test_decode_on_demand_step_by_step():
    timeline = Timeline()
    found = run(ONE_LAYER, [(0.0, 1, 3)], baseline="B0", slots=1, prefetch="none", timeline=timeline)
    miss = ROUTED + ROUND_TRIP + COPY + GROUP + EACH
    hit = ROUTED + ROUND_TRIP + GROUP + EACH
    ends = [miss + REST, 2 * miss + 2 * REST, 2 * miss + hit + 3 * REST]
    assert phases_of(timeline, 0) == [
        ("waiting", 0.0, 0.0),
        ("prefill", 0.0, ends[0]),
        ("decode", ends[0], ends[1]),
        ("decode", ends[1], ends[2]),
    ]
    start, asked = ends[0], ends[0] + ROUTED + ROUND_TRIP
    assert [entry for entry in log_of(timeline, "compute") if ends[0] <= entry[2].expected < ends[1]] == [
        ("attention", 0, start, start + ROUTED),
        ("sync", 0, start + ROUTED, asked),
        ("experts", 0, asked, asked + COPY + GROUP + EACH),
        ("wait", 0, asked, asked + COPY),
        ("head", -1, start + miss, ends[1]),
    ]
    assert log_of(timeline, "link") == [
        ("copy", 0, ROUTED + ROUND_TRIP, ROUTED + ROUND_TRIP + COPY),
        ("copy", 0, asked, asked + COPY),
    ]
    assert found.metrics["makespan_seconds"] == pytest.approx(ends[2])
    assert found.metrics["exposed_seconds"] == pytest.approx(2 * COPY)
    assert found.metrics["sync_seconds"] == pytest.approx(3 * ROUND_TRIP)


def test_draft_and_verify_step_by_step():
    timeline = Timeline()
    found = run(
        ONE_LAYER, [(0.0, 1, 5)], baseline="B1", slots=2, prefetch="none", block_size=2, timeline=timeline
    )
    asked = ROUTED + ROUND_TRIP
    first = asked + COPY + GROUP + EACH + REST
    # The first round reads tokens 1 and 2, both expert 1; the second tokens 3 and 4, both expert 2.
    second = first + DRAFT + asked + COPY + GROUP + EACH + REST
    third = second + DRAFT + asked + COPY + GROUP + EACH + REST
    assert phases_of(timeline, 0) == [
        ("waiting", 0.0, 0.0),
        ("prefill", 0.0, first),
        ("draft", first, first + DRAFT),
        ("verify", first + DRAFT, second),
        ("draft", second, second + DRAFT),
        ("verify", second + DRAFT, third),
    ]
    assert found.metrics["acceptance_length_a"] == 2.0
    assert found.metrics["per_round_latency_seconds"] == pytest.approx(second - first)
    assert found.metrics["draft_seconds"] == pytest.approx(2 * DRAFT)


def test_the_route_pass_follows_the_draft_and_its_copies_begin_before_verify():
    timeline = Timeline()
    run(ONE_LAYER, [(0.0, 1, 3)], baseline="B2", slots=2, block_size=2, timeline=timeline)
    first = ROUTED + ROUND_TRIP + COPY + GROUP + EACH + REST
    routed = first + DRAFT + ROUTER
    assert ("route", -1, first + DRAFT, routed) in log_of(timeline, "compute")
    assert log_of(timeline, "link")[-1] == ("copy", 0, routed, routed + COPY)
    hit = ROUTED + ROUND_TRIP + GROUP + EACH + REST
    assert phases_of(timeline, 0)[-1] == ("verify", routed, routed + hit)


def test_a_deep_route_pass_spares_verify_its_attention_when_told_so():
    trace = random_trace(3)
    both = [
        run(trace, [(0.0, 5, 9)], baseline="OURS-oracle", slots=3, verify_reuses_route=reuses).metrics
        for reuses in (False, True)
    ]
    saved = [metrics["makespan_seconds"] for metrics in both]
    assert both[0]["rounds"] == both[1]["rounds"] == 4
    assert saved[1] < saved[0]
    assert both[0]["route_seconds"] == both[1]["route_seconds"] == pytest.approx(4 * 2 * (ATTENTION + ROUTER))


@pytest.mark.parametrize(("baseline", "prefetch"), [("B1", "previous-token"), ("B0", "route-ahead")])
def test_without_a_route_pass_verify_pays_its_attention_whatever_the_depth(baseline, prefetch):
    fields = {"baseline": baseline, "prefetch": prefetch, "slots": 3, "verify_reuses_route": True}
    shallow, deep = (
        run(random_trace(3), [(0.0, 5, 9)], router_exact_depth=depth, lookahead=0, **fields).metrics
        for depth in (1, 2)
    )
    assert deep == shallow


def test_a_long_prompt_goes_through_chunk_by_chunk_and_pays_its_union_each_time():
    timeline = Timeline()
    trace = random_trace(1)
    found = run(
        trace,
        [(0.0, 23, 2)],
        baseline="B0",
        slots=3,
        prefetch="none",
        prefill_chunk_tokens=10,
        timeline=timeline,
    )
    assert [kind for kind, _, _ in phases_of(timeline, 0)] == [
        "waiting",
        "prefill",
        "prefill",
        "prefill",
        "decode",
    ]
    assert found.metrics["forwards"] == 4
    assert found.metrics["ttft_seconds"] == pytest.approx(phases_of(timeline, 0)[3][2].expected)


def test_prompts_join_the_forwards_of_running_sequences_one_chunk_at_a_time():
    timeline = Timeline()
    run(
        random_trace(1),
        [(0.0, 4, 9), (0.0, 8, 3)],
        baseline="B0",
        slots=3,
        concurrency=2,
        prefill_chunk_tokens=4,
        timeline=timeline,
    )
    steps = {}
    for record in timeline.on_track("sequence"):
        if record.kind != "waiting":
            steps.setdefault(record.step, []).append((record.kind, *record.seq_ids))
    assert [sorted(steps[step]) for step in range(4)] == [
        [("prefill", 0)],
        [("decode", 0), ("prefill", 1)],
        [("decode", 0), ("prefill", 1)],
        [("decode", 0), ("decode", 1)],
    ]


def test_in_a_closed_loop_the_next_request_enters_when_one_finishes():
    found = run(
        random_trace(2),
        [(0.0, 3, 2), (0.0, 3, 9), (50.0, 3, 2), (90.0, 3, 2)],
        baseline="B0",
        slots=3,
        concurrency=2,
    )
    times = found.meter.requests
    assert times[2].arrival_seconds == times[0].finish_seconds > 0.0
    assert times[3].arrival_seconds == min(times[1].finish_seconds, times[2].finish_seconds)
    assert found.inputs.requests[3].arrival_seconds == 90.0, "a closed loop takes the lengths only"


def test_in_an_open_loop_requests_enter_at_their_own_times_and_wait_for_a_seat():
    timeline = Timeline()
    found = run(
        random_trace(2),
        [(5.0, 3, 4), (6.0, 3, 2), (400.0, 3, 2)],
        baseline="B0",
        slots=3,
        open_loop=True,
        max_sequences=1,
        timeline=timeline,
    )
    times = found.meter.requests
    assert [times[seq_id].arrival_seconds for seq_id in range(3)] == [5.0, 6.0, 400.0]
    assert times[0].admission_seconds == 5.0
    assert times[1].admission_seconds == times[0].finish_seconds
    assert phases_of(timeline, 1)[0] == ("waiting", 6.0, times[0].finish_seconds)
    assert times[2].admission_seconds == 400.0, "an idle engine begins at once"


def test_requests_that_arrive_at_one_instant_are_all_there_before_the_next_iteration():
    timeline = Timeline()
    requests = [(3.0, 2, 3), (3.0, 2, 3), (3.0, 2, 3)]
    run(random_trace(2), requests, baseline="B0", slots=3, open_loop=True, timeline=timeline)
    assert [phases_of(timeline, seq_id)[0] for seq_id in range(3)] == [("waiting", 3.0, 3.0)] * 3


@pytest.mark.parametrize("before", [0, 1, 5])
def test_a_request_that_arrives_as_a_forward_ends_joins_the_next(before):
    alone = run(random_trace(2), [(0.0, 2, 6)], baseline="B0", slots=3, open_loop=True)
    end = alone.meter.requests[0].first_token_seconds
    between = [(end * (index + 1) / 10, 2, 1) for index in range(before)]
    requests = [(0.0, 2, 6), *between, (end, 2, 3)]
    found = run(random_trace(2), requests, baseline="B0", slots=3, open_loop=True)
    assert found.meter.requests[len(requests) - 1].admission_seconds == end


def test_a_resident_model_takes_exactly_the_sum_of_its_costs():
    trace = random_trace(4)
    found = run(trace, [(0.0, 6, 8)], baseline="B3", acceptance="constant:3", rejected_routing="true")
    costs, table = found.inputs.costs, found.inputs.table
    start = 30 if np.random.default_rng([1408, 1, 0]).integers(2) else 0

    def forward(first, rows, context):
        needed = table.unions(np.array([first]), np.array([rows]))
        layers = sum(
            costs.dense_seconds(rows, [(rows, context)])
            + costs.router_seconds(rows)
            + costs.experts_seconds(mask.bit_count(), rows * 2)
            for mask in needed
        )
        return layers + costs.other_seconds(rows, rows) + costs.iteration_seconds

    expected, committed = forward(start - 6, 6, 6), 1
    while committed < 8:
        expected += costs.draft_seconds(1, 4) + forward(start + committed, 4, 6 + committed)
        committed += 3
    assert found.metrics["makespan_seconds"] == pytest.approx(expected, rel=1e-12)
    assert found.metrics["exposed_seconds"] == found.metrics["sync_seconds"] == 0.0
    assert found.metrics["moved_bytes"] == 0.0
    assert found.metrics["expert_cache_hit_rate"] == 1.0


def recorded_world(trace, requests, *, acceptance="constant:2", timeline=None, values=None, **fields):
    """Run a world and return it, every event its scheduler was told, and what was resident at the start."""
    inputs = tiny_inputs(trace, requests, acceptance=acceptance, **(values or {}))
    scenario = tiny_scenario(**fields)
    baseline = BASELINES[scenario.baseline]
    world = World(
        scenario, inputs, baseline, split_memory(scenario, baseline, inputs.costs), timeline=timeline
    )
    events, handle = [], world.scheduler.handle
    world.scheduler.handle = lambda event: (events.append(event), handle(event))[1]
    resident = list(world.scheduler.cache.residency.resident)
    world.run()
    return world, events, resident


requests = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 9)), min_size=1, max_size=5)
anything = st.fixed_dictionaries(
    {
        "baseline": st.sampled_from(sorted(BASELINES)),
        "slots": st.integers(1, 5),
        "block_size": st.integers(1, 5),
        "eviction": st.sampled_from(["lru", "aged-lfu", "static"]),
        "prefetch": st.sampled_from(
            [None, "none", "previous-token", "previous-union", "route-ahead", "cross-round"]
        ),
        "admission": st.sampled_from([None, "all", "token-deficit", "deficit-2d"]),
        "lookahead": st.integers(0, 2),
        "router_exact_depth": st.sampled_from([None, 1, 2]),
        "recall": st.sampled_from([None, 0.0, 0.5, 1.0]),
        "precision": st.sampled_from([None, 0.1, 1.0]),
        "issue": st.sampled_from(["single", "batched"]),
        "submitted_depth": st.integers(1, 3),
        "staging_slots": st.integers(1, 3),
        "prefill_chunk_tokens": st.integers(2, 15),
        "rejected_routing": st.sampled_from(["same-sequence", "other-sequence", "true"]),
        "verify_reuses_route": st.booleans(),
        "page_cache_bytes": st.sampled_from([None, None, 3000]),
        "seed": st.integers(0, 99),
    }
)
loops = st.sampled_from([{"concurrency": 1}, {"concurrency": 3}, {"open_loop": True, "max_sequences": 2}])
machines = st.fixed_dictionaries(
    {
        "contention__compute_slowdown": st.sampled_from([0.0, 0.25]),
        "contention__link_slowdown": st.sampled_from([0.0, 0.5]),
        "issue__seconds_per_call": st.sampled_from([0.0, 0.25, 1.5]),
        "memory__device_bytes": st.sampled_from([1e9, 16_027.0]),
        "kv_bytes_per_token": st.sampled_from([1, 100]),
        "pageable": st.booleans(),
    }
)


def timed(lengths, gap):
    return [(index * gap, *pair) for index, pair in enumerate(lengths)]


@given(anything, loops, machines, requests, st.sampled_from([0.0, 3.7]), st.integers(0, 50))
def test_every_run_keeps_time_and_serves_every_token(fields, loop, values, lengths, gap, seed):
    timeline = Timeline()
    world, events, _ = recorded_world(
        random_trace(seed),
        timed(lengths, gap),
        acceptance="rate:0.6",
        timeline=timeline,
        values=values,
        **fields,
        **loop,
    )
    meter = world.meter
    assert [times.output_tokens for times in meter.requests.values()] == [output for _, output in lengths]
    recomputed = world.scheduler.batch.preemptions
    served = sum(output for _, output in lengths)
    assert meter.round_tokens + len(lengths) <= served <= meter.round_tokens + len(lengths) + recomputed
    for times in meter.requests.values():
        assert (
            times.arrival_seconds
            <= times.admission_seconds
            < times.first_token_seconds
            <= times.finish_seconds
        )
    told = [event.at_seconds for event in events if not isinstance(event, RequestArrived)]
    assert told == sorted(told), "time never goes back"
    now = 0.0
    for event in events:
        if isinstance(event, RequestArrived):
            assert event.at_seconds >= now - 1e-9
        elif isinstance(event, Ready):
            now = event.at_seconds
    assert_tracks_are_serial(timeline)


def assert_tracks_are_serial(timeline):
    """Compute, link, issue thread and each sequence do one thing at a time; waits lie inside expert phases."""
    lanes = {}
    for record in timeline:
        assert 0.0 <= record.start_seconds <= record.end_seconds
        if record.track != "counter" and record.kind != "wait":
            lanes.setdefault((record.track, record.seq_ids if record.track == "sequence" else ()), []).append(
                record
            )
    for lane, records in lanes.items():
        records.sort(key=lambda r: (r.start_seconds, r.end_seconds))
        for before, after in pairwise(records):
            assert after.start_seconds >= before.end_seconds - 1e-9, lane
    experts = [r for r in timeline.on_track("compute") if r.kind == "experts"]
    for wait in timeline.on_track("compute"):
        if wait.kind == "wait":
            assert any(
                r.start_seconds - 1e-9 <= wait.start_seconds
                and wait.end_seconds <= r.end_seconds + 1e-9
                and (r.step, r.layer) == (wait.step, wait.layer)
                for r in experts
            )


@given(anything, loops, machines, requests, st.integers(0, 50))
def test_every_expert_a_visit_reads_was_resident_or_copied_before_the_visit_ended(
    fields, loop, values, lengths, seed
):
    timeline = Timeline()
    _, events, resident = recorded_world(
        random_trace(seed),
        timed(lengths, 0.0),
        acceptance="rate:0.6",
        timeline=timeline,
        values=values,
        **fields,
        **loop,
    )
    copies = {}
    for record in timeline.on_track("link"):
        copies.setdefault((record.layer, record.experts), []).append(record.end_seconds)
    for index, event in enumerate(events):
        if isinstance(event, LayerRouted):
            done = next(later for later in events[index:] if isinstance(later, LayerDone))
            assert done.layer == event.layer
            for expert in experts_of(event.needed & ~resident[event.layer]):
                assert any(end <= done.at_seconds + 1e-9 for end in copies[event.layer, 1 << expert])


@given(anything, loops, machines, requests, st.integers(0, 50))
def test_a_run_that_is_logged_is_the_run_that_is_not(fields, loop, values, lengths, seed):
    trace = random_trace(seed)
    quiet, logged = (
        run(
            trace,
            timed(lengths, 2.5),
            acceptance="rate:0.6",
            values=values,
            timeline=timeline,
            **fields,
            **loop,
        )
        for timeline in (None, Timeline())
    )
    for name, value in quiet.metrics.items():
        assert logged.metrics[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name


@given(
    requests,
    st.integers(0, 50),
    st.integers(1, 5),
    st.floats(1000.0, 10_000.0),
    st.floats(1.0, 20.0),
    st.sampled_from(["B0", "B1"]),
    st.sampled_from(["lru", "aged-lfu", "static"]),
    st.sampled_from(["single", "batched"]),
)
def test_more_bandwidth_never_raises_the_makespan_of_one_sequence_without_prefetch(
    lengths, seed, slots, bandwidth, factor, baseline, eviction, issue
):
    """Which experts a visit finds then depends on the order of visits only, not on time, and copies only end sooner.

    With prefetch, several sequences or contention this need not hold: what is seated or evicted then depends on time.
    """
    slow, fast = (
        run(
            random_trace(seed),
            timed(lengths, 0.0),
            acceptance="rate:0.6",
            values={"link__h2d_bytes_per_second": rate, "issue__seconds_per_call": 0.25},
            baseline=baseline,
            slots=slots,
            prefetch="none",
            eviction=eviction,
            issue=issue,
            concurrency=1,
        ).metrics
        for rate in (bandwidth, bandwidth * factor)
    )
    assert fast["makespan_seconds"] <= slow["makespan_seconds"] * (1 + 1e-12)
    assert fast["moved_bytes"] == slow["moved_bytes"]


def test_a_draft_is_slower_beside_a_busy_link():
    """From the second round on the kept row's expert was streamed for want of a slot; the draft sees it copied."""
    trace = tiny_trace([[[1 + token % 2]] for token in range(20)], num_experts=3)
    timeline = Timeline()
    run(
        trace,
        [(0.0, 1, 6)],
        baseline="B1",
        slots=1,
        block_size=2,
        acceptance="constant:1",
        rejected_routing="true",
        prefetch="cross-round",
        lookahead=0,
        values={"contention__compute_slowdown": 0.5},
        timeline=timeline,
    )
    drafts = [r for r in timeline.on_track("compute") if r.kind == "draft"]
    lengths = [draft.end_seconds - draft.start_seconds for draft in drafts]
    slowed_draft = COPY + DRAFT - COPY / 1.5
    assert lengths == [pytest.approx(DRAFT)] * 2 + [pytest.approx(slowed_draft)] * 3


def test_predictions_that_name_every_expert_still_fit_the_deficit_cap():
    found = run(
        random_trace(0), [(0.0, 2, 30)], baseline="OURS", slots=2, block_size=1, precision=0.1, recall=1.0
    )
    assert found.metrics["rounds"] == 29


def test_when_memory_for_caches_runs_out_the_youngest_is_recomputed_and_everybody_finishes():
    timeline = Timeline()
    found = run(
        random_trace(5),
        [(0.0, 20, 30), (0.0, 20, 30), (0.0, 20, 30)],
        baseline="B1",
        slots=3,
        concurrency=3,
        values={"memory__device_bytes": 8000 + 2.0 + 120},
        timeline=timeline,
    )
    assert found.metrics["preemptions"] > 0
    assert found.metrics["kv_occupancy_bytes_peak"] <= found.memory.kv_bytes == 120
    assert [kind for kind, _, _ in phases_of(timeline, 2)].count("waiting") > 1
    assert any("preempted" in warning for warning in found.warnings)
    assert_tracks_are_serial(timeline)
    assert all(math.isfinite(times.finish_seconds) for times in found.meter.requests.values())


@given(anything, loops, machines, requests, st.integers(0, 50))
def test_every_prefetch_that_has_landed_is_heard_before_the_next_decision(
    fields, loop, values, lengths, seed
):
    timeline = Timeline()
    _, events, _ = recorded_world(
        random_trace(seed),
        timed(lengths, 0.0),
        acceptance="rate:0.6",
        timeline=timeline,
        values=values,
        **fields,
        **loop,
    )
    landings = sorted(r.end_seconds for r in timeline.on_track("link") if r.band > 0)
    heard = 0
    for event in events:
        if isinstance(event, TransfersArrived):
            heard += sum(mask.bit_count() for _, mask in event.arrivals)
        elif not isinstance(event, RequestArrived | TransfersCancelled):
            assert heard == bisect_right(landings, event.at_seconds)


def test_a_requests_rows_and_acceptance_do_not_depend_on_who_else_runs():
    lengths = [(0.0, 5, 12), (0.0, 7, 10), (0.0, 3, 14)]
    rounds = []
    for concurrency in (1, 3):
        timeline = Timeline()
        run(
            random_trace(7),
            lengths,
            acceptance="rate:0.7",
            baseline="B1",
            slots=3,
            concurrency=concurrency,
            timeline=timeline,
        )
        kinds = [[kind for kind, _, _ in phases_of(timeline, seq_id)] for seq_id in range(3)]
        rounds.append([phases.count("verify") for phases in kinds])
    assert rounds[0] == rounds[1]


@settings(max_examples=10)
@given(st.integers(0, 1000))
def test_the_same_seed_gives_the_same_run_and_the_same_timeline(seed):
    runs = []
    for _ in range(2):
        timeline = Timeline()
        found = run(
            random_trace(8),
            timed([(5, 9)] * 4, 1.5),
            acceptance="rate:0.6",
            baseline="OURS",
            slots=3,
            open_loop=True,
            seed=seed,
            timeline=timeline,
        )
        runs.append((found.metrics, list(timeline)))
    assert runs[0] == runs[1]
