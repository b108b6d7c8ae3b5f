"""The scheduler under random legal events, and answers to the few events that decide an iteration."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.admission import Deficit2D
from hideaway.sim.batch import Batch, BatchOptions
from hideaway.sim.commands import Band, Draft, Fetch, Forward, Idle, Route
from hideaway.sim.errors import HideawayError, IllegalEventError, InputError
from hideaway.sim.events import (
    DraftDone,
    ForwardDone,
    LayerDone,
    LayerRouted,
    LayersHit,
    Ready,
    RequestArrived,
    RequestFailed,
    RouteDone,
    TransfersArrived,
    TransfersCancelled,
)
from hideaway.sim.expert_cache import ExpertCache
from hideaway.sim.kv_pool import KvPool
from hideaway.sim.policies.admission.admit_all import AdmitAll
from hideaway.sim.policies.admission.deficit import DeficitAdmission
from hideaway.sim.policies.eviction.aged_lfu import AgedLfu
from hideaway.sim.policies.eviction.lru import Lru
from hideaway.sim.policies.eviction.static_hot_set import StaticHotSet
from hideaway.sim.policies.prefetch.base import NoPrefetch
from hideaway.sim.policies.prefetch.cross_round import CrossRound
from hideaway.sim.policies.prefetch.previous_token import PreviousToken
from hideaway.sim.policies.prefetch.previous_union import PreviousUnion
from hideaway.sim.policies.prefetch.route_ahead import RouteAhead
from hideaway.sim.residency import Residency
from hideaway.sim.scheduler import Scheduler, SchedulerOptions
from tests.fake_world import FakeWorld

LAYERS = 3
EXPERTS = 12
EXPERT_BYTES = 1000
PREFETCHES = {
    "none": NoPrefetch,
    "previous-token": lambda: PreviousToken(LAYERS),
    "previous-union": lambda: PreviousUnion(LAYERS, depth=2),
    "route-ahead": lambda: RouteAhead(LAYERS),
    "cross-round": lambda: CrossRound(RouteAhead(LAYERS, lookahead=2), layers=2),
}
EVICTIONS = {
    "lru": lambda: Lru(LAYERS, EXPERTS),
    "aged-lfu": lambda: AgedLfu(LAYERS, EXPERTS),
    "static": StaticHotSet,
}


def admissions(block):
    largest = Deficit2D(block, LAYERS * EXPERTS * EXPERT_BYTES)
    return {
        "all": AdmitAll,
        "tokens": lambda: DeficitAdmission.by_tokens(2 * block - 1, 2 * block),
        "2-d": lambda: DeficitAdmission(Deficit2D(2 * block, 6 * EXPERT_BYTES), largest),
        "starved": lambda: DeficitAdmission(Deficit2D(0, 0), largest),
    }


def scheduler_of(
    *,
    slots=(4, 4, 4),
    prefetch="none",
    eviction="lru",
    admission="all",
    speculative=True,
    block=4,
    seats=4,
    chunk=50,
    kv_tokens=10_000,
    top_k=2,
):
    cache = ExpertCache(
        Residency(slots), EVICTIONS[eviction](), PREFETCHES[prefetch](), num_experts=EXPERTS, top_k=top_k
    )
    rows = block if speculative else 1
    batch = Batch(BatchOptions(seats, rows, chunk), KvPool(kv_tokens, lambda tokens: tokens))
    options = SchedulerOptions(speculative, 1, EXPERT_BYTES)
    return Scheduler(options, batch, cache, admissions(rows)[admission]())


scheduler_options = st.fixed_dictionaries(
    {
        "slots": st.lists(st.integers(1, EXPERTS - 1), min_size=LAYERS, max_size=LAYERS).map(tuple),
        "prefetch": st.sampled_from(sorted(PREFETCHES)),
        "eviction": st.sampled_from(sorted(EVICTIONS)),
        "admission": st.sampled_from(["all", "tokens", "2-d", "starved"]),
        "speculative": st.booleans(),
        "block": st.integers(1, 5),
        "seats": st.integers(1, 4),
        "chunk": st.integers(3, 40),
        "kv_tokens": st.integers(65, 200),
    }
)
requests = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 20)), min_size=1, max_size=6)


def run(options, wanted, seed):
    return FakeWorld(scheduler_of(**options), wanted, rng=random.Random(seed), num_experts=EXPERTS).run()


@given(options=scheduler_options, wanted=requests, seed=st.integers(0, 2**32))
def test_any_legal_events_keep_the_slots_and_serve_every_request(options, wanted, seed):
    world = run(options, wanted, seed)
    assert world.committed == {seq_id: output for seq_id, (_, output) in enumerate(wanted)}


@given(options=scheduler_options, wanted=requests, seed=st.integers(0, 2**32))
def test_a_recorded_event_log_replays_to_the_same_commands(options, wanted, seed):
    world = run(options, wanted, seed)
    fresh = scheduler_of(**options)
    assert [list(fresh.handle(event)) for event in world.log] == world.commands
    assert fresh.cache.counts == world.scheduler.cache.counts


@given(options=scheduler_options, wanted=requests, seed=st.integers(0, 2**32), hours=st.floats(0, 1e6))
def test_commands_do_not_depend_on_the_clock(options, wanted, seed, hours):
    world = run(options, wanted, seed)
    fresh = scheduler_of(**options)
    for event, commands in zip(world.log, world.commands, strict=True):
        fields = {name: getattr(event, name) for name in event.__dataclass_fields__ if name != "kind"}
        fields["at_seconds"] = hours + fields["at_seconds"] / 7
        assert list(fresh.handle(type(event)(**fields))) == commands


def started(scheduler, *prompts):
    """Let requests arrive and finish their prefill; each then has one of its 20 tokens."""
    for seq_id, prompt in enumerate(prompts):
        scheduler.handle(RequestArrived(0.0, seq_id, prompt, 20))
    scheduler.batch.seat_waiting()
    for seq_id, prompt in enumerate(prompts):
        scheduler.batch.note_prefilled(seq_id, prompt)
    return scheduler


def test_an_empty_system_is_idle():
    assert scheduler_of().handle(Ready(0.0)) == [Idle()]


def test_prefill_alone_is_a_forward_without_seats():
    scheduler = scheduler_of(chunk=30)
    scheduler.handle(RequestArrived(0.0, 0, 70, 5))
    assert scheduler.handle(Ready(0.0)) == [Forward((), (0, 0, 30))]


def test_decode_seats_one_row_a_sequence_beside_a_prefill_chunk():
    scheduler = started(scheduler_of(speculative=False, chunk=30), 10)
    scheduler.handle(RequestArrived(1.0, 1, 70, 5))
    assert scheduler.handle(Ready(1.0)) == [Forward(((0, 1),), (1, 0, 30))]


def test_every_sequence_without_a_draft_is_drafted_in_one_go():
    scheduler = started(scheduler_of(), 10, 10)
    assert scheduler.handle(Ready(1.0)) == [Draft((0, 1))]
    assert scheduler.handle(DraftDone(2.0, (0, 1))) == [Forward(((0, 4), (1, 4)), None)]


def test_only_a_policy_that_routes_gets_a_route_pass():
    scheduler = started(scheduler_of(prefetch="route-ahead"), 10, 10)
    scheduler.handle(Ready(1.0))
    assert scheduler.handle(DraftDone(2.0, (0, 1))) == [Route((0, 1), 1, 2)]


def test_the_route_pass_prefetches_the_union_of_the_seated_blocks_and_the_forward_comes_last():
    scheduler = started(scheduler_of(prefetch="route-ahead"), 10, 10)
    scheduler.handle(Ready(1.0))
    scheduler.handle(DraftDone(2.0, (0, 1)))
    commands = scheduler.handle(RouteDone(3.0, (0, 1), ((0b1, 0b10, 0), (0b11, 0b100, 0))))
    assert commands == [
        Fetch(0, 0b11, Band.ROUTE_AHEAD),
        Fetch(1, 0b110, Band.ROUTE_AHEAD),
        Forward(((0, 4), (1, 4)), None),
    ]


def test_a_sequence_that_was_not_seated_keeps_its_draft_and_prefetches_nothing():
    scheduler = started(scheduler_of(prefetch="route-ahead", admission="starved"), 10, 10)
    scheduler.handle(Ready(1.0))
    scheduler.handle(DraftDone(2.0, (0, 1)))
    commands = scheduler.handle(RouteDone(3.0, (0, 1), ((0b1, 0, 0), (0b10, 0, 0))))
    assert commands == [Fetch(0, 0b1, Band.ROUTE_AHEAD), Forward(((0, 4),), None)]
    scheduler.handle(ForwardDone(4.0, ((0, 2),), None))
    assert scheduler.handle(Ready(5.0)) == [Draft((0,))]


def test_an_iteration_that_could_seat_nothing_admits_the_head_of_the_line():
    scheduler = started(scheduler_of(admission="starved"), 10, 10, 10)
    scheduler.handle(Ready(1.0))
    assert scheduler.handle(DraftDone(2.0, (0, 1, 2))) == [Forward(((0, 4),), None)]
    assert (scheduler.seated_rounds, scheduler.waited_rounds) == (1, 2)


def test_byte_demands_are_the_predicted_experts_that_are_not_resident():
    seen = []

    class Recording(AdmitAll):
        needs_bytes = True

        def admit(self, demands):
            seen.extend((demand.seq_id, demand.tokens, demand.expert_bytes) for demand in demands)
            return super().admit(demands)

    scheduler = started(scheduler_of(prefetch="route-ahead"), 10, 10)
    scheduler._admission = Recording()
    scheduler.cache.residency.resident[1] = 0b0110
    scheduler.handle(Ready(1.0))
    scheduler.handle(DraftDone(2.0, (0, 1)))
    scheduler.handle(RouteDone(3.0, (0, 1), ((0b1, 0b10, 0), (0b11, 0b1110, 0b1))))
    assert seen == [(0, 4, 1 * EXPERT_BYTES), (1, 4, 4 * EXPERT_BYTES)]


def test_a_request_joins_at_the_next_ready_not_in_the_middle_of_an_iteration():
    scheduler = started(scheduler_of(), 10)
    scheduler.handle(Ready(1.0))
    scheduler.handle(RequestArrived(1.5, 1, 10, 5))
    assert scheduler.handle(DraftDone(2.0, (0,))) == [Forward(((0, 4),), None)]
    scheduler.handle(ForwardDone(3.0, ((0, 1),), None))
    assert scheduler.handle(Ready(3.0)) == [Draft((0,))]
    assert scheduler.handle(DraftDone(4.0, (0,))) == [Forward(((0, 4),), (1, 0, 10))]


def test_a_request_that_cannot_go_on_leaves_the_others_running():
    scheduler = started(scheduler_of(), 10, 10)
    assert scheduler.handle(RequestFailed(1.0, 0)) == []
    assert scheduler.handle(Ready(1.0)) == [Draft((1,))]


def test_a_resident_model_is_counted_and_moves_nothing():
    scheduler = scheduler_of()
    assert scheduler.handle(LayersHit(0.0, (0b1, 0b11, 0b111))) == []
    assert scheduler.cache.counts.hits == 6


def test_a_request_that_can_never_fit_is_refused_on_arrival():
    with pytest.raises(InputError, match="request 0 needs KV memory"):
        scheduler_of(kv_tokens=20).handle(RequestArrived(0.0, 0, 10, 10))


@pytest.mark.parametrize(("prompt", "output"), [(0, 1), (1, 0), (-3, 5)])
def test_a_request_without_a_token_on_either_side_is_refused(prompt, output):
    with pytest.raises(ValueError, match=r"request 4 has .* both must be at least 1"):
        RequestArrived(0.0, 4, prompt, output)


@pytest.mark.parametrize(
    "event",
    [
        "not an event",
        DraftDone(0.0, (9,)),
        RouteDone(0.0, (9,), ((1, 1, 1),)),
        ForwardDone(0.0, ((9, 1),), None),
        ForwardDone(0.0, (), (9, 1)),
        RequestFailed(0.0, 9),
        LayerDone(0.0, 0, 0),
        TransfersArrived(0.0, ((0, 0b1),)),
        TransfersCancelled(0.0, 0, 0b1),
    ],
)
def test_an_event_that_cannot_happen_now_is_refused(event):
    with pytest.raises(IllegalEventError, match=r"not an event|is not running|is done but|unasked"):
        scheduler_of().handle(event)


def test_two_visits_at_once_are_refused():
    scheduler = scheduler_of()
    scheduler.handle(LayerRouted(0.0, 0, 0b1))
    with pytest.raises(IllegalEventError, match="layer 1 was routed while the visit to layer 0"):
        scheduler.handle(LayerRouted(0.0, 1, 0b1))


def test_an_illegal_event_is_an_error_of_the_program_not_of_the_user():
    assert issubclass(IllegalEventError, HideawayError)
    assert not issubclass(IllegalEventError, InputError)
