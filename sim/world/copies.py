"""How long copies take: the serial issue thread, the units submitted to the device, the serial link.

A unit (one copy, one chunk of it, or one batch) is picked when the issue thread is free and fewer than
`submitted_depth` units are on the device; it is issued, then crosses the link: latency + bytes / bandwidth, never
interrupted. Whole pinned copies issued one by one are *plain*; runs of them have a closed form that needs no
call per copy.

Not here: which copy is next (`hideaway.sim.world.link`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from hideaway.sim.costs import LinkCosts
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.scenario.fields import Scenario
from hideaway.sim.timeline import Timeline
from hideaway.sim.world.host_store import HostStore


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """How copies are issued. Checked when built.

    Parameters
    ----------
    batched : bool
        One call issues a whole queue entry; it is then one submitted unit.
    submitted_depth : int
        Units on the device at once, the running one included; only what is not submitted can be promoted or
        cancelled.
    chunk_bytes : int
        Longer copies are divided into chunks, between which a more urgent band may cut in; 0 keeps them whole.
    streams : int
        Copy streams, each holding one copy at a time. They share the bandwidth, so together they move bytes no
        faster than one; what they hide is the latency of one copy behind the bytes of another. Copies get the
        bandwidth in the order in which they were issued, as one copy engine a direction serves them.
    """

    batched: bool = False
    submitted_depth: int = 2
    chunk_bytes: int = 0
    streams: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.streams <= self.submitted_depth or self.chunk_bytes < 0:
            raise InputError(
                f"{self.streams} copy streams, {self.submitted_depth} submitted units and chunks of {self.chunk_bytes} "
                "bytes were given; give 1 stream or more, at least as many units, and no negative chunk"
            )


def link_options(scenario: Scenario) -> LinkOptions:
    """Return how copies are issued in a scenario, in either world."""
    return LinkOptions(
        scenario.issue == "batched", scenario.submitted_depth, scenario.chunk_bytes, scenario.copy_streams
    )


class CopyEngine:
    """Times copies one after another; every method that copies changes its state.

    Attributes
    ----------
    free_at, compute_busy_until : float
        When the link has finished what was picked; until when copies are slowed by compute.
    busy_seconds, issue_stall_seconds : float
        Link time spent copying; link idle because a waiting copy was not issued yet.
    moved : list of int
        Whole experts moved, by band.
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
        self._batched = options.batched
        self._store = store
        self._slowdown = 1.0 + link_slowdown
        self._timeline = timeline
        self._issue_free = 0.0
        self._ends: deque[float] = deque([0.0] * options.submitted_depth, maxlen=options.submitted_depth)
        self._streams: deque[float] = deque([0.0] * options.streams, maxlen=options.streams)
        self._whole_seconds = costs.copy_seconds(expert_bytes)
        self._issue_seconds = costs.issue_seconds
        self.expert_bytes = expert_bytes
        self.plain = not (
            options.batched
            or options.chunk_bytes
            or options.streams > 1
            or costs.holds_issue_thread
            or store
            or timeline is not None
        )
        self.free_at = 0.0
        self.compute_busy_until = 0.0
        self.busy_seconds = 0.0
        self.issue_stall_seconds = 0.0
        self.moved = [0, 0, 0]

    def pick_time(self, since: float) -> float:
        """Return when a unit that waits since `since` can be picked; changes nothing."""
        pick = self._issue_free
        room = self._ends[0]
        if room > pick:
            pick = room
        return pick if pick > since else since

    def copy(
        self,
        layer: int,
        experts: Sequence[int],
        num_bytes: int,
        band: int,
        since: float,
        pick: float,
        *,
        begun: bool = False,
    ) -> list[float]:
        """Issue one unit at `pick` and return the end of each of its copies of `num_bytes`.

        What was `begun` by an earlier chunk is in host memory already.
        """
        costs = self._costs
        if self._batched:
            issued = pick + costs.batch_seconds + len(experts) * costs.batch_transfer_seconds
        else:
            issued = pick + costs.issue_seconds
        ends: list[float] = []
        for expert in experts:
            ready = 0.0 if begun or self._store is None else self._store.ready(layer, expert, pick)
            start = max(issued, self._streams[0], ready)
            if not ends:
                self.issue_stall_seconds += max(0.0, issued - max(self.free_at, since, ready))
            seconds = costs.copy_seconds(num_bytes)
            if start < self.compute_busy_until:
                seconds *= self._slowdown
            shared = max(0.0, self.free_at - start)
            if shared > 0.0:  # another stream still moves: only the latency runs beside it
                seconds = max(seconds, shared + num_bytes / costs.bytes_per_second)
            self.busy_seconds += seconds - shared
            self.free_at = start + seconds
            self._streams.append(self.free_at)
            ends.append(self.free_at)
            if self._timeline is not None:
                self._timeline.add(
                    start,
                    self.free_at,
                    "link",
                    "copy",
                    layer=layer,
                    experts=expert,
                    bytes=num_bytes,
                    band=band,
                )
        self._issue_free = self.free_at if costs.holds_issue_thread else issued
        self._ends.append(self.free_at)
        if self._timeline is not None:
            self._timeline.add(
                pick, self._issue_free, "issue", "issue", layer=layer, experts=sum(experts), band=band
            )
        return ends

    def run(self, count: int, band: int, since: float, until: float = float("inf")) -> list[float]:
        """Return the ends of up to `count` plain copies, one after another, those that are picked by `until`.

        They wait since `since`.
        """
        issue, whole, ends = self._issue_seconds, self._whole_seconds, self._ends
        free_at, issued, busy_until = self.free_at, self._issue_free, self.compute_busy_until
        landed: list[float] = []
        for _ in range(count):
            pick = ends[0]
            if issued > pick:
                pick = issued
            if since > pick:
                pick = since
            if pick > until:
                break
            issued = pick + issue
            if issued > free_at:
                self.issue_stall_seconds += issued - (free_at if free_at > since else since)
                free_at = issued
            seconds = whole if free_at >= busy_until else whole * self._slowdown
            self.busy_seconds += seconds
            free_at += seconds
            ends.append(free_at)
            landed.append(free_at)
        self.free_at, self._issue_free = free_at, issued
        self.moved[band] += len(landed)
        return landed

    def run_staged(
        self, count: int, since: float, finish: float, each: float, num_staging: int
    ) -> tuple[float, float]:
        """Stream `count` plain copies through staging slots, each computed for `each` seconds on its arrival.

        A copy is issued only when the slot of the copy `num_staging` before it has been computed and is free:
        r_n = max(r_{n-1}, free_{n-K}) + f_n. Compute is busy until `finish` before the first.

        Returns when the last is computed, and the seconds that compute waited.
        """
        issue, whole, ends = self._issue_seconds, self._whole_seconds, self._ends
        free_at, issued, busy_until = self.free_at, self._issue_free, self.compute_busy_until
        free = deque([since] * num_staging, maxlen=num_staging)
        waited = 0.0
        for _ in range(count):
            pick = ends[0]
            if issued > pick:
                pick = issued
            if free[0] > pick:
                pick = free[0]
            issued = pick + issue
            if issued > free_at:
                self.issue_stall_seconds += issued - (free_at if free_at > since else since)
                free_at = issued
            seconds = whole if free_at >= busy_until else whole * self._slowdown
            self.busy_seconds += seconds
            free_at += seconds
            ends.append(free_at)
            if free_at > finish:
                waited += free_at - finish
                finish = free_at
            finish += each
            free.append(finish)
        self.free_at, self._issue_free = free_at, issued
        self.moved[0] += count
        return finish, waited
