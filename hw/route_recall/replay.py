"""Which guesses come in time: rounds replayed over few slots and one link, with the scheduler's own slots and counts.

Slots, eviction (LRU), pins, promotion and the counts are `hideaway.sim.expert_cache`; time is this: a first-in
first-out link that takes `expert_seconds` an expert, on-demand copies before guessed ones, none broken off; a layer's
dense part and router, then its visit, then its experts once all are there; nothing between rounds, so that a guess made
before verify has only verify to hide behind. Guesses made ahead are wanted at the visit of the layer below that they
look at, those of `LATE` once its experts are done. One text after another, slots kept. What a simulation of a whole
card would add (issue cost, contention, batching) is `hideaway simulate`'s business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hideaway.hw.route_recall.guesses import BEFORE_VERIFY, LATE
from hideaway.sim.commands import Band, Cancel, Command, Fetch, Promote, Stream
from hideaway.sim.expert_cache import ExpertCache
from hideaway.sim.masks import experts_of
from hideaway.sim.policies.eviction.lru import Lru
from hideaway.sim.policies.prefetch.base import NoPrefetch, Want
from hideaway.sim.residency import Residency


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayCosts:
    """What the replayed machine takes.

    Parameters
    ----------
    slots : int
        Experts that a layer holds.
    expert_seconds : float
        To bring one expert.
    dense_seconds, experts_seconds : float
        To compute a layer's dense part and router, and its experts.
    """

    slots: int
    expert_seconds: float
    dense_seconds: float
    experts_seconds: float


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What came of the guesses of one predictor at one distance (0: before verify).

    Parameters
    ----------
    coverage : float
        Share of the needed experts that were resident or named.
    timely_coverage : float
        Of the needed experts that guesses brought or nobody had, the share that was there in time.
    hit_rate : float
        Share of the needed experts that were there when their layer was reached.
    waiting_seconds : float
        A round's waits for experts.
    moved_experts, wasted_experts : float
        Of a round: moved by guesses, and of those, used by no kept row.
    """

    predictor: str
    distance: int
    coverage: float
    timely_coverage: float
    hit_rate: float
    waiting_seconds: float
    moved_experts: float
    wasted_experts: float


class _Ahead(NoPrefetch):
    """Wants what the guess at hand says of the layer `distance` ahead; never, if it is not known at the visit."""

    prefetches = True

    def __init__(self, distance: int, *, at_visit: bool) -> None:
        self._distance = distance
        self._at_visit = at_visit
        self.named: Sequence[int] = ()

    def on_layer(self, layer: int, needed: int, ahead: Sequence[int]) -> Sequence[Want]:
        return self.wants(layer) if self._at_visit else ()

    def wants(self, layer: int) -> Sequence[Want]:
        """Return what the guess made at a layer says."""
        later = layer + self._distance
        return (Want(later, self.named[later], Band.ROUTE_AHEAD),) if later < len(self.named) else ()


class _Link:
    """Copies one expert after another; what has begun is finished. Entries are (layer, expert)."""

    def __init__(self, expert_seconds: float) -> None:
        self._each = expert_seconds
        self._urgent: list[tuple[int, int]] = []
        self._guessed: list[tuple[int, int]] = []
        self._going: tuple[int, int] | None = None
        self._done_at = 0.0

    def add(self, layer: int, experts: int, *, urgent: bool) -> None:
        queue = self._urgent if urgent else self._guessed
        queue += [(layer, expert) for expert in experts_of(experts)]

    def promote(self, layer: int, experts: int) -> None:
        moved = [copy for copy in self._guessed if copy[0] == layer and experts >> copy[1] & 1]
        self._guessed = [copy for copy in self._guessed if copy not in moved]
        self._urgent += moved

    def cancel(self, layer: int, experts: int) -> int:
        """Drop queued copies and return which they were."""
        dropped = [copy for copy in self._guessed if copy[0] == layer and experts >> copy[1] & 1]
        self._guessed = [copy for copy in self._guessed if copy not in dropped]
        return sum(1 << expert for _, expert in dropped)

    def next_arrival(self, until: float) -> tuple[float, tuple[int, int]] | None:
        """Return the next copy that is done by `until` and when, and forget it; None if there is none."""
        if self._going is None:
            queue = self._urgent or self._guessed
            if not queue:
                return None
            self._going = queue.pop(0)
            self._done_at += self._each
        if self._done_at > until:
            return None
        landed, self._going = self._going, None
        return self._done_at, landed

    def idle_until(self, now: float) -> None:
        """Let an idle link wait: what is queued next begins no earlier than `now`."""
        if self._going is None and not self._urgent and not self._guessed:
            self._done_at = max(self._done_at, now)


