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
    num_layers : int
        Layers of the model.
    exact_depth : int
        Layers that the pass after the draft knows exactly; their prediction is not renewed.
    lookahead : int
        Further layers named after the draft, and layers whose prediction is renewed at each visit. Farther ones
        wait: copies on a poor guess displace experts that are needed.
    band : Band
        Band of the copies (gate BM3 compares the three).
    """

    prefetches = True
    routes = True

    def __init__(
        self, num_layers: int, *, exact_depth: int = 1, lookahead: int = 1, band: Band = Band.ROUTE_AHEAD
    ) -> None:
        self.lookahead = lookahead if exact_depth < num_layers else 0
        self._exact_depth = exact_depth
        self.horizon = min(num_layers, exact_depth + lookahead)
        self._band = band

    def on_route(self, predicted: Sequence[int]) -> Sequence[Want]:
        """Return the named experts of the exactly known layers and the next few."""
        return [Want(layer, experts, self._band) for layer, experts in enumerate(predicted[: self.horizon])]

    def on_layer(self, layer: int, needed: int, ahead: Sequence[int]) -> Sequence[Want]:
        """Return the renewed prediction of the next layers, where it is no worse than what is known."""
        if not ahead:
            return []
        first = self._exact_depth - layer
        if first <= 1 == len(ahead):
            return [Want(layer + 1, ahead[0], self._band)]
        return [
            Want(layer + distance, experts, self._band)
            for distance, experts in enumerate(ahead, start=1)
            if distance >= first
        ]
