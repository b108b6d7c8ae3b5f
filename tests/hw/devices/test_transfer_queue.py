"""The order of transfers: by hand, and against the simulated link under the same script."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hideaway.hw.devices.base import PAGE_BYTES, Copy, Transfer
from hideaway.hw.devices.transfer_queue import Piece, TransferQueue
from hideaway.sim.commands import Band
from hideaway.sim.costs import LinkCosts
from hideaway.sim.errors import HideawayError, InputError
from hideaway.sim.masks import experts_of, mask_of
from hideaway.sim.timeline import Timeline
from hideaway.sim.world.copies import CopyEngine, LinkOptions
from hideaway.sim.world.link import Link

EXPERT_BYTES = 10 * PAGE_BYTES
COPY = Copy(0.0, 1.0, EXPERT_BYTES)


def queue_of(**options: object) -> TransferQueue:
    return TransferQueue(EXPERT_BYTES, LinkOptions(**options))


def transfers(layer: int, *experts: int) -> list[Transfer]:
    return [Transfer(layer, expert, 100 * layer + expert) for expert in experts]


def drain(queue: TransferQueue) -> list[tuple[int, int, int, int]]:
    """Take and end unit after unit; return (layer, expert, offset, bytes) of every piece."""
    order = []
    while unit := queue.take():
        for piece in unit:
            order.append((piece.transfer.layer, piece.transfer.expert, piece.offset_bytes, piece.num_bytes))
            if queue.moved(piece, COPY):
                queue.retire(piece.transfer)
        queue.unit_ended()
    return order


def experts(order: list[tuple[int, int, int, int]]) -> list[tuple[int, int]]:
    return [(layer, expert) for layer, expert, _, _ in order]


def test_bands_come_in_order_and_experts_of_a_submission_ascend() -> None:
    queue = queue_of()
    queue.submit(transfers(2, 5, 1), Band.BACKGROUND)
    queue.submit(transfers(1, 3), Band.ROUTE_AHEAD)
    queue.submit(transfers(0, 9, 8), Band.ON_DEMAND)
    queue.submit(transfers(0, 2), Band.ON_DEMAND)
    assert experts(drain(queue)) == [(0, 8), (0, 9), (0, 2), (1, 3), (2, 1), (2, 5)]


def test_no_more_units_are_submitted_than_the_depth_allows() -> None:
    queue = queue_of(submitted_depth=2)
    queue.submit(transfers(0, 0, 1, 2), Band.ON_DEMAND)
    assert queue.take()
    assert queue.take()
    assert queue.take() == ()
    queue.unit_ended()
    assert queue.take()


def test_a_batch_is_one_unit() -> None:
    queue = queue_of(batched=True, submitted_depth=1)
    queue.submit(transfers(0, 0, 1, 2), Band.ON_DEMAND)
    assert [piece.transfer.expert for piece in queue.take()] == [0, 1, 2]
    assert queue.cancel(0, 0b111) == 0


def test_an_urgent_transfer_cuts_in_between_chunks() -> None:
    queue = queue_of(chunk_bytes=4 * PAGE_BYTES, submitted_depth=1)
    queue.submit(transfers(0, 0), Band.BACKGROUND)
    (first,) = queue.take()
    assert not queue.moved(first, COPY)
    queue.unit_ended()
    queue.submit(transfers(1, 7), Band.ON_DEMAND)
    page = PAGE_BYTES
    assert drain(queue) == [
        (1, 7, 0, 4 * page),
        (1, 7, 4 * page, 4 * page),
        (1, 7, 8 * page, 2 * page),
        (0, 0, 4 * page, 4 * page),
        (0, 0, 8 * page, 2 * page),
    ]


def test_promotion_puts_half_moved_experts_first_and_leaves_submitted_ones() -> None:
    queue = queue_of(chunk_bytes=5 * PAGE_BYTES, submitted_depth=1)
    queue.submit(transfers(0, 4, 5, 6), Band.BACKGROUND)
    (piece,) = queue.take()
    queue.moved(piece, COPY)
    queue.unit_ended()
    queue.submit(transfers(1, 0), Band.ON_DEMAND)
    queue.promote(0, mask_of([4, 6, 9]))
    assert [key for key in dict.fromkeys(experts(drain(queue)))] == [(1, 0), (0, 4), (0, 6), (0, 5)]


def test_promoting_what_is_on_demand_already_keeps_its_place() -> None:
    queue = queue_of()
    queue.submit(transfers(0, 1), Band.ON_DEMAND)
    queue.submit(transfers(0, 2), Band.ON_DEMAND)
    queue.promote(0, mask_of([1]))
    assert experts(drain(queue)) == [(0, 1), (0, 2)]


def test_a_request_for_a_queued_expert_promotes_it_and_for_one_in_flight_joins_it() -> None:
    queue = queue_of(submitted_depth=1)
    queue.submit(transfers(0, 1, 2, 3), Band.BACKGROUND)
    (flying,) = queue.take()
    queue.submit(transfers(0, 1, 3), Band.ON_DEMAND)
    assert len(queue) == 3
    queue.moved(flying, COPY)
    queue.retire(flying.transfer)
    queue.unit_ended()
    assert experts(drain(queue)) == [(0, 3), (0, 2)]


def test_only_what_is_wholly_queued_can_be_cancelled() -> None:
    queue = queue_of(chunk_bytes=5 * PAGE_BYTES, submitted_depth=1)
    queue.submit(transfers(0, 1, 2, 3), Band.ROUTE_AHEAD)
    queue.take()
    assert queue.cancel(0, mask_of([1, 3, 8])) == mask_of([3])
    assert queue.cancel(1, mask_of([2])) == 0
    assert len(queue) == 2


def test_a_cancelled_slot_can_be_the_target_of_another_expert() -> None:
    queue = queue_of()
    queue.submit([Transfer(0, 1, 7)], Band.BACKGROUND)
    queue.cancel(0, mask_of([1]))
    queue.submit([Transfer(0, 2, 7)], Band.BACKGROUND)
    assert experts(drain(queue)) == [(0, 2)]


def test_a_slot_that_is_a_target_already_is_refused_and_nothing_is_queued() -> None:
    queue = queue_of()
    queue.submit([Transfer(0, 1, 7)], Band.BACKGROUND)
    with pytest.raises(HideawayError, match="slot 7 is the target of layer 0 expert 1"):
        queue.submit([Transfer(0, 4, 6), Transfer(0, 2, 7)], Band.ON_DEMAND)
    with pytest.raises(HideawayError, match="already on its way to slot 7"):
        queue.submit([Transfer(0, 1, 8)], Band.ON_DEMAND)
    with pytest.raises(HideawayError, match="already on its way to slot 1"):
        queue.submit([Transfer(0, 9, 1), Transfer(0, 9, 2)], Band.ON_DEMAND)
    assert len(queue) == 1


def test_a_failed_chunk_drops_the_queued_ones_and_awaits_the_submitted_ones() -> None:
    queue = queue_of(chunk_bytes=2 * PAGE_BYTES, submitted_depth=2)
    queue.submit(transfers(0, 1), Band.ON_DEMAND)
    (first,), (second,) = queue.take(), queue.take()
    assert not queue.moved(first, None, failure="broken")
    assert queue.has_failed(first.transfer)
    assert queue.moved(second, COPY)
    arrival = queue.retire(first.transfer)
    assert arrival.failure == "broken"
    queue.unit_ended()
    assert queue.take() == ()
    assert len(queue) == 0


def test_a_chunk_must_be_whole_pages() -> None:
    with pytest.raises(
        InputError, match="chunk_bytes is 1000 but must be a multiple of 4096, or 0 for whole experts"
    ):
        queue_of(chunk_bytes=1000)


# The same script, given to the simulated link and to the queue in front of a device whose work lasts what the link's
# costs say, must give the same pieces in the same order at the same times.

Script = list[tuple[float, str, int, int, Band]]
"""(at seconds, "submit" | "promote" | "cancel", layer, expert mask, band)."""


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    """Draw operations such as a scheduler gives: no expert is asked for twice, promotions are of prefetches."""
    script: Script = []
    at = 0.0
    asked: dict[int, int] = {}
    promotable: dict[int, int] = {}
    for _ in range(draw(st.integers(1, 25))):
        at += draw(st.sampled_from([0.0, 0.1, 0.35, 1.0, 2.7])) + 1e-3
        layer = draw(st.integers(0, 1))
        verb = draw(st.sampled_from(["submit", "submit", "promote", "cancel"]))
        chosen = mask_of(draw(st.sets(st.integers(0, 15), min_size=1, max_size=4)))
        band = draw(st.sampled_from(list(Band)))
        if verb == "submit":
            chosen &= ~asked.get(layer, 0)
            asked[layer] = asked.get(layer, 0) | chosen
            if band is not Band.ON_DEMAND:
                promotable[layer] = promotable.get(layer, 0) | chosen
        elif verb == "promote":
            chosen &= promotable.get(layer, 0)
            promotable[layer] = promotable.get(layer, 0) & ~chosen
        if chosen:
            script.append((at, verb, layer, chosen, band))
    return script


def run_link(script: Script, costs: LinkCosts, options: LinkOptions) -> Timeline:
    timeline = Timeline({})
    link = Link(CopyEngine(costs, EXPERT_BYTES, options, timeline=timeline), options)
    for at, verb, layer, mask, band in script:
        link.advance(at)
        if verb == "submit":
            link.submit(layer, mask, band, at)
        elif verb == "promote":
            link.promote(layer, mask, at)
        else:
            link.withdraw(layer, mask)
    link.advance(1e9)
    return timeline


class ClockedDevice:
    """A device that takes exactly the seconds of `costs`, fed by a `TransferQueue` instead of a `Link`.

    Its issue thread takes a unit whenever it is free and the queue gives one; the queue is told of the end of each.
    """

    def __init__(self, costs: LinkCosts, options: LinkOptions) -> None:
        self.queue = TransferQueue(EXPERT_BYTES, options)
        self.timeline = Timeline({})
        self.copies = CopyEngine(costs, EXPERT_BYTES, options, timeline=self.timeline)
        self.holds_issue_thread = costs.holds_issue_thread
        self.issue_free = 0.0
        self.running: deque[tuple[float, tuple[Piece, ...]]] = deque()

    def advance(self, now: float, until: float) -> None:
        """Let ends and issues happen in order of time, from `now` to `until`."""
        while True:
            while self.running and self.running[0][0] <= now:
                for piece in self.running.popleft()[1]:
                    if self.queue.moved(piece, COPY):
                        self.queue.retire(piece.transfer)
                self.queue.unit_ended()
            while now >= self.issue_free and (unit := self.queue.take()):
                self.issue(unit, now)
            ends = [end for end, _ in self.running]
            later = [at for at in (self.issue_free, *ends[:1]) if at > now]
            if not later or min(later) > until:
                return
            now = min(later)

    def issue(self, unit: tuple[Piece, ...], now: float) -> None:
        first = unit[0]
        masks = [1 << piece.transfer.expert for piece in unit]
        ends = self.copies.copy(first.transfer.layer, masks, first.num_bytes, first.band, now, now)
        self.running.append((ends[-1], unit))
        issued = [record.end_seconds for record in self.timeline if record.track == "issue"][-1]
        self.issue_free = ends[-1] if self.holds_issue_thread else issued


def run_queue(script: Script, costs: LinkCosts, options: LinkOptions) -> Timeline:
    device = ClockedDevice(costs, options)
    now = 0.0
    for at, verb, layer, mask, band in script:
        device.advance(now, at)
        now = at
        if verb == "submit":
            device.queue.submit(transfers(layer, *experts_of(mask)), band)
        elif verb == "promote":
            device.queue.promote(layer, mask)
        else:
            device.queue.cancel(layer, mask)
    device.advance(now, 1e9)
    assert len(device.queue) == 0
    return device.timeline


@settings(max_examples=max(250, settings().max_examples))
@given(
    script=scripts(),
    depth=st.integers(1, 4),
    streams=st.integers(1, 2),
    shape=st.sampled_from(["whole", "chunks", "batches"]),
    issue_seconds=st.sampled_from([0.0, 0.01, 0.9]),
    holds=st.booleans(),
)
def test_the_queue_moves_what_the_simulated_link_moves_in_the_same_order_at_the_same_times(
    script: Script, depth: int, streams: int, shape: str, issue_seconds: float, holds: bool
) -> None:
    options = LinkOptions(
        batched=shape == "batches",
        submitted_depth=max(depth, streams),
        streams=streams,
        chunk_bytes=4 * PAGE_BYTES if shape == "chunks" else 0,
    )
    costs = LinkCosts(issue_seconds, issue_seconds, 0.003, 0.05, EXPERT_BYTES / 0.83, holds)
    simulated, real = (list(run(script, costs, options)) for run in (run_link, run_queue))
    assert [record._replace(start_seconds=0.0, end_seconds=0.0) for record in real] == [
        record._replace(start_seconds=0.0, end_seconds=0.0) for record in simulated
    ]
    for field in ("start_seconds", "end_seconds"):
        assert [getattr(record, field) for record in real] == pytest.approx(
            [getattr(record, field) for record in simulated]
        )
