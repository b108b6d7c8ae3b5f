"""The link: whole logs of small cases, and equality with a link that simulates every event."""

from dataclasses import dataclass

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hideaway.sim.commands import Band
from hideaway.sim.costs import LinkCosts
from hideaway.sim.errors import InputError
from hideaway.sim.masks import experts_of, mask_of
from hideaway.sim.timeline import Timeline
from hideaway.sim.world.copies import CopyEngine, LinkOptions
from hideaway.sim.world.host_store import HostStore
from hideaway.sim.world.link import Link
from tests.event_link import EventLink

ON_DEMAND, ROUTE_AHEAD, BACKGROUND = Band
FOREVER = float("inf")
EXPERT_BYTES = 8


@dataclass
class Case:
    """A link with copies of 2 s (8 bytes at 4 bytes/s) and no other cost, unless said otherwise."""

    issue: float = 0.0
    latency: float = 0.0
    depth: int = 1
    batched: bool = False
    batch: float = 0.0
    batch_transfer: float = 0.0
    chunk_bytes: int = 0
    pageable: bool = False
    read_seconds: float | None = None
    cache_experts: int = 0
    link_slowdown: float = 0.0

    @property
    def costs(self):
        return LinkCosts(self.issue, self.batch, self.batch_transfer, self.latency, 4.0, self.pageable)

    @property
    def options(self):
        return LinkOptions(self.batched, self.depth, self.chunk_bytes)

    def link(self, timeline=None):
        store = None if self.read_seconds is None else HostStore(self.cache_experts, self.read_seconds)
        copies = CopyEngine(
            self.costs,
            EXPERT_BYTES,
            self.options,
            store=store,
            link_slowdown=self.link_slowdown,
            timeline=timeline,
        )
        return Link(copies, self.options)

    def logged(self):
        """Return a link and the timeline that it fills."""
        timeline = Timeline()
        return self.link(timeline), timeline


def log_of(timeline):
    """Return the copies as (layer, experts, start, end)."""
    return [
        (record.layer, list(experts_of(record.experts)), record.start_seconds, record.end_seconds)
        for record in timeline.on_track("link")
    ]


def test_copies_go_first_in_first_out_and_in_ascending_order_within_a_request():
    link, timeline = Case().logged()
    link.submit(0, 0b1010, ON_DEMAND, 0.0)
    link.submit(1, 0b0001, ON_DEMAND, 0.0)
    link.advance(FOREVER)
    assert log_of(timeline) == [(0, [1], 0.0, 2.0), (0, [3], 2.0, 4.0), (1, [0], 4.0, 6.0)]
    assert link.copies.moved == [3, 0, 0]


def test_a_copy_is_issued_then_takes_latency_and_bytes_over_bandwidth():
    link, timeline = Case(issue=0.5, latency=0.25).logged()
    link.submit(0, 0b1, ON_DEMAND, 10.0)
    link.advance(FOREVER)
    (issue,) = timeline.on_track("issue")
    assert (issue.start_seconds, issue.end_seconds) == (10.0, 10.5)
    assert log_of(timeline) == [(0, [0], 10.5, 12.75)]


def test_one_submitted_copy_at_a_time_leaves_the_link_idle_while_the_next_is_issued():
    link, timeline = Case(issue=0.5, depth=1).logged()
    link.submit(0, 0b111, ON_DEMAND, 0.0)
    link.advance(FOREVER)
    assert log_of(timeline) == [(0, [0], 0.5, 2.5), (0, [1], 3.0, 5.0), (0, [2], 5.5, 7.5)]
    assert link.copies.issue_stall_seconds == 1.5
    assert link.copies.busy_seconds == 6.0


def test_with_two_submitted_the_next_is_issued_while_the_first_is_copied():
    link, timeline = Case(issue=0.5, depth=2).logged()
    link.submit(0, 0b111, ON_DEMAND, 0.0)
    link.advance(FOREVER)
    assert log_of(timeline) == [(0, [0], 0.5, 2.5), (0, [1], 2.5, 4.5), (0, [2], 4.5, 6.5)]
    assert [record.start_seconds for record in timeline.on_track("issue")] == [0.0, 0.5, 2.5]
    assert link.copies.issue_stall_seconds == 0.5


