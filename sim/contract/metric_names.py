"""The frozen names of the contract: metrics in their order, baselines, statuses.

They are shared with the public experiment (EfficientMoE/MoE-Infinity, `benchmarks/dflash/`); changing one
makes old result files unreadable. What the metrics mean is defined where they are computed, in
`hideaway.sim.metrics`. Next: `hideaway.sim.contract.rows`, one measured row.
"""

from __future__ import annotations

from collections.abc import Iterable

REQUIRED_METRICS = (
    "output_tokens_per_second",
    "acceptance_length_a",
    "ttft_seconds",
    "per_round_latency_seconds",
    "goodput_at_slo",
    "expert_cache_hit_rate",
    "route_ahead_prefetch_coverage",
    "wasted_prefetch_bytes",
    "expert_occupancy_bytes",
    "kv_occupancy_bytes",
)
"""Every row without a status carries these, each a finite number >= 0; files keep this order."""

REQUIRED_BASELINES = ("B0", "B1", "B2", "B3")
"""A complete cell has a row for each."""

OFFLOADED_BASELINES = ("B0", "B1", "B2")
"""Baselines that mean nothing when every expert is resident."""

UNAVAILABLE_CAPACITY = "UNAVAILABLE_CAPACITY"
"""Status of a resident upper bound (B3) whose experts do not fit on the device."""

BLOCKED_STATUS = "BLOCKED_UNTIL_2D_SCHEDULER"
"""Status found in old files for B2; read, never written anew."""

IDENTITY_KEYS = ("model", "draft", "baseline", "block_size", "concurrency", "repeat")
"""The keys that together name one observation."""

_DISPLAY_ORDER = ("B0", "B1", "B2", "OURS", "OURS-oracle", "B3", "B3-AR")


def ordered_baselines(baselines: Iterable[str]) -> list[str]:
    """Return baseline labels in reading order: the known ones first, any others after them by name."""
    known = {label: position for position, label in enumerate(_DISPLAY_ORDER)}
    return sorted(baselines, key=lambda label: (known.get(label, len(known)), label))
