"""Route-ahead: copy what the router says the drafted block will read.

After the draft, every layer's set is named at once: exact for the first `router_exact_depth` layers, predicted
beyond them. At each layer visit the prediction of the next layers is renewed, since it is better from nearer.
Source: the route-ahead prefetch of the PD-DFlash serving plan (EfficientMoE/MoE-Infinity,
docs/design/pd-dflash-moe-serving.md), with causality as this project's design states it.
"""

from __future__ import annotations

from collections.abc import Sequence

from hideaway.sim.commands import Band
from hideaway.sim.policies.prefetch.base import NoPrefetch, Want


class RouteAhead(NoPrefetch):
    """Copies the drafted block's experts layer by layer, nearest layer first.

    Parameters
    ----------
    lookahead : int
        Layers whose prediction is renewed at each visit; 0 relies on the pass after the draft.
    horizon : int
        Layers named after the draft; the rest wait for the renewed prediction.
    band : Band
        Band of the copies (gate BM3 compares the three).
    """

    prefetches = True
    routes = True

    def __init__(
        self, num_layers: int, lookahead: int = 1, horizon: int | None = None, band: Band = Band.ROUTE_AHEAD
    ) -> None:
        self.lookahead = lookahead
        self._horizon = num_layers if horizon is None else horizon
        self._band = band

    def on_route(self, predicted: Sequence[int]) -> Sequence[Want]:
        """Return the named experts of the first `horizon` layers."""
        return [Want(layer, experts, self._band) for layer, experts in enumerate(predicted[: self._horizon])]

    def on_layer(self, layer: int, needed: int, ahead: Sequence[int]) -> Sequence[Want]:
        """Return the renewed prediction of the next layers."""
        return [
            Want(layer + distance, experts, self._band) for distance, experts in enumerate(ahead, start=1)
        ]