def test_a_slow_issue_thread_is_the_bottleneck_however_many_may_be_submitted():
    link, timeline = Case(issue=3.0, depth=50).logged()
    link.submit(0, 0b111, ON_DEMAND, 0.0)
    link.advance(FOREVER)
    assert log_of(timeline) == [(0, [0], 3.0, 5.0), (0, [1], 6.0, 8.0), (0, [2], 9.0, 11.0)]


def test_urgent_bands_go_first_but_never_interrupt_a_copy():
    link, timeline = Case().logged()
    link.submit(0, 0b11, BACKGROUND, 0.0)
    link.submit(1, 0b1, ROUTE_AHEAD, 0.0)
    link.advance(0.5)
    link.submit(2, 0b1, ROUTE_AHEAD, 0.5)
    link.submit(3, 0b1, ON_DEMAND, 0.5)
    link.advance(FOREVER)
    assert log_of(timeline) == [
        (1, [0], 0.0, 2.0),
        (3, [0], 2.0, 4.0),
        (2, [0], 4.0, 6.0),
        (0, [0], 6.0, 8.0),
        (0, [1], 8.0, 10.0),
    ]
    assert [record.band for record in timeline.on_track("link")] == [1, 0, 1, 2, 2]


def test_what_is_submitted_to_the_device_goes_before_a_more_urgent_copy():
    link, timeline = Case(depth=2).logged()
    link.submit(0, 0b111, BACKGROUND, 0.0)
    link.advance(0.5)
    link.submit(1, 0b1, ON_DEMAND, 0.5)
    link.advance(FOREVER)
    assert [entry[:2] for entry in log_of(timeline)] == [(0, [0]), (0, [1]), (1, [0]), (0, [2])]


def test_a_promoted_copy_overtakes_its_band_and_keeps_to_the_end_of_the_urgent_one():
    link, timeline = Case().logged()
    link.submit(0, 0b1, BACKGROUND, 0.0)
    link.submit(1, 0b1, ROUTE_AHEAD, 0.0)
    link.submit(2, 0b11, BACKGROUND, 0.0)
    link.advance(1.0)
    link.submit(3, 0b1, ON_DEMAND, 1.0)
    link.promote(2, 0b10, 1.0)
    link.advance(FOREVER)
    assert [entry[:2] for entry in log_of(timeline)] == [(1, [0]), (3, [0]), (2, [1]), (0, [0]), (2, [0])]


def test_promoting_what_is_submitted_changes_nothing_and_its_copy_is_joined():
    link, timeline = Case(depth=2).logged()
    link.submit(0, 0b11, BACKGROUND, 0.0)
    link.advance(0.5)
    link.promote(0, 0b11, 0.5)
    assert link.queued() == 0
    assert link.in_air(0) == [(2.0, 0b01), (4.0, 0b10)]
    assert link.land_on_demand(0) == ([], 0)
    link.advance(FOREVER)
    assert log_of(timeline) == [(0, [0], 0.0, 2.0), (0, [1], 2.0, 4.0)]


def test_what_is_submitted_cannot_be_withdrawn():
    link, timeline = Case(depth=2).logged()
    link.submit(0, 0b111, BACKGROUND, 0.0)
    link.advance(0.5)
    assert link.withdraw(0, 0b111) == 0b100
    assert link.withdraw(0, 0b111) == 0
    link.advance(FOREVER)
    assert log_of(timeline) == [(0, [0], 0.0, 2.0), (0, [1], 2.0, 4.0)]


def test_withdrawing_names_only_the_asked_experts_of_the_asked_layer():
    link = Case().link()
    link.submit(0, 0b1100, BACKGROUND, 0.0)
    link.submit(1, 0b1100, ROUTE_AHEAD, 0.0)
    assert link.withdraw(0, 0b0111) == 0b0100
    assert link.queued() == 3


def test_a_batch_is_issued_at_once_and_cannot_be_taken_back_in_part():
    link, timeline = Case(batched=True, batch=0.5, batch_transfer=0.125, depth=1).logged()
    link.submit(0, 0b1111, ROUTE_AHEAD, 0.0)
    link.advance(0.0)
    assert link.withdraw(0, 0b1111) == 0
    link.submit(1, 0b1, ON_DEMAND, 0.0)
    link.advance(FOREVER)
    assert log_of(timeline) == [
        (0, [0], 1.0, 3.0),
        (0, [1], 3.0, 5.0),
        (0, [2], 5.0, 7.0),
        (0, [3], 7.0, 9.0),
        (1, [0], 9.625, 11.625),
    ]
    calls = [(r.start_seconds, r.end_seconds, r.experts) for r in timeline.on_track("issue")]
    assert calls == [(0.0, 1.0, 0b1111), (9.0, 9.625, 0b1)]


