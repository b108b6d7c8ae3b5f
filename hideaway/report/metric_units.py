"""The unit of a metric, read off its name, and the rows of a metrics table."""

from __future__ import annotations

from collections.abc import Mapping

_SUFFIXES = (
    ("tokens_per_second", "tokens/s"),
    ("goodput_at_slo", "tokens/s"),
    ("bytes_per_committed_token", "bytes/token"),
    ("seconds_per_forward", "s/forward"),
    ("_seconds", "s"),
    ("_bytes", "bytes"),
    ("length_a", "tokens/round"),
    ("_per_visit", "experts/visit"),
    ("_rate", "share"),
    ("_share", "share"),
    ("_coverage", "share"),
    ("_within_limits", "share"),
)


def unit_of(metric: str) -> str:
    """Return the unit of a metric.

    >>> unit_of("ttft_seconds_p99")
    's'
    """
    stem = metric.rsplit("_p", 1)[0] if metric.rsplit("_", 1)[-1] in {"p50", "p90", "p99", "peak"} else metric
    return next((unit for suffix, unit in _SUFFIXES if stem.endswith(suffix)), "count")


def metric_rows(metrics: Mapping[str, float]) -> list[tuple[str, str, str]]:
    """Return (name, value, unit) of each metric for a table."""
    return [(name, f"{value:,.6g}", unit_of(name)) for name, value in metrics.items()]
