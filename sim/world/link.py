"""The host-to-device link and the thread that feeds it, advanced lazily.

A copy waits in its band's queue, is *issued* by the serial issue thread when fewer than `submitted_depth`
units are on the device, then crosses the link: latency + bytes / bandwidth, never interrupted. The next copy
is picked at the instant the issue thread can take it, so nothing is decided before it must be, and nothing
is simulated before somebody looks: `advance(t)` replays every decision up to t. A queue entry is a set of
experts of one layer, copied in ascending order.

Not here: who asks for copies (`hideaway.sim.scheduler`) and what waits for them
(`hideaway.sim.world.visit`).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from hideaway.sim.commands import Band
from hideaway.sim.costs import LinkCosts
from hideaway.sim.errors import HideawayError
from hideaway.sim.masks import experts_of
from hideaway.sim.timeline import Timeline
from hideaway.sim.world.host_store import HostStore

Landed = deque[tuple[float, int, int]] | list[tuple[float, int, int]]
"""(end seconds, layer, expert mask) of finished copies."""


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """How copies are issued.

    Parameters
    ----------
    batched : bool
        One call issues a whole queue entry; it is then one submitted unit.
    submitted_depth : int
        Units (copies, or batches) on the device at once, the running one included; only what is not submitted
        can be promoted or cancelled.
    chunk_bytes : int
        Longer copies are divided into chunks, between which a more urgent band may cut in; 0 keeps them whole.
    """

    batched: bool = False
    submitted_depth: int = 2
    chunk_bytes: int = 0


class Entry:
    """Queued copies of one layer in one band; `left` bytes of the expert being copied in chunks."""

    __slots__ = ("band", "experts", "layer", "left", "since")

    def __init__(self, layer: int, experts: int, band: int, since: float) -> None:
        self.layer = layer
        self.experts = experts
        self.band = band
        self.since = since
        self.left = 0


class Link:
    """One serial link with three priority bands.

    Parameters
    ----------
    costs : LinkCosts
        Issue, latency and bandwidth.
    expert_bytes : int
        Size of every copy.
    link_slowdown : float
        Fractional slowdown of a copy that starts while compute is busy.
    """

    def __init__(
        self,
        costs: LinkCosts,
        expert_bytes: int,
        options: LinkOptions,
        *,
        store: HostStore | None = None,
        link_slowdown: float = 0.0,
        timeline: Timeline | None = None,
    ) -> None:
        self._costs = costs
        self._expert_bytes = expert_bytes
        self._options = options
        self._store = store
        self._slowdown = 1.0 + link_slowdown
        self._timeline = timeline
        self._queues: tuple[deque[Entry], ...] = (deque(), deque(), deque())
        self._issue_free = 0.0
        self._ends: deque[float] = deque([0.0] * options.submitted_depth, maxlen=options.submitted_depth)
        self._landed: deque[tuple[float, int, int]] = deque()
        self._waiting = 0
        self._whole_seconds = costs.copy_seconds(expert_bytes)
        self._plain = not (options.batched or options.chunk_bytes or costs.holds_issue_thread or store)
        self.free_at = 0.0
        self.compute_busy_until = 0.0
        self.busy_seconds = 0.0
        self.issue_stall_seconds = 0.0
        self.moved = [0, 0, 0]

    def submit(self, layer: int, experts: int, band: Band, at_seconds: float) -> None:
        """Queue copies of `experts`; call `advance(at_seconds)` first. Changes state."""
        self._queues[band].append(Entry(layer, experts, band, at_seconds))
        self._waiting += experts.bit_count()

    def withdraw(self, layer: int, experts: int) -> int:
        """Drop queued copies of which nothing has moved and return their mask. Changes state."""
        dropped = 0
        for queue in self._queues:
            for entry in queue:
                if entry.layer == layer and entry.experts & experts:
                    whole = entry.experts & experts
                    if entry.left:
                        whole &= ~(entry.experts & -entry.experts)
                    entry.experts ^= whole
                    dropped |= whole
        self._waiting -= dropped.bit_count()
        return dropped

    def promote(self, layer: int, experts: int, at_seconds: float) -> None:
        """Move queued copies to the on-demand band, half-moved ones first; submitted ones stay. Changes state."""
        for queue in self._queues[1:]:
            for entry in queue:
                if entry.left and entry.layer == layer and entry.experts & -entry.experts & experts:
                    first = Entry(layer, entry.experts & -entry.experts, Band.ON_DEMAND, at_seconds)
                    first.left, entry.left = entry.left, 0
                    entry.experts ^= first.experts
                    self._queues[Band.ON_DEMAND].append(first)
        moved = self.withdraw(layer, experts)
        if moved:
            self.submit(layer, moved, Band.ON_DEMAND, at_seconds)

    def advance(self, until_seconds: float) -> None:
        """Replay every issue decision that falls at or before `until_seconds`. Changes state."""
        while self._waiting:
            entry = self._head()
            pick = self._pick_time(entry)
            if pick > until_seconds:
                return
            self._start(entry, pick, self._landed)

    def land_on_demand(self) -> list[tuple[float, int, int]]:
        """Run the on-demand queue empty and return (end, layer, expert mask) of each copy, in order.

        Nothing else can be asked of the link before the visit that waits for these copies ends, so looking
        ahead is exact. Changes state.
        """
        landed: list[tuple[float, int, int]] = []
        queue = self._queues[Band.ON_DEMAND]
        while queue:
            entry = queue[0]
            while entry.experts:
                self._start(entry, self._pick_time(entry), landed)
            queue.popleft()
        return landed

    def land_next(self, not_before: float) -> float:
        """Copy the next on-demand expert, issued no earlier than `not_before`, and return its end. Changes state."""
        queue = self._queues[Band.ON_DEMAND]
        while not queue[0].experts:
            queue.popleft()
        entry = queue[0]
        landed: list[tuple[float, int, int]] = []
        while not landed:
            self._start(entry, max(self._pick_time(entry), not_before), landed)
        return self.free_at

    def collect(self, until_seconds: float) -> tuple[tuple[int, int], ...]:
        """Advance to `until_seconds` and take the prefetches that landed, as (layer, expert mask). Changes state."""
        if self._waiting:
            self.advance(until_seconds)
        landed = self._landed
        if not landed or landed[0][0] > until_seconds:
            return ()
        by_layer: dict[int, int] = {}
        while landed and landed[0][0] <= until_seconds:
            _, layer, expert = landed.popleft()
            by_layer[layer] = by_layer.get(layer, 0) | expert
        return tuple(by_layer.items())

    def in_air(self, layer: int) -> list[tuple[float, int]]:
        """Return (end, expert mask) of the submitted copies of `layer` that have not been taken; changes nothing."""
        return [(end, expert) for end, at_layer, expert in self._landed if at_layer == layer]

    def queued(self) -> int:
        """Return how many copies wait to be issued; changes nothing."""
        return self._waiting

    def _head(self) -> Entry:
        for queue in self._queues:
            while queue:
                if queue[0].experts:
                    return queue[0]
                queue.popleft()
        raise HideawayError(
            f"{self._waiting} copies wait but no queue holds one; this is a fault in the link"
        )

    def _pick_time(self, entry: Entry) -> float:
        pick = self._issue_free
        room = self._ends[0]
        if room > pick:
            pick = room
        return pick if pick > entry.since else entry.since

    def _start(self, entry: Entry, pick: float, landed: Landed) -> None:
        if self._plain:
            self._start_plain(entry, pick, landed)
        else:
            self._start_general(entry, pick, landed)

    def _start_plain(self, entry: Entry, pick: float, landed: Landed) -> None:
        expert = entry.experts & -entry.experts
        entry.experts ^= expert
        self._waiting -= 1
        issued = pick + self._costs.issue_seconds
        start = self.free_at
        if issued > start:
            self.issue_stall_seconds += issued - max(start, entry.since)
            start = issued
        seconds = self._whole_seconds
        if start < self.compute_busy_until:
            seconds *= self._slowdown
        end = start + seconds
        self._issue_free = issued
        self._ends.append(end)
        self.free_at = end
        self.busy_seconds += seconds
        self.moved[entry.band] += 1
        landed.append((end, entry.layer, expert))
        if self._timeline is not None:
            self._log(entry, expert, pick, issued, start, end, self._expert_bytes)

    def _start_general(self, entry: Entry, pick: float, landed: Landed) -> None:
        """Issue a batch, a chunk or one copy; a pageable copy holds the issue thread to its end."""
        experts, sizes, finished = self._take(entry)
        costs = self._costs
        if self._options.batched:
            issued = pick + costs.batch_seconds + len(experts) * costs.batch_transfer_seconds
        else:
            issued = pick + costs.issue_seconds
        if issued > self.free_at:
            self.issue_stall_seconds += issued - max(self.free_at, entry.since)
        for expert, size in zip(experts, sizes, strict=True):
            ready = 0.0 if self._store is None else self._store.ready(entry.layer, expert, pick)
            start = max(issued, self.free_at, ready)
            seconds = costs.copy_seconds(size)
            if start < self.compute_busy_until:
                seconds *= self._slowdown
            self.free_at = start + seconds
            self.busy_seconds += seconds
            if finished:
                self.moved[entry.band] += 1
                landed.append((self.free_at, entry.layer, expert))
            if self._timeline is not None:
                self._log(entry, expert, pick, issued, start, self.free_at, size)
        self._issue_free = self.free_at if costs.holds_issue_thread else issued
        self._ends.append(self.free_at)

    def _take(self, entry: Entry) -> tuple[list[int], list[int], bool]:
        """Take the next unit off an entry: its experts, their bytes, and whether they are then complete."""
        if self._options.batched:
            experts = [1 << expert for expert in experts_of(entry.experts)]
            entry.experts = 0
            self._waiting -= len(experts)
            return experts, [self._expert_bytes] * len(experts), True
        expert = entry.experts & -entry.experts
        chunk = self._options.chunk_bytes or self._expert_bytes
        left = entry.left or self._expert_bytes
        size = min(chunk, left)
        entry.left = left - size
        if entry.left == 0:
            entry.experts ^= expert
            self._waiting -= 1
        return [expert], [size], entry.left == 0

    def _log(
        self, entry: Entry, expert: int, pick: float, issued: float, start: float, end: float, size: int
    ) -> None:
        timeline = self._timeline
        assert timeline is not None
        timeline.add(pick, issued, "issue", "issue", layer=entry.layer, experts=expert, band=entry.band)
        timeline.add(
            start, end, "link", "copy", layer=entry.layer, experts=expert, bytes=size, band=entry.band
        )