class Replay:
    """Rounds of one predictor at one distance over slots and a link."""

    def __init__(
        self,
        predictor: str,
        distance: int,
        costs: ReplayCosts,
        *,
        num_layers: int,
        num_experts: int,
        top_k: int,
    ) -> None:
        self._key = predictor, distance
        self._before_verify = distance == BEFORE_VERIFY
        self._late = predictor == LATE
        self._ahead = _Ahead(distance, at_visit=not (self._before_verify or self._late))
        slots = [min(costs.slots, num_experts)] * num_layers
        self.cache = ExpertCache(
            Residency(slots), Lru(num_layers, num_experts), self._ahead, num_experts=num_experts, top_k=top_k
        )
        self._costs = costs
        self._link = _Link(costs.expert_seconds)
        self._streaming: set[tuple[int, int]] = set()
        self._on_demand: set[tuple[int, int]] = set()
        self._rounds = 0
        self._waited = 0.0
        self.now = 0.0

    def round(self, named: Sequence[int], needed: Sequence[int], kept: Sequence[int]) -> None:
        """Replay one round; masks a layer of what was guessed, read, and read by kept rows. Changes state."""
        self._ahead.named = named
        if self._before_verify:
            wants = [Want(layer, experts, Band.ROUTE_AHEAD) for layer, experts in enumerate(named)]
            self._carry_out(self.cache.place_wants(wants))
        for layer, experts in enumerate(needed):
            self._visit(layer, experts)
        self.cache.round_done(tuple(kept))
        self._rounds += 1

    def result(self) -> ReplayResult:
        """Return what came of all rounds."""
        counts, rounds = self.cache.counts, max(1, self._rounds)
        wanting = counts.timely + counts.needed - counts.hits
        return ReplayResult(
            *self._key,
            counts.covered / counts.needed if counts.needed else 1.0,
            counts.timely / wanting if wanting else 1.0,
            counts.hits / counts.needed if counts.needed else 1.0,
            self._waited / rounds,
            counts.prefetched / rounds,
            counts.wasted / rounds,
        )

    def _visit(self, layer: int, needed: int) -> None:
        self._pass(self._costs.dense_seconds)
        late = self.cache.residency.in_flight[layer] & needed
        self._carry_out(self.cache.visit(layer, needed, ()))
        waited_for = {(layer, expert) for expert in experts_of(late)} | self._on_demand | self._streaming
        fetched = sum(1 << expert for _, expert in self._on_demand)
        began = self.now
        while waited_for:
            arrival = self._link.next_arrival(float("inf"))
            assert arrival is not None
            self.now = max(self.now, arrival[0])
            waited_for.discard(arrival[1])
            self._land(arrival[1])
        self._waited += self.now - began
        self.cache.visit_done(layer, fetched)
        self._pass(self._costs.experts_seconds)
        if self._late:
            self._carry_out(self.cache.place_wants(self._ahead.wants(layer)))

    def _pass(self, seconds: float) -> None:
        """Let time pass and land what arrives meanwhile. Changes state."""
        self.now += seconds
        while (arrival := self._link.next_arrival(self.now)) is not None:
            self._land(arrival[1])
        self._link.idle_until(self.now)

    def _land(self, copy: tuple[int, int]) -> None:
        for awaited in (self._on_demand, self._streaming):
            if copy in awaited:
                awaited.discard(copy)
                return
        self.cache.arrived([(copy[0], 1 << copy[1])])

    def _carry_out(self, commands: Sequence[Command]) -> None:
        for command in commands:
            if isinstance(command, Fetch):
                urgent = command.band == Band.ON_DEMAND
                if urgent:
                    self._on_demand |= {(command.layer, expert) for expert in experts_of(command.experts)}
                self._link.add(command.layer, command.experts, urgent=urgent)
            elif isinstance(command, Stream):
                self._streaming |= {(command.layer, expert) for expert in experts_of(command.experts)}
                self._link.add(command.layer, command.experts, urgent=True)
            elif isinstance(command, Promote):
                self._link.promote(command.layer, command.experts)
            elif isinstance(command, Cancel):
                dropped = self._link.cancel(command.layer, command.experts)
                self.cache.cancelled(command.layer, dropped)
