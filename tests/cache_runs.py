"""A simple cache loop: events of one or more layers through an `ExpertCache` that fetches on demand only."""

from __future__ import annotations

from hideaway.sim.commands import Fetch
from hideaway.sim.expert_cache import CacheCounts, ExpertCache
from hideaway.sim.policies.prefetch.base import NoPrefetch
from hideaway.sim.residency import Residency


def run_events(eviction, events, *, slots, num_experts, resident=None) -> CacheCounts:
    """Return the counts after visiting every layer of every event, `events[i][layer]` being an expert mask."""
    num_layers = len(events[0])
    cache = ExpertCache(
        Residency([slots] * num_layers, resident),
        eviction,
        NoPrefetch(),
        num_experts=num_experts,
        top_k=1,
    )
    for event in events:
        for layer, needed in enumerate(event):
            fetched = 0
            for command in cache.visit(layer, needed, ()):
                if isinstance(command, Fetch):
                    fetched = command.experts
            cache.visit_done(layer, fetched)
    return cache.counts


def misses(eviction, events, *, slots, num_experts, resident=0) -> int:
    """Return the misses of the events of one layer."""
    counts = run_events(
        eviction,
        [[mask] for mask in events],
        slots=slots,
        num_experts=num_experts,
        resident=[resident],
    )
    return counts.needed - counts.hits