def test_between_the_chunks_of_a_copy_a_more_urgent_one_cuts_in():
    link, timeline = Case(chunk_bytes=4).logged()
    link.submit(0, 0b1, BACKGROUND, 0.0)
    link.advance(0.5)
    link.submit(1, 0b1, ON_DEMAND, 0.5)
    link.advance(FOREVER)
    assert log_of(timeline) == [
        (0, [0], 0.0, 1.0),
        (1, [0], 1.0, 2.0),
        (1, [0], 2.0, 3.0),
        (0, [0], 3.0, 4.0),
    ]
    assert link.copies.moved == [1, 0, 1]


def test_the_last_chunk_is_what_is_left():
    link, timeline = Case(chunk_bytes=3, latency=0.25).logged()
    link.submit(0, 0b1, ON_DEMAND, 0.0)
    link.advance(FOREVER)
    assert [record.bytes for record in timeline.on_track("link")] == [3, 3, 2]
    assert log_of(timeline)[-1][3] == 3 * 0.25 + 2.0


def test_a_half_moved_copy_cannot_be_withdrawn_but_its_rest_is_promoted():
    link, timeline = Case(chunk_bytes=4).logged()
    link.submit(0, 0b11, BACKGROUND, 0.0)
    link.advance(0.5)
    link.submit(1, 0b1, ROUTE_AHEAD, 0.5)
    assert link.withdraw(0, 0b01) == 0
    link.promote(0, 0b11, 0.5)
    link.advance(FOREVER)
    assert log_of(timeline) == [
        (0, [0], 0.0, 1.0),
        (0, [0], 1.0, 2.0),
        (0, [1], 2.0, 3.0),
        (0, [1], 3.0, 4.0),
        (1, [0], 4.0, 5.0),
        (1, [0], 5.0, 6.0),
    ]


def test_a_pageable_copy_holds_the_issue_thread_to_its_end():
    link, timeline = Case(issue=0.5, depth=8, pageable=True).logged()
    link.submit(0, 0b111, ON_DEMAND, 0.0)
    link.advance(FOREVER)
    assert log_of(timeline) == [(0, [0], 0.5, 2.5), (0, [1], 3.0, 5.0), (0, [2], 5.5, 7.5)]
    calls = [(r.start_seconds, r.end_seconds) for r in timeline.on_track("issue")]
    assert calls == [(0.0, 2.5), (2.5, 5.0), (5.0, 7.5)]


def test_an_expert_on_the_ssd_is_read_before_it_is_copied():
    link, timeline = Case(depth=2, read_seconds=5.0, cache_experts=8).logged()
    link.submit(0, 0b11, ON_DEMAND, 1.0)
    link.advance(FOREVER)
    assert log_of(timeline) == [(0, [0], 6.0, 8.0), (0, [1], 11.0, 13.0)]


def test_the_page_cache_keeps_what_was_read_most_recently():
    link, timeline = Case(depth=1, read_seconds=5.0, cache_experts=2).logged()
    for at_seconds, expert in enumerate((0, 1, 0, 2, 0, 1)):
        link.submit(0, 1 << expert, ON_DEMAND, float(at_seconds))
    link.advance(FOREVER)
    starts = [start for _, _, start, _ in log_of(timeline)]
    assert starts == [5.0, 12.0, 14.0, 21.0, 23.0, 30.0]


def test_without_a_page_cache_every_copy_is_read_once_even_in_chunks():
    link, timeline = Case(depth=1, read_seconds=5.0, cache_experts=0, chunk_bytes=4).logged()
    link.submit(0, 0b1, ON_DEMAND, 0.0)
    link.advance(10.0)
    link.submit(0, 0b1, ON_DEMAND, 10.0)
    link.advance(FOREVER)
    assert log_of(timeline) == [
        (0, [0], 5.0, 6.0),
        (0, [0], 6.0, 7.0),
        (0, [0], 15.0, 16.0),
        (0, [0], 16.0, 17.0),
    ]


def test_a_copy_that_starts_while_compute_is_busy_is_slowed():
    link, timeline = Case(link_slowdown=0.5).logged()
    link.copies.compute_busy_until = 2.5
    link.submit(0, 0b111, ON_DEMAND, 0.0)
    link.advance(FOREVER)
    assert log_of(timeline) == [(0, [0], 0.0, 3.0), (0, [1], 3.0, 5.0), (0, [2], 5.0, 7.0)]


