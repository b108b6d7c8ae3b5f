"""What a prefetch policy is: told what is known, it names experts worth copying and in which band.

A policy names experts; the scheduler drops those that are resident or arriving, keeps to the layer's slots and
asks the eviction policy for victims. `lookahead`, `routes`, `last_rows` and `kept_rows` declare what the policy
needs to be told, so that neither world computes what nobody reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from hideaway.sim.commands import Band


class Want(NamedTuple):
    """Experts of one layer worth copying ahead."""

    layer: int
    experts: int
    band: Band


class PrefetchPolicy(Protocol):
    """Names experts to copy ahead of use."""

    lookahead: int
    """How many next layers `LayerRouted.ahead` should predict."""
    routes: bool
    """Whether the drafted blocks are routed ahead of verify (`Route`, `RouteDone`)."""
    last_rows: bool
    """Whether `ForwardDone.last_rows` is needed."""
    kept_rows: bool
    """Whether `ForwardDone.kept_rows` is needed."""
    horizon: int
    """How many layers `on_route` reads."""
    prefetches: bool
    """Whether the policy ever wants anything, so that waste is worth counting."""

    def on_route(self, predicted: Sequence[int]) -> Sequence[Want]:
        """Return wants when the union of the admitted blocks is known, one mask per layer."""
        ...

    def on_layer(self, layer: int, needed: int, ahead: Sequence[int]) -> Sequence[Want]:
        """Return wants at a layer visit; `ahead` predicts the next layers, nearest first. May change state."""
        ...

    def on_forward(self, last_rows: Sequence[int], kept_rows: Sequence[int]) -> Sequence[Want]:
        """Return wants when a forward has ended. May change state."""
        ...


class NoPrefetch:
    """Copies nothing ahead: every expert is fetched on demand. Base of the other rules."""

    lookahead = 0
    horizon = 0
    routes = False
    last_rows = False
    kept_rows = False
    prefetches = False

    def on_route(self, predicted: Sequence[int]) -> Sequence[Want]:
        """Return nothing."""
        return ()

    def on_layer(self, layer: int, needed: int, ahead: Sequence[int]) -> Sequence[Want]:
        """Return nothing."""
        return ()

    def on_forward(self, last_rows: Sequence[int], kept_rows: Sequence[int]) -> Sequence[Want]:
        """Return nothing."""
        return ()
