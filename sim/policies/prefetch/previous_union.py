"""The previous round's union: the next layer will read what the whole previous forward read there.

The speculative counterpart of the previous-token rule: it includes the rows that were rejected.
"""

from __future__ import annotations

from collections.abc import Sequence

from hideaway.sim.commands import Band
from hideaway.sim.policies.prefetch.base import NoPrefetch, Want


class PreviousUnion(NoPrefetch):
    """At layer l, copies what the previous forward read in the next layers.

    Parameters
    ----------
    depth : int
        How many layers ahead.
    """

    prefetches = True

    def __init__(self, num_layers: int, depth: int = 1, band: Band = Band.BACKGROUND) -> None:
        self._unions = [0] * num_layers
        self._depth = depth
        self._band = band

    def on_layer(self, layer: int, needed: int, ahead: Sequence[int]) -> Sequence[Want]:
        """Return the previous unions of the next layers and remember this one. Changes state."""
        unions = self._unions
        unions[layer] = needed
        last = min(layer + self._depth, len(unions) - 1)
        return [Want(below, unions[below], self._band) for below in range(layer + 1, last + 1)]

    def on_forward(self, last_rows: Sequence[int], kept_rows: Sequence[int]) -> Sequence[Want]:
        """Return the previous unions of the first layers."""
        return [
            Want(layer, self._unions[layer], self._band)
            for layer in range(min(self._depth, len(self._unions)))
        ]
