"""One layer visit: its order, its waits and what the scheduler hears of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.batch import Batch, BatchOptions
from hideaway.sim.commands import Band
from hideaway.sim.costs import LinkCosts
from hideaway.sim.events import LayerDone, LayerRouted, TransfersArrived, TransfersCancelled
from hideaway.sim.expert_cache import ExpertCache
from hideaway.sim.hide import slot_limited_arrival_seconds, staggered_exposed_seconds
from hideaway.sim.kv_pool import KvPool
from hideaway.sim.policies.admission.admit_all import AdmitAll
from hideaway.sim.policies.eviction.lru import Lru
from hideaway.sim.policies.prefetch.base import NoPrefetch, Want
from hideaway.sim.policies.prefetch.previous_union import PreviousUnion
from hideaway.sim.residency import Residency
from hideaway.sim.scheduler import Scheduler, SchedulerOptions
from hideaway.sim.timeline import Timeline
from hideaway.sim.world.copies import CopyEngine, LinkOptions
from hideaway.sim.world.link import Link
from hideaway.sim.world.visit import Visitor
from tests.machine import LayerCosts

EXPERTS = 8
ALL = (1 << EXPERTS) - 1


class Rig:
    """A visitor whose copies take 2 s; the dense part takes 3 s, hits 1 s and each arrival 0.5 s."""

    def __init__(
        self,
        slots=(4, 4, 4),
        resident=(0, 0, 0),
        *,
        prefetch=None,
        issue=0.0,
        options=None,
        staging=2,
        top_k=1,
        slowdown=0.0,
        timeline=None,
    ):
        self.heard = []
        options = options or LinkOptions(submitted_depth=1)
        costs = LinkCosts(issue, 0.25, 0.25, 0.0, 500.0, False)
        self.link = Link(CopyEngine(costs, 1000, options, timeline=timeline), options)
        self.cache = ExpertCache(
            Residency(slots, resident),
            Lru(len(slots), EXPERTS),
            prefetch or NoPrefetch(),
            num_experts=EXPERTS,
            top_k=top_k,
        )
        batch = Batch(BatchOptions(1, 1, 1), KvPool(1, lambda tokens: 0))
        scheduler = Scheduler(SchedulerOptions(False, 1, 1000), batch, self.cache, AdmitAll())
        handle = scheduler.handle
        scheduler.handle = lambda event: (self.heard.append(event), handle(event))[1]
        self.visitor = Visitor(
            scheduler,
            self.link,
            num_experts=EXPERTS,
            staging_slots=staging,
            compute_slowdown=slowdown,
            timeline=timeline,
        )
        self.timeline = timeline

    def want(self, at_seconds, *wants):
        for fetch in self.cache.place_wants(wants):
            self.link.submit(fetch.layer, fetch.experts, fetch.band, at_seconds)

    def visit(self, now, layer, needed, **costs):
        given = {"dense_seconds": 3.0, "hit_work_seconds": 1.0, "each_seconds": 0.5, "resident": ALL, **costs}
        return self.visitor.visit(now, layer, needed, (), LayerCosts(**given))


def test_a_wholly_resident_layer_asks_nobody_and_skips_the_round_trip():
    rig = Rig(slots=(8,), resident=(ALL,))
    assert rig.visit(0.0, 0, 0b11, round_trip_seconds=9.0) == 4.0
    assert rig.visitor.sync_seconds == 0.0
    assert rig.heard == [LayerRouted(3.0, 0, 0b11), LayerDone(4.0, 0, 0)]


def test_a_partly_resident_layer_waits_for_the_routed_set_even_when_all_are_hits():
    rig = Rig(slots=(8,), resident=(0b111,))
    assert rig.visit(0.0, 0, 0b11, router_seconds=0.25, round_trip_seconds=0.5) == 4.75
    assert rig.visitor.sync_seconds == 0.5
    assert rig.heard == [LayerRouted(3.75, 0, 0b11), LayerDone(4.75, 0, 0)]


def test_missing_experts_arrive_while_the_hits_are_computed():
    rig = Rig(resident=(0b1, 0, 0))
    end = rig.visit(0.0, 0, 0b111)
    assert end == 3.0 + 2.0 + 2.0 + 0.5, "copies end at 5 and 7; the first is computed while the second comes"
    assert rig.visitor.exposed_seconds == 1.0 + 1.5
    assert rig.heard == [LayerRouted(3.0, 0, 0b111), LayerDone(7.5, 0, 0b110)]


def test_long_hits_hide_the_arrivals():
    rig = Rig(resident=(0b1, 0, 0))
    assert rig.visit(0.0, 0, 0b111, hit_work_seconds=10.0) == 14.0
    assert rig.visitor.exposed_seconds == 0.0


def test_idle_time_while_a_copy_is_issued_is_told_apart_from_exposed_time():
    rig = Rig(issue=0.5)
    assert rig.visit(0.0, 0, 0b11, hit_work_seconds=0.0) == 3.0 + 0.5 + 2.0 + 0.5 + 2.0 + 0.5
    assert rig.visitor.issue_idle_seconds == 1.0
    assert rig.visitor.exposed_seconds == 2.0 + 1.5


def test_a_prefetch_that_landed_is_a_hit_and_heard_before_the_visit():
    rig = Rig()
    rig.want(0.0, Want(0, 0b1, Band.ROUTE_AHEAD))
    assert rig.visit(0.0, 0, 0b1) == 4.0
    assert rig.heard == [
        TransfersArrived(3.0, ((0, 0b1),)),
        LayerRouted(3.0, 0, 0b1),
        LayerDone(4.0, 0, 0),
    ]
    assert rig.cache.counts.hits == rig.cache.counts.timely == 1


def test_a_prefetch_in_flight_is_a_miss_that_is_joined_not_fetched_again():
    rig = Rig()
    rig.want(2.0, Want(0, 0b1, Band.ROUTE_AHEAD))
    rig.link.advance(2.0)
    assert rig.visit(0.0, 0, 0b1, hit_work_seconds=0.0) == 4.5
    assert rig.visitor.exposed_seconds == 1.0
    assert rig.heard == [
        LayerRouted(3.0, 0, 0b1),
        TransfersArrived(4.5, ((0, 0b1),)),
        LayerDone(4.5, 0, 0),
    ]
    assert (rig.cache.counts.hits, rig.link.copies.moved) == (0, [0, 1, 0])


def test_a_queued_prefetch_is_promoted_past_the_others():
    rig = Rig()
    rig.want(0.0, Want(1, 0b111, Band.ROUTE_AHEAD), Want(0, 0b1, Band.BACKGROUND))
    assert rig.visit(0.0, 0, 0b1, hit_work_seconds=0.0) == 6.5, "the second copy runs to 4, then ours to 6"
    assert rig.heard[-1] == LayerDone(6.5, 0, 0b1)
    assert rig.link.copies.moved == [1, 3, 0]


def test_a_stale_prefetch_is_withdrawn_before_the_wait():
    rig = Rig()
    rig.want(2.5, Want(0, 0b111, Band.ROUTE_AHEAD))
    rig.link.advance(2.5)
    end = rig.visit(0.0, 0, 0b1000)
    assert rig.heard == [
        LayerRouted(3.0, 0, 0b1000),
        TransfersCancelled(3.0, 0, 0b110),
        TransfersArrived(end, ((0, 0b1),)),
        LayerDone(end, 0, 0b1000),
    ]
    assert rig.cache.residency.resident[0] == 0b1001


def test_experts_beyond_the_slots_are_streamed_through_the_staging_slots():
    rig = Rig(slots=(1,), staging=1)
    end = rig.visit(0.0, 0, 0b111, hit_work_seconds=0.0)
    assert end == 3.0 + 3 * 2.0 + 2 * 0.5, "the third copy waits until the second has been computed"
    assert rig.cache.residency.resident[0] == 0b1
    assert rig.heard[-1] == LayerDone(end, 0, 0b1)


def test_a_prefetch_of_another_layer_in_the_urgent_band_goes_first_and_stays_its_own():
    rig = Rig()
    rig.want(2.0, Want(1, 0b11, Band.ON_DEMAND))
    rig.link.advance(2.0)
    end = rig.visit(0.0, 0, 0b1, hit_work_seconds=0.0)
    assert end == 8.5, "copies for layer 1 end at 4 and 6"
    assert rig.cache.residency.resident == [0b1, 0b11, 0]


def test_a_want_in_the_urgent_band_waits_behind_what_the_visit_streams():
    class Eager(NoPrefetch):
        prefetches = True

        def on_layer(self, layer, needed, ahead):
            return (Want(1, 0b1, Band.ON_DEMAND),)

    rig = Rig(slots=(1, 4, 4), prefetch=Eager(), staging=4)
    assert rig.visit(0.0, 0, 0b111, hit_work_seconds=0.0) == 3.0 + 6.0 + 0.5
    rig.link.advance(100.0)
    assert rig.link.collect(100.0) == ((1, 0b1),)


def test_prefetch_of_the_next_layer_uses_the_link_after_the_visits_own_copies():
    rig = Rig(prefetch=PreviousUnion(3))
    rig.visit(0.0, 1, 0b1)
    end = rig.visit(10.0, 0, 0b10)
    assert end == 15.5
    assert rig.visit(end, 1, 0b1) == end + 4.0


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("logged", [False, True])
def test_batched_issue_moves_a_layers_misses_in_one_call_and_streams_one_by_one(batched, logged):
    rig = Rig(
        slots=(2,),
        issue=0.5,
        options=LinkOptions(batched=batched, submitted_depth=1),
        timeline=Timeline() if logged else None,
        staging=1,
    )
    end = rig.visit(0.0, 0, 0b1111, hit_work_seconds=0.0)
    both = 0.75 + 4.0 if batched else 2 * 2.5
    assert end == 3.0 + both + 2.5 + 2.5 + 0.5 + 0.5


def test_compute_is_slower_while_the_link_is_busy():
    rig = Rig(slots=(8, 8), resident=(0b1, 0), slowdown=0.5)
    rig.want(0.0, Want(1, 0b1, Band.BACKGROUND))
    rig.link.advance(0.0)
    end = rig.visit(0.0, 0, 0b1)
    assert end == pytest.approx(2.0 + (3.0 - 2.0 / 1.5) + 1.0)


def test_the_timeline_of_a_visit_shows_its_waits_inside_the_experts_phase():
    timeline = Timeline()
    rig = Rig(resident=(0b1, 0, 0), timeline=timeline)
    rig.visit(0.0, 0, 0b111, round_trip_seconds=0.5)
    compute = [
        (r.start_seconds, r.end_seconds, r.kind, r.layer, r.experts, r.value)
        for r in timeline.on_track("compute")
    ]
    assert sorted(compute) == [
        (0.0, 3.0, "attention", 0, 0, 0.0),
        (3.0, 3.5, "sync", 0, 0, 0.0),
        (3.5, 8.0, "experts", 0, 0b111, 1.0),
        (4.5, 5.5, "wait", 0, 0, 0.0),
        (6.0, 7.5, "wait", 0, 0, 0.0),
    ]
    assert [(r.experts, r.start_seconds, r.end_seconds) for r in timeline.on_track("link")] == [
        (0b010, 3.5, 5.5),
        (0b100, 5.5, 7.5),
    ]


def test_time_waited_in_the_timeline_is_the_time_counted():
    timeline = Timeline()
    rig = Rig(slots=(2, 2, 2), issue=0.5, timeline=timeline)
    now = 0.0
    for layer, needed in enumerate((0b111, 0b11011, 0b1)):
        now = rig.visit(now, layer, needed)
    waits = sum(r.end_seconds - r.start_seconds for r in timeline.on_track("compute") if r.kind == "wait")
    assert waits == pytest.approx(rig.visitor.exposed_seconds + rig.visitor.issue_idle_seconds)


seconds = st.integers(0, 16).map(lambda count: count / 4)


@given(
    misses=st.lists(st.integers(0, 8), min_size=1, max_size=4),
    staging=st.integers(1, 4),
    dense=seconds,
    each=seconds,
    issue=seconds,
)
def test_streaming_alone_is_the_slot_limited_form_layer_by_layer(misses, staging, dense, each, issue):
    num_layers = len(misses)
    rig = Rig(slots=(1,) * num_layers, resident=(0,) * num_layers, issue=issue, staging=staging, top_k=2)
    now, expected = 0.0, 0.0
    for layer, count in enumerate(misses):
        now = rig.visit(
            now, layer, (1 << count) - 1, dense_seconds=dense, hit_work_seconds=0.0, each_seconds=each
        )
        transfers, works = [[issue + 2.0] * count], [[each] * count]
        arrivals = slot_limited_arrival_seconds(0.0, [0.0], [0.0], transfers, works, num_slots=staging)
        expected += float(staggered_exposed_seconds(0.0, [0.0], [0.0], arrivals, works))
    waited = rig.visitor.exposed_seconds + rig.visitor.issue_idle_seconds
    assert waited == pytest.approx(expected)
    assert now == pytest.approx(num_layers * dense + sum(misses) * each + expected)