def test_landed_copies_are_handed_out_once_and_only_when_they_have_ended():
    link = Case().link()
    link.submit(0, 0b11, BACKGROUND, 0.0)
    link.submit(1, 0b1, BACKGROUND, 0.0)
    assert link.collect(1.9) == ()
    assert link.collect(4.0) == ((0, 0b11),)
    assert link.collect(100.0) == ((1, 0b1),)
    assert link.collect(200.0) == ()


def test_nothing_is_decided_before_its_time():
    link = Case().link()
    link.submit(0, 0b111, BACKGROUND, 0.0)
    link.advance(1.0)
    assert link.queued() == 2
    link.advance(2.0)
    assert link.queued() == 1


def test_streaming_waits_for_a_staging_slot():
    link = Case().link()
    assert link.stream(0, 0b01, since=0.0, not_before=0.0) == 2.0
    assert link.stream(0, 0b10, since=0.0, not_before=7.0) == 9.0
    assert link.copies.moved == [2, 0, 0]


def test_what_is_streamed_goes_before_all_that_is_queued():
    link, timeline = Case(chunk_bytes=4).logged()
    link.submit(1, 0b1, ON_DEMAND, 0.0)
    assert link.stream(0, 0b1, since=0.0, not_before=0.0) == 2.0
    link.advance(FOREVER)
    assert [entry[:2] for entry in log_of(timeline)] == [(0, [0])] * 2 + [(1, [0])] * 2


layers = st.integers(0, 2)
masks = st.sets(st.integers(0, 4), min_size=1).map(mask_of)
eighths = st.integers(0, 24).map(lambda count: count / 8)


@st.composite
def orders(draw):
    """Return (at_seconds, verb, layer, experts, band), no two instants a whole number of eighths apart.

    Costs are eighths, so that no copy can end at the very instant of a later order: which of the two comes first
    would be a matter of convention.
    """
    found, now, wanted = [], 0.0, [0, 0, 0]
    for index in range(draw(st.integers(1, 12))):
        now = (int(now * 8) + draw(st.integers(0, 30))) / 8 + (index + 1) / 1024
        verb = draw(st.sampled_from(["submit", "submit", "promote", "withdraw"]))
        layer, mask = draw(layers), draw(masks)
        if verb == "submit":
            mask &= ~wanted[layer]
            wanted[layer] |= mask
            if not mask:
                continue
        found.append((now, verb, layer, mask, int(draw(st.sampled_from(Band)))))
    return found


cases = st.builds(
    Case,
    issue=eighths,
    latency=eighths,
    depth=st.integers(1, 4),
    batched=st.booleans(),
    batch=eighths,
    batch_transfer=eighths,
    chunk_bytes=st.sampled_from([0, 0, 2, 3, 4, 8, 100]),
    pageable=st.booleans(),
    read_seconds=st.one_of(st.none(), st.none(), eighths),
    cache_experts=st.integers(0, 4),
)


def apply(link, order):
    """Give one order to the product's link and return what it withdrew."""
    at_seconds, verb, layer, mask, band = order
    link.advance(at_seconds)
    if verb == "submit":
        link.submit(layer, mask, Band(band), at_seconds)
    elif verb == "promote":
        link.promote(layer, mask, at_seconds)
    else:
        return link.withdraw(layer, mask)
    return None


def events_of(case, given_orders):
    events = EventLink(case.costs, EXPERT_BYTES, case.options, case.read_seconds, case.cache_experts)
    return events.run(given_orders), events.dropped


def records_of(timeline):
    return [
        (record.layer, record.experts, record.start_seconds, record.end_seconds, record.bytes, record.band)
        for record in timeline.on_track("link")
    ]


@given(cases, orders())
def test_the_lazy_link_is_the_link_that_simulates_every_event(case, given_orders):
    link, timeline = case.logged()
    dropped = [apply(link, order) for order in given_orders]
    link.advance(FOREVER)
    log, dropped_there = events_of(case, given_orders)
    assert records_of(timeline) == log
    assert [mask for mask in dropped if mask is not None] == dropped_there
    assert link.queued() == 0


