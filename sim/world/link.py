"""What waits for the link: three priority bands of queued copies, advanced lazily.

The next copy is picked at the instant the issue thread can take it, so nothing is decided before it must be, and
nothing is simulated before somebody looks: `advance(t)` replays every decision up to t. A queue entry is a set
of experts of one layer, copied in ascending order. How long a copy takes is `hideaway.sim.world.copies`.

Not here: who asks for copies (`hideaway.sim.scheduler`) and what waits for them (`hideaway.sim.world.visit`).
"""

from __future__ import annotations

from collections import deque

from hideaway.sim.commands import Band
from hideaway.sim.errors import HideawayError
from hideaway.sim.masks import experts_of
from hideaway.sim.world.copies import CopyEngine, LinkOptions

Landed = deque[tuple[float, int, int]] | list[tuple[float, int, int]]
"""(end seconds, layer, expert mask) of finished copies."""


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
    """One serial link with three priority bands; first-in first-out inside a band.

    Parameters
    ----------
    copies : CopyEngine
        Times the copies.
    options : LinkOptions
        How they are issued; the same that `copies` was made with.
    """

    def __init__(self, copies: CopyEngine, options: LinkOptions) -> None:
        self.copies = copies
        self._batched = options.batched
        self._chunked = options.chunk_bytes > 0
        self._chunk_bytes = options.chunk_bytes or copies.expert_bytes
        self._queues: tuple[deque[Entry], ...] = (deque(), deque(), deque())
        self._landed: deque[tuple[float, int, int]] = deque()
        self._waiting = 0

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
        for queue in self._queues[1:] if self._chunked else ():
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
        copies = self.copies
        while self._waiting:
            entry = self._head()
            pick = copies.pick_time(entry.since)
            if pick > until_seconds:
                return
            if copies.plain:
                count = entry.experts.bit_count()
                self._note_landed(entry, copies.run(count, entry.band, entry.since, until_seconds))
            else:
                self._start(entry, pick, self._landed)

    def _note_landed(self, entry: Entry, ends: list[float]) -> None:
        """Take as many experts off an entry as have ends. Changes state."""
        layer, left, landed = entry.layer, entry.experts, self._landed
        for end in ends:
            expert = left & -left
            left ^= expert
            landed.append((end, layer, expert))
        entry.experts = left
        self._waiting -= len(ends)

    def land_on_demand(self, layer: int) -> tuple[list[float], int]:
        """Run the on-demand queue up to the last copy of `layer`; return the ends of its copies and its experts.

        Nothing else can be asked of the link before the visit that waits for these copies ends, so looking
        ahead is exact. Prefetches of other layers that a policy put into this band go first if they were first.
        Changes state.
        """
        queue = self._queues[0]
        ends: list[float] = []
        moved = 0
        last = -1
        for place, entry in enumerate(queue):
            if entry.layer == layer:
                last = place
        for _ in range(last + 1):
            entry = queue.popleft()
            if entry.layer != layer:
                self._run(entry, self._landed)
                continue
            moved |= entry.experts
            if self.copies.plain:
                count = entry.experts.bit_count()
                self._waiting -= count
                ends += self.copies.run(count, 0, entry.since)
            else:
                landed: list[tuple[float, int, int]] = []
                self._run(entry, landed)
                ends += [end for end, _, _ in landed]
        return ends, moved

    def _run(self, entry: Entry, landed: Landed) -> None:
        """Copy the whole of an entry, one unit after another. Changes state."""
        if self.copies.plain:
            self._note_landed(entry, self.copies.run(entry.experts.bit_count(), entry.band, entry.since))
        while entry.experts:
            self._start(entry, self.copies.pick_time(entry.since), landed)

    def stream(self, layer: int, expert: int, since: float, not_before: float) -> float:
        """Copy one expert past the queues, issued no earlier than `not_before`, and return its end. Changes state."""
        entry = Entry(layer, expert, Band.ON_DEMAND, since)
        self._waiting += 1
        landed: list[tuple[float, int, int]] = []
        while entry.experts:
            self._start(entry, max(self.copies.pick_time(since), not_before), landed)
        return landed[0][0]

    def collect(self, until_seconds: float) -> tuple[tuple[int, int], ...]:
        """Advance to `until_seconds` and take the prefetches that landed, as (layer, expert mask). Changes state."""
        if self._waiting:
            self.advance(until_seconds)
        landed = self._landed
        if not landed or landed[0][0] > until_seconds:
            return ()
        by_layer: dict[int, int] = {}
        while landed and landed[0][0] <= until_seconds:
            _, layer, experts = landed.popleft()
            by_layer[layer] = by_layer.get(layer, 0) | experts
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

    def _start(self, entry: Entry, pick: float, landed: Landed) -> None:
        """Copy the next unit of an entry whose copies are not plain. Changes state."""
        begun = entry.left > 0
        experts, size, finished = self._take(entry)
        ends = self.copies.copy(entry.layer, experts, size, entry.band, entry.since, pick, begun=begun)
        if finished:
            self.copies.moved[entry.band] += len(experts)
            landed.extend((end, entry.layer, expert) for end, expert in zip(ends, experts, strict=True))

    def _take(self, entry: Entry) -> tuple[list[int], int, bool]:
        """Take the next unit off an entry: its experts, the bytes of each, and whether they are then complete."""
        if self._batched:
            experts = [1 << expert for expert in experts_of(entry.experts)]
            entry.experts = 0
            self._waiting -= len(experts)
            return experts, self.copies.expert_bytes, True
        expert = entry.experts & -entry.experts
        left = entry.left or self.copies.expert_bytes
        size = min(self._chunk_bytes, left)
        entry.left = left - size
        if entry.left == 0:
            entry.experts ^= expert
            self._waiting -= 1
        return [expert], size, entry.left == 0
