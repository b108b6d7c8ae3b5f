"""Least recently used, with a whole layer event as one use.

Experts of one event share one age; among them the lowest id goes first. Kept as a list of uses, oldest first, each a
bitmask: a touch appends, and only the search for victims, from the youngest use on, looks at what was used again.
Source: Mattson et al., "Evaluation techniques for storage hierarchies", IBM Systems Journal 9(2), 1970.
"""

from __future__ import annotations

from hideaway.sim.masks import lowest

_LONGEST = 64
"""Uses kept before those that younger ones repeat are swept out."""


class Lru:
    """Drops the experts whose last use is oldest."""

    def __init__(self, num_layers: int, num_experts: int) -> None:
        self._uses: list[list[int]] = [[(1 << num_experts) - 1] for _ in range(num_layers)]

    def touch(self, layer: int, used: int) -> None:
        """Make the experts of one event the youngest. Changes state."""
        uses = self._uses[layer]
        uses.append(used)
        if len(uses) > _LONGEST:
            self._uses[layer] = _last_uses(uses)

    insert = touch

    def forget(self, layer: int, experts: int) -> None:
        """Nothing to forget: an expert that is gone is never a candidate."""

    def victims(self, layer: int, count: int, candidates: int) -> int:
        """Return up to `count` candidates, oldest last use first; changes nothing."""
        older = candidates
        spare = older.bit_count() - count
        if spare <= 0:
            return candidates
        for used in reversed(self._uses[layer]):
            here = older & used
            if here:
                size = here.bit_count()
                if size >= spare:
                    return older ^ here | lowest(here, size - spare)
                older ^= here
                spare -= size
        return older


def _last_uses(uses: list[int]) -> list[int]:
    """Return the uses without those that a younger one repeats, oldest first."""
    kept = []
    younger = 0
    for used in reversed(uses):
        last = used & ~younger
        if last:
            kept.append(last)
            younger |= last
    kept.reverse()
    return kept
