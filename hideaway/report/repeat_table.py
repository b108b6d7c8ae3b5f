"""Repeated real runs beside their simulated counterparts, for a terminal and as plain mappings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hideaway.campaigns.repeats import SHOWN_METRICS, Place, RepeatedFigure
from hideaway.report.metric_units import unit_of

_SHORT = {
    "output_tokens_per_second": "tokens/s",
    "exposed_share": "exposed",
    "exposed_seconds": "exposed s",
    "per_round_latency_seconds": "round s",
    "expert_cache_hit_rate": "hit rate",
    "moved_bytes_per_committed_token": "MB/token",
}


def repeat_table(figures: Sequence[RepeatedFigure]) -> tuple[list[str], list[list[str]]]:
    """Return columns and lines: one line a cell, each metric as real mean ± half its 95 % interval | simulated."""
    lines = []
    for place in dict.fromkeys(figure.place for figure in figures):
        by_metric = {figure.metric: figure for figure in figures if figure.place == place}
        block, count, baseline = place
        shown = [_cell(by_metric[metric]) for metric in SHOWN_METRICS]
        repeats = by_metric[SHOWN_METRICS[0]].repeats
        lines.append([str(block), str(count), baseline, str(repeats), *shown])
    return ["B", "c", "baseline", "n", *(_SHORT[metric] for metric in SHOWN_METRICS)], lines


def _cell(figure: RepeatedFigure) -> str:
    scale = 1e-6 if figure.metric == "moved_bytes_per_committed_token" else 1.0
    mean, half = figure.real.mean * scale, figure.real.half_width * scale
    text = f"{mean:.3g}" + ("" if math.isnan(half) else f" ± {half:.2g}")
    return text if figure.simulated is None else f"{text} | {figure.simulated * scale:.3g}"


def plain_figures(figures: Sequence[RepeatedFigure]) -> list[dict[str, Any]]:
    """Return the figures as mappings for JSON; an interval of one repeat is null."""
    return [
        {
            "block_size": figure.place[0],
            "concurrency": figure.place[1],
            "baseline": figure.place[2],
            "metric": figure.metric,
            "unit": unit_of(figure.metric),
            "repeats": figure.repeats,
            "real_mean": figure.real.mean,
            "real_low": _or_none(figure.real.low),
            "real_high": _or_none(figure.real.high),
            "simulated": figure.simulated,
            "relative_error": figure.relative_error,
        }
        for figure in figures
    ]


def separated_pairs(figures: Sequence[RepeatedFigure], metric: str) -> list[tuple[Place, Place]]:
    """Return the pairs of baselines of one block size and concurrency whose real intervals do not overlap.

    The first of a pair has the smaller real mean.
    """
    same = [figure for figure in figures if figure.metric == metric and not math.isnan(figure.real.low)]
    return [
        (one.place, other.place)
        for one in same
        for other in same
        if one.place[:2] == other.place[:2] and one.real.high < other.real.low
    ]


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
