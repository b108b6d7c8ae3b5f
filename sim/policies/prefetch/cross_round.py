"""Cross-round: while the next block is drafted, copy what the kept rows of this round read.

The only traffic that can overlap a sequence's own draft: the drafted tokens do not exist yet, so it rests on the
committed rows alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from hideaway.sim.commands import Band
from hideaway.sim.policies.prefetch.base import NoPrefetch, PrefetchPolicy, Want


class CrossRound(NoPrefetch):
    """At the end of a forward, copies the kept rows' experts; then hands over to another rule.

    Parameters
    ----------
    then : PrefetchPolicy
        The rule that acts within the round.
    layers : int, optional
        How many of the first layers; all by default.
    """

    prefetches = True
    kept_rows = True

    def __init__(self, then: PrefetchPolicy, layers: int | None = None, band: Band = Band.BACKGROUND) -> None:
        self.lookahead = then.lookahead
        self.horizon = then.horizon
        self.routes = then.routes
        self.last_rows = then.last_rows
        self._then = then
        self._layers = layers
        self._band = band

    def on_route(self, predicted: Sequence[int]) -> Sequence[Want]:
        """Return the other rule's wants."""
        return self._then.on_route(predicted)

    def on_layer(self, layer: int, needed: int, ahead: Sequence[int]) -> Sequence[Want]:
        """Return the other rule's wants."""
        return self._then.on_layer(layer, needed, ahead)

    def on_forward(self, last_rows: Sequence[int], kept_rows: Sequence[int]) -> Sequence[Want]:
        """Return the kept rows' experts of the first layers, then the other rule's wants."""
        own = [Want(layer, experts, self._band) for layer, experts in enumerate(kept_rows[: self._layers])]
        return [*own, *self._then.on_forward(last_rows, kept_rows)]
