"""Least recently used, with a whole layer event as one use.

Experts of one event share one age; among them the lowest id goes first. Kept as a list of generations, oldest
first, each a bitmask, so that a touch costs a few integer operations however many experts it names.
Source: Mattson et al., "Evaluation techniques for storage hierarchies", IBM Systems Journal 9(2), 1970.
"""

from __future__ import annotations

from hideaway.sim.masks import lowest


class Lru:
    """Drops the experts whose last use is oldest."""

    def __init__(self, num_layers: int, num_experts: int) -> None:
        self._generations: list[list[int]] = [[(1 << num_experts) - 1] for _ in range(num_layers)]

    def touch(self, layer: int, used: int) -> None:
        """Make the experts of one event the youngest generation. Changes state."""
        keep = ~used
        older = [rest for generation in self._generations[layer] if (rest := generation & keep)]
        older.append(used)
        self._generations[layer] = older

    insert = touch

    def forget(self, layer: int, experts: int) -> None:
        """Nothing to forget: an expert that is gone is never a candidate."""

    def victims(self, layer: int, count: int, candidates: int) -> int:
        """Return up to `count` candidates, oldest generation first; changes nothing."""
        chosen = 0
        for generation in self._generations[layer]:
            here = generation & candidates
            if here:
                size = here.bit_count()
                if size >= count:
                    return chosen | lowest(here, count)
                chosen |= here
                count -= size
        return chosen
