"""The autoregressive prefetcher: the next layer will read what each sequence's previous token read there.

Source: token-to-token expert reuse, as used by the activation-aware prefetchers of autoregressive offload engines
(L. Xue et al., "MoE-Infinity", arXiv:2401.14361, section 4, reduced to the most recent token).
"""

from __future__ import annotations

from collections.abc import Sequence

from hideaway.sim.commands import Band
from hideaway.sim.policies.prefetch.base import NoPrefetch, Want


class PreviousToken(NoPrefetch):
    """At layer l, copies the previous tokens' experts of the next layers.

    Parameters
    ----------
    depth : int
        How many layers ahead.
    """

    prefetches = True
    last_rows = True

    def __init__(self, num_layers: int, depth: int = 1, band: Band = Band.BACKGROUND) -> None:
        self._previous = [0] * num_layers
        self._depth = depth
        self._band = band

    def on_layer(self, layer: int, needed: int, ahead: Sequence[int]) -> Sequence[Want]:
        """Return the previous tokens' experts of the next `depth` layers."""
        previous = self._previous
        last = min(layer + self._depth, len(previous) - 1)
        return [Want(below, previous[below], self._band) for below in range(layer + 1, last + 1)]

    def on_forward(self, last_rows: Sequence[int], kept_rows: Sequence[int]) -> Sequence[Want]:
        """Remember the last committed rows and ask for the first layers of the next forward. Changes state."""
        self._previous = list(last_rows)
        return [
            Want(layer, self._previous[layer], self._band)
            for layer in range(min(self._depth, len(last_rows)))
        ]