@given(cases, orders())
def test_a_link_without_a_timeline_lands_the_same_copies_at_the_same_times(case, given_orders):
    link = case.link()
    for order in given_orders:
        apply(link, order)
    link.advance(FOREVER)
    landed = sorted((end, layer, expert) for layer in range(3) for end, expert in link.in_air(layer))
    logged, timeline = case.logged()
    for order in given_orders:
        apply(logged, order)
    logged.advance(FOREVER)
    last_pieces = {(layer, expert): end for layer, expert, _, end, _, _ in records_of(timeline)}
    assert landed == sorted((end, layer, expert) for (layer, expert), end in last_pieces.items())
    for name in ("free_at", "busy_seconds", "issue_stall_seconds", "moved"):
        assert getattr(link.copies, name) == getattr(logged.copies, name)


@given(cases, orders(), layers, st.booleans())
@example(Case(depth=2, chunk_bytes=4), [(0.0, "submit", 0, 0b11, 2), (0.3, "promote", 0, 0b11, 0)], 0, True)
def test_looking_ahead_to_the_last_urgent_copy_of_a_layer_decides_nothing_otherwise(
    case, given_orders, layer, logged
):
    link, timeline = case.logged() if logged else (case.link(), None)
    for order in given_orders:
        apply(link, order)
    in_air = {(other, expert) for other in range(3) for _, expert in link.in_air(other)}
    ends, moved = link.land_on_demand(layer)
    log, _ = events_of(case, given_orders)
    last_pieces = {(other, expert): (end, band) for other, expert, _, end, _, band in log}
    expected = {
        expert: end
        for (other, expert), (end, band) in last_pieces.items()
        if other == layer and band == 0 and (other, expert) not in in_air
    }
    assert ends == sorted(expected.values())
    assert moved == sum(expected)
    link.advance(FOREVER)
    if timeline is not None:
        assert records_of(timeline) == log
    others = [(other, pair) for other in range(3) for pair in link.in_air(other)]
    assert sorted((other, expert, end) for other, (end, expert) in others) == sorted(
        (other, expert, end)
        for (other, expert), (end, _) in last_pieces.items()
        if not (other == layer and expert in expected)
    )


@given(st.integers(1, 6), eighths, eighths, eighths, st.integers(1, 3), st.integers(1, 3))
def test_streaming_in_closed_form_is_streaming_copy_by_copy(count, issue, latency, each, depth, staging):
    case = Case(issue=issue, latency=latency, depth=depth)
    closed, stepwise = case.link(), case.link()
    finish, waited = closed.copies.run_staged(count, 1.0, 1.5, each, staging)
    free, now, idle = [1.0] * staging, 1.5, 0.0
    for expert in range(count):
        arrival = stepwise.stream(0, 1 << expert, 1.0, free.pop(0))
        idle += max(0.0, arrival - now)
        now = max(now, arrival) + each
        free.append(now)
    assert (finish, waited) == (now, idle)
    assert closed.copies.free_at == stepwise.copies.free_at


@pytest.mark.parametrize("depth", [1, 2, 3, 100])
@given(count=st.integers(1, 30), issue=eighths, latency=eighths)
def test_a_train_of_copies_ends_as_the_running_sum_of_the_slower_of_issue_and_copy(
    depth, count, issue, latency
):
    link = Case(issue=issue, latency=latency, depth=depth).link()
    link.submit(0, (1 << count) - 1, ON_DEMAND, 0.0)
    ends, _ = link.land_on_demand(0)
    copy = latency + 2.0
    if depth == 1:
        assert ends == [(index + 1) * (issue + copy) for index in range(count)]
    else:
        assert ends == [issue + copy + index * max(issue, copy) for index in range(count)]


@pytest.mark.parametrize("streams", [1, 2, 3])
def test_streams_share_the_bandwidth_and_hide_latency(streams: int) -> None:
    costs = LinkCosts(0.0, 0.0, 0.0, 2.0, 1.0, False)
    copies = CopyEngine(costs, 10, LinkOptions(submitted_depth=4, streams=streams))
    ends = [copies.copy(0, [1 << expert], 10, 0, 0.0, copies.pick_time(0.0))[0] for expert in range(4)]
    step = 12.0 if streams == 1 else 10.0
    assert ends == [12.0 + step * copy for copy in range(4)]
    assert copies.busy_seconds == ends[-1]


def test_more_streams_than_submitted_units_are_refused() -> None:
    with pytest.raises(InputError, match="3 copy streams"):
        LinkOptions(submitted_depth=2, streams=3)
