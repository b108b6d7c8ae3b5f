"""The scheduler's view of the expert slots: what a layer visit hits, fetches, evicts, streams and prefetches.

An event's experts are needed together and never evict each other; experts on their way are pinned. A union
larger than the slots streams the rest. Where a layer's slots hold less than one token's experts nothing is
cached. Counts of hits, coverage and waste are kept here, so that both worlds define them alike.

Next in a request's path: the world executes the commands (`hideaway.sim.world`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hideaway.sim.commands import Band, Cancel, Command, Fetch, Promote, Stream
from hideaway.sim.errors import IllegalEventError
from hideaway.sim.masks import lowest
from hideaway.sim.policies.eviction.base import BypassingPolicy, EvictionPolicy
from hideaway.sim.policies.prefetch.base import PrefetchPolicy, Want
from hideaway.sim.residency import Residency


@dataclass(slots=True)
class CacheCounts:
    """Running counts over layer visits, in experts.

    `needed` distinct experts read; `hits` of them resident before the visit's own transfers (in flight is a
    miss); `covered` resident or predicted; `timely` brought by prefetch before the first visit that reads them;
    `prefetched` brought by prefetch; `wasted` of those, used by no committed row of the round; `streamed` moved and
    not kept.
    """

    visits: int = 0
    needed: int = 0
    hits: int = 0
    covered: int = 0
    timely: int = 0
    prefetched: int = 0
    wasted: int = 0
    streamed: int = 0


class ExpertCache:
    """Slots, eviction and prefetch of all layers.

    Parameters
    ----------
    num_experts : int
        Routed experts of a layer.
    top_k : int
        Experts of one token; fewer slots than that cache nothing.
    cancel_stale : bool
        Drop queued prefetches of a layer that its visit turns out not to need.
    """

    def __init__(
        self,
        residency: Residency,
        eviction: EvictionPolicy,
        prefetch: PrefetchPolicy,
        *,
        num_experts: int,
        top_k: int,
        cancel_stale: bool = True,
    ) -> None:
        self.residency = residency
        self.prefetch = prefetch
        self.counts = CacheCounts()
        self._eviction = eviction
        self._bypass = eviction if isinstance(eviction, BypassingPolicy) else None
        self.num_experts = num_experts
        self.top_k = top_k
        self._cancel_stale = cancel_stale
        self._visiting = -1
        self._pinned = 0
        self._predicted = [0] * residency.num_layers
        self._brought = [0] * residency.num_layers
        self._moved = [0] * residency.num_layers

    def visit(self, layer: int, needed: int, ahead: tuple[int, ...]) -> list[Command]:
        """Return the transfers of one layer visit, urgent ones first. Changes state."""
        if self._visiting >= 0:
            raise IllegalEventError(
                f"layer {layer} was routed while the visit to layer {self._visiting} is going on; end that first"
            )
        residency = self.residency
        resident = residency.resident[layer]
        in_flight = residency.in_flight[layer]
        missing = needed & ~resident
        self._count_visit(layer, needed, resident)
        self._visiting, self._pinned = layer, needed
        self._eviction.touch(layer, needed)
        commands: list[Command] = []
        if in_flight:
            late = in_flight & missing
            if late:
                commands.append(Promote(layer, late))
                missing ^= late
            if self._cancel_stale and in_flight & ~needed:
                commands.append(Cancel(layer, in_flight & ~needed))
        if missing:
            self._bring(layer, missing, resident & ~needed, commands)
        wants = self.prefetch.on_layer(layer, needed, ahead)
        if wants:
            commands += self.place_wants(wants)
        return commands

    def all_resident(self) -> bool:
        """Return whether every layer has a slot for every expert, all filled; changes nothing."""
        residency = self.residency
        return all(
            mask.bit_count() == slots == self.num_experts
            for mask, slots in zip(residency.resident, residency.slots, strict=True)
        )

    def count_all_hits(self, needed: tuple[int, ...]) -> None:
        """Note a forward of a wholly resident model. Changes the counts only."""
        experts = sum(mask.bit_count() for mask in needed)
        counts = self.counts
        counts.visits += len(needed)
        counts.needed += experts
        counts.hits += experts
        counts.covered += experts

    def _count_visit(self, layer: int, needed: int, resident: int) -> None:
        counts = self.counts
        counts.visits += 1
        counts.needed += needed.bit_count()
        hits = needed & resident
        counts.hits += hits.bit_count()
        counts.covered += ((resident | self._predicted[layer]) & needed).bit_count()
        brought = self._brought[layer]
        if brought:
            counts.timely += (hits & brought).bit_count()
            self._brought[layer] = 0
        self._predicted[layer] = 0

    def _bring(self, layer: int, missing: int, candidates: int, commands: list[Command]) -> None:
        """Fetch the missing experts into slots as far as they fit, stream the rest. Changes state."""
        kept, victims = self._fit(layer, missing, candidates, may_bypass=True)
        if kept:
            self.residency.reserve(layer, kept, victims)
            if victims:
                self._eviction.forget(layer, victims)
            commands.append(Fetch(layer, kept, Band.ON_DEMAND))
        if kept != missing:
            streamed = missing ^ kept
            self.counts.streamed += streamed.bit_count()
            commands.append(Stream(layer, streamed))

    def _fit(
        self, layer: int, arriving: int, candidates: int, *, may_bypass: bool = False
    ) -> tuple[int, int]:
        """Return which arriving experts get a slot and who leaves for them; changes nothing."""
        if self.residency.slots[layer] < self.top_k:
            return 0, 0
        free = self.residency.free_slots(layer)
        if may_bypass and self._bypass is not None:
            arriving = self._bypass.keep(layer, arriving, candidates, free)
        short = arriving.bit_count() - free
        if short <= 0:
            return arriving, 0
        victims = self._eviction.victims(layer, short, candidates) if candidates else 0
        return lowest(arriving, free + victims.bit_count()), victims

    def place_wants(self, wants: Iterable[Want]) -> list[Command]:
        """Return the fetches that satisfy a prefetch policy's wants, as far as slots allow. Changes state."""
        residency = self.residency
        commands: list[Command] = []
        for layer, experts, band in wants:
            self._predicted[layer] |= experts
            resident = residency.resident[layer]
            missing = experts & ~(resident | residency.in_flight[layer])
            if not missing:
                continue
            pinned = experts | self._pinned if layer == self._visiting else experts
            kept, victims = self._fit(layer, missing, resident & ~pinned)
            if kept:
                residency.reserve(layer, kept, victims)
                if victims:
                    self._eviction.forget(layer, victims)
                self._eviction.insert(layer, kept)
                commands.append(Fetch(layer, kept, band))
        return commands

    def visit_done(self, layer: int, fetched: int) -> None:
        """Note that a visit ended with `fetched` experts brought on demand. Changes state."""
        if layer != self._visiting:
            raise IllegalEventError(
                f"layer {layer} is done but {self._visiting_text()}; report the layer visited"
            )
        if fetched:
            self.residency.arrive(layer, fetched)
        self._visiting = -1

    def _visiting_text(self) -> str:
        return (
            "no layer is being visited" if self._visiting < 0 else f"layer {self._visiting} is being visited"
        )

    def arrived(self, arrivals: Iterable[tuple[int, int]]) -> None:
        """Note prefetches that landed. Changes state."""
        for layer, experts in arrivals:
            self.residency.arrive(layer, experts)
            late = self._pinned if layer == self._visiting else 0
            self._brought[layer] |= experts & ~late
            self._moved[layer] |= experts
            self.counts.prefetched += experts.bit_count()

    def cancelled(self, layer: int, experts: int) -> None:
        """Give back the slots of prefetches that were dropped. Changes state."""
        self.residency.cancel(layer, experts)

    def round_done(self, kept_rows: tuple[int, ...]) -> None:
        """Count what this round's prefetches brought for no committed row. Changes state."""
        moved = self._moved
        for layer, kept in enumerate(kept_rows):
            if moved[layer]:
                self.counts.wasted += (moved[layer] & ~kept).bit_count()
                moved[layer] = 0
