"""What a layer visit hits, fetches, evicts, streams and prefetches, and how it is counted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.commands import Band, Cancel, Fetch, Promote, Stream
from hideaway.sim.errors import IllegalEventError
from hideaway.sim.expert_cache import CacheCounts, ExpertCache
from hideaway.sim.masks import experts_of, mask_of
from hideaway.sim.policies.eviction.lru import Lru
from hideaway.sim.policies.prefetch.base import NoPrefetch, Want
from hideaway.sim.residency import Residency
from tests.strategies import masks, submasks

NOWHERE = ()


class WantsAtVisit(NoPrefetch):
    """Wants the same experts at every visit."""

    prefetches = True

    def __init__(self, *wants):
        self.wants = wants

    def on_layer(self, layer, needed, ahead):
        return self.wants


def cache_of(slots, resident=None, *, num_experts=8, top_k=1, prefetch=None, cancel_stale=True):
    return ExpertCache(
        Residency(slots, resident),
        Lru(len(slots), num_experts),
        prefetch or NoPrefetch(),
        num_experts=num_experts,
        top_k=top_k,
        cancel_stale=cancel_stale,
    )


def visit(cache, layer, needed, ahead=NOWHERE):
    """Visit a layer, let everything it fetched on demand arrive, and return the commands."""
    commands = cache.visit(layer, needed, ahead)
    fetched = [command.experts for command in commands if isinstance(command, Fetch) and command.band == 0]
    promoted = [command.experts for command in commands if isinstance(command, Promote)]
    cache.visit_done(layer, mask_of(expert for mask in fetched + promoted for expert in experts_of(mask)))
    return commands


def test_a_visit_whose_experts_are_resident_moves_nothing():
    cache = cache_of([4], [0b1111])
    assert visit(cache, 0, 0b0101) == []


def test_missing_experts_are_fetched_on_demand_into_free_slots():
    cache = cache_of([4], [0b0001])
    assert visit(cache, 0, 0b0111) == [Fetch(0, 0b0110, Band.ON_DEMAND)]
    assert cache.residency.resident == [0b0111]


def test_the_victim_is_the_policys_choice_among_experts_that_the_event_does_not_need():
    cache = cache_of([3], [0])
    visit(cache, 0, 0b001)
    visit(cache, 0, 0b010)
    visit(cache, 0, 0b100)
    visit(cache, 0, 0b1001)
    assert cache.residency.resident == [0b1101]


def test_an_events_experts_never_evict_each_other():
    cache = cache_of([3], [0b111])
    commands = visit(cache, 0, 0b11011)
    assert commands == [Fetch(0, 0b01000, Band.ON_DEMAND), Stream(0, 0b10000)]
    assert cache.residency.resident == [0b01011]


def test_a_union_larger_than_the_slots_streams_the_rest():
    cache = cache_of([2])
    assert visit(cache, 0, 0b11110) == [Fetch(0, 0b00110, Band.ON_DEMAND), Stream(0, 0b11000)]
    assert cache.counts.streamed == 2
    assert cache.residency.resident == [0b00110]


def test_fewer_slots_than_one_token_reads_cache_nothing():
    cache = cache_of([3], top_k=4, prefetch=WantsAtVisit(Want(0, 0b11, Band.BACKGROUND)))
    assert visit(cache, 0, 0b1111) == [Stream(0, 0b1111)]
    assert cache.residency.resident == [0]


def test_an_expert_on_its_way_is_a_miss_and_is_promoted_rather_than_fetched_again():
    cache = cache_of([4])
    cache.place_wants([Want(0, 0b0011, Band.ROUTE_AHEAD)])
    assert visit(cache, 0, 0b0101) == [
        Promote(0, 0b0001),
        Cancel(0, 0b0010),
        Fetch(0, 0b0100, Band.ON_DEMAND),
    ]
    assert cache.counts.hits == 0


def test_experts_on_their_way_are_pinned():
    cache = cache_of([2])
    cache.place_wants([Want(0, 0b01, Band.ROUTE_AHEAD)])
    commands = cache.visit(0, 0b1110, NOWHERE)
    assert commands == [Cancel(0, 0b01), Fetch(0, 0b0010, Band.ON_DEMAND), Stream(0, 0b1100)]
    assert cache.residency.in_flight == [0b0011]


def test_stale_copies_are_left_alone_when_told_so():
    cache = cache_of([4], cancel_stale=False)
    cache.place_wants([Want(0, 0b0010, Band.ROUTE_AHEAD)])
    assert visit(cache, 0, 0b0001) == [Fetch(0, 0b0001, Band.ON_DEMAND)]


def test_a_dropped_copy_frees_its_slot_for_the_next_visit():
    cache = cache_of([1])
    cache.place_wants([Want(0, 0b0010, Band.ROUTE_AHEAD)])
    assert visit(cache, 0, 0b0001) == [Cancel(0, 0b0010), Stream(0, 0b0001)]
    cache.cancelled(0, 0b0010)
    assert visit(cache, 0, 0b0001) == [Fetch(0, 0b0001, Band.ON_DEMAND)]


def test_a_want_takes_free_slots_then_those_of_experts_it_does_not_name():
    cache = cache_of([3], [0b0011])
    assert cache.place_wants([Want(0, 0b1101, Band.BACKGROUND)]) == [Fetch(0, 0b1100, Band.BACKGROUND)]
    assert cache.residency.resident == [0b0001]
    assert cache.residency.in_flight == [0b1100]


def test_a_want_that_is_resident_or_on_its_way_moves_nothing():
    cache = cache_of([3], [0b0001])
    cache.place_wants([Want(0, 0b0010, Band.BACKGROUND)])
    assert cache.place_wants([Want(0, 0b0011, Band.ROUTE_AHEAD)]) == []


def test_a_want_beyond_the_slots_is_cut_to_the_lowest_experts():
    cache = cache_of([2])
    assert cache.place_wants([Want(0, 0b1110, Band.BACKGROUND)]) == [Fetch(0, 0b0110, Band.BACKGROUND)]


def test_a_want_for_the_layer_being_visited_never_evicts_what_the_visit_reads():
    cache = cache_of([2], [0b0011], prefetch=WantsAtVisit(Want(0, 0b1100, Band.BACKGROUND)))
    assert cache.visit(0, 0b0001, NOWHERE) == [Fetch(0, 0b0100, Band.BACKGROUND)]
    assert cache.residency.resident == [0b0001]


def test_urgent_copies_come_before_those_of_the_prefetch_policy():
    cache = cache_of([4, 4], prefetch=WantsAtVisit(Want(1, 0b1, Band.BACKGROUND)))
    assert cache.visit(0, 0b11, NOWHERE) == [Fetch(0, 0b11, Band.ON_DEMAND), Fetch(1, 0b1, Band.BACKGROUND)]


def test_a_second_visit_cannot_begin_before_the_first_has_ended():
    cache = cache_of([4, 4])
    cache.visit(0, 0b1, NOWHERE)
    with pytest.raises(IllegalEventError, match="layer 1 was routed while the visit to layer 0 is going on"):
        cache.visit(1, 0b1, NOWHERE)


def test_only_the_layer_being_visited_can_be_done():
    cache = cache_of([4, 4])
    with pytest.raises(IllegalEventError, match="layer 1 is done but"):
        cache.visit_done(1, 0)
    cache.visit(0, 0b1, NOWHERE)
    with pytest.raises(IllegalEventError, match="layer 1 is done but"):
        cache.visit_done(1, 0)


def test_a_model_is_all_resident_only_when_every_layer_holds_every_expert():
    assert cache_of([8, 8], [255, 255]).all_resident()
    assert not cache_of([8, 8], [255, 127]).all_resident()
    assert not cache_of([7, 8], [127, 255]).all_resident()


def test_visits_of_a_resident_model_count_as_hits():
    cache = cache_of([8, 8], [255, 255])
    cache.count_all_hits((0b11, 0b111))
    assert cache.counts == CacheCounts(visits=2, needed=5, hits=5, covered=5)


def test_coverage_counts_residents_and_predictions_even_those_that_got_no_slot():
    cache = cache_of([2], [0b00001])
    cache.place_wants([Want(0, 0b11110, Band.BACKGROUND)])
    visit(cache, 0, 0b111010)
    assert cache.residency.resident == [0b00010]
    assert (cache.counts.covered, cache.counts.needed) == (3, 4)
    visit(cache, 0, 0b1010)
    assert (cache.counts.covered, cache.counts.needed) == (4, 6), "resident and not predicted; neither"


def test_a_prediction_counts_for_the_next_visit_of_its_layer_only():
    cache = cache_of([1], [0b1])
    cache.place_wants([Want(0, 0b10, Band.BACKGROUND)])
    cache.cancelled(0, 0b10)
    visit(cache, 0, 0b100)
    visit(cache, 0, 0b010)
    assert cache.counts.covered == 0


def test_only_what_prefetch_brought_in_time_is_timely():
    cache = cache_of([4])
    cache.place_wants([Want(0, 0b0111, Band.ROUTE_AHEAD)])
    cache.arrived([(0, 0b0011)])
    visit(cache, 0, 0b1101)
    assert (cache.counts.timely, cache.counts.hits, cache.counts.prefetched) == (1, 1, 2)


def test_a_prefetch_that_its_visit_waited_for_is_not_timely_later():
    cache = cache_of([4])
    cache.place_wants([Want(0, 0b0011, Band.ROUTE_AHEAD)])
    cache.visit(0, 0b0001, NOWHERE)
    cache.arrived([(0, 0b0011)])
    cache.visit_done(0, 0)
    visit(cache, 0, 0b0011)
    assert (cache.counts.timely, cache.counts.hits) == (1, 2), "only the expert that nobody had waited for"


def test_waste_is_what_a_round_moved_for_no_committed_row():
    cache = cache_of([4, 4])
    cache.place_wants([Want(0, 0b0111, Band.ROUTE_AHEAD), Want(1, 0b0011, Band.ROUTE_AHEAD)])
    cache.arrived([(0, 0b0111), (1, 0b0011)])
    cache.round_done((0b0001, 0b0111))
    assert cache.counts.wasted == 2
    cache.round_done((0, 0))
    assert cache.counts.wasted == 2, "a copy is wasted once"


class SlowCache:
    """The same rules with sets, one expert at a time, and least recently used as a list of ages."""

    def __init__(self, slots, top_k, resident):
        self.slots, self.top_k = slots, top_k
        self.resident = [set(experts_of(mask)) for mask in resident]
        self.in_flight = [set() for _ in slots]
        self.age = [dict() for _ in slots]
        self.predicted = [set() for _ in slots]
        self.brought = [set() for _ in slots]
        self.moved = [set() for _ in slots]
        self.counts = CacheCounts()
        self.clock = 0

    def touch(self, layer, experts):
        self.clock += 1
        for expert in experts:
            self.age[layer][expert] = self.clock

    def make_room(self, layer, arriving, protected):
        """Return the experts that get a slot, dropping victims for them."""
        if self.slots[layer] < self.top_k:
            return set()
        kept = set()
        candidates = sorted(
            self.resident[layer] - protected, key=lambda expert: (self.age[layer].get(expert, 0), expert)
        )
        for expert in sorted(arriving):
            if len(self.resident[layer] | self.in_flight[layer]) >= self.slots[layer]:
                if not candidates:
                    break
                self.resident[layer].discard(candidates.pop(0))
            self.in_flight[layer].add(expert)
            kept.add(expert)
        return kept

    def visit(self, layer, needed):
        counts, resident = self.counts, self.resident[layer]
        counts.visits += 1
        for expert in needed:
            counts.needed += 1
            counts.hits += expert in resident
            counts.covered += expert in resident or expert in self.predicted[layer]
            counts.timely += expert in resident and expert in self.brought[layer]
        self.predicted[layer], self.brought[layer] = set(), set()
        self.touch(layer, needed)
        late, stale = self.in_flight[layer] & needed, self.in_flight[layer] - needed
        missing = needed - resident - late
        kept = self.make_room(layer, missing, needed)
        counts.streamed += len(missing - kept)
        found = [("promote", late), ("cancel", stale), ("fetch", kept), ("stream", missing - kept)]
        return [(verb, experts) for verb, experts in found if experts], late | kept

    def want(self, layer, experts):
        self.predicted[layer] |= experts
        kept = self.make_room(layer, experts - self.resident[layer] - self.in_flight[layer], experts)
        self.touch(layer, kept)
        return kept

    def land(self, layer, experts, by_prefetch):
        self.in_flight[layer] -= experts
        self.resident[layer] |= experts
        if by_prefetch:
            self.brought[layer] |= experts
            self.moved[layer] |= experts
            self.counts.prefetched += len(experts)

    def round_done(self, kept_rows):
        for layer, kept in enumerate(kept_rows):
            self.counts.wasted += len(self.moved[layer] - kept)
            self.moved[layer] = set()


VERBS = {Promote: "promote", Cancel: "cancel", Fetch: "fetch", Stream: "stream"}


def as_set(mask):
    return set(experts_of(mask))


@given(st.data())
def test_every_command_and_count_is_that_of_a_slow_literal_cache(data):
    num_experts, num_layers = 7, 2
    slots = data.draw(st.lists(st.integers(1, 7), min_size=num_layers, max_size=num_layers))
    top_k = data.draw(st.integers(1, 3))
    resident = [data.draw(masks(num_experts, maximum=count)) for count in slots]
    cache = cache_of(slots, resident, num_experts=num_experts, top_k=top_k)
    slow = SlowCache(slots, top_k, resident)
    for _ in range(data.draw(st.integers(1, 25))):
        layer = data.draw(st.integers(0, num_layers - 1))
        in_flight = cache.residency.in_flight[layer]
        step = data.draw(st.sampled_from(["visit", "want", "land", "round"]))
        if step == "land" and in_flight:
            landing = data.draw(submasks(in_flight))
            cache.arrived([(layer, landing)])
            slow.land(layer, as_set(landing), by_prefetch=True)
        elif step == "want":
            wanted = data.draw(masks(num_experts))
            fetches = cache.place_wants([Want(layer, wanted, Band.BACKGROUND)])
            kept = slow.want(layer, as_set(wanted))
            assert [(fetch.layer, as_set(fetch.experts), fetch.band) for fetch in fetches] == (
                [(layer, kept, Band.BACKGROUND)] if kept else []
            )
        elif step == "visit":
            needed = data.draw(masks(num_experts))
            commands = cache.visit(layer, needed, NOWHERE)
            expected, arriving = slow.visit(layer, as_set(needed))
            assert [(VERBS[type(command)], as_set(command.experts)) for command in commands] == expected
            stale = cache.residency.in_flight[layer] & ~needed
            dropped = data.draw(submasks(stale))
            cache.cancelled(layer, dropped)
            slow.in_flight[layer] -= as_set(dropped)
            cache.visit_done(layer, mask_of(arriving))
            slow.land(layer, arriving, by_prefetch=False)
        elif step == "round":
            kept_rows = tuple(data.draw(masks(num_experts)) for _ in range(num_layers))
            cache.round_done(kept_rows)
            slow.round_done([as_set(mask) for mask in kept_rows])
        assert [as_set(mask) for mask in cache.residency.resident] == slow.resident
        assert [as_set(mask) for mask in cache.residency.in_flight] == slow.in_flight
    assert cache.counts == slow.counts
