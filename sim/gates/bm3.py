"""BM3: a priority band of its own for route-ahead prefetches ships only if it helps and harms nobody.

Three arms run the same requests and differ in the band that route-ahead prefetches are queued in. Each arm is
summed up by two medians. Next: `hideaway.sim.gates.bm4`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hideaway.sim.errors import InputError
from hideaway.sim.gates.percentiles import median
from hideaway.sim.number_checks import finite_number, shown

ON_DEMAND = 0
ROUTE_AHEAD = 1
BACKGROUND = 2

PRIORITY_BANDS = ("background", "route-ahead", "on-demand")
"""Arm names, last served first; their queue priorities are the constants above (0 is served first)."""

_PRIORITIES = {"background": BACKGROUND, "route-ahead": ROUTE_AHEAD, "on-demand": ON_DEMAND}
_SAMPLES = ("exposed_fetch_seconds", "tokens_per_second")


@dataclass(frozen=True, slots=True)
class PriorityArm:
    """Medians of one arm: seconds of transfer not hidden, and throughput."""

    exposed_fetch_seconds: float
    tokens_per_second: float

    def __post_init__(self) -> None:
        finite_number("exposed_fetch_seconds", self.exposed_fetch_seconds)
        finite_number("tokens_per_second", self.tokens_per_second)


@dataclass(frozen=True, slots=True)
class Bm3Decision:
    """The three arms, the three conditions, and whether the band ships (all three hold)."""

    default: PriorityArm
    route_ahead: PriorityArm
    on_demand: PriorityArm
    exposed_fetch_improved: bool
    throughput_preserved: bool
    on_demand_fastest: bool
    ship_priority_band: bool


def priority_arm(*, exposed_fetch_seconds: float, tokens_per_second: float) -> PriorityArm:
    """Return an arm from its two medians; InputError names one that is negative or not finite."""
    return PriorityArm(
        exposed_fetch_seconds=finite_number("exposed_fetch_seconds", exposed_fetch_seconds),
        tokens_per_second=finite_number("tokens_per_second", tokens_per_second),
    )


def bm3_decision(*, default: PriorityArm, route_ahead: PriorityArm, on_demand: PriorityArm) -> Bm3Decision:
    """Return the verdict over the three arms; `default` is the background band.

    Improved: route-ahead exposes strictly less than default. Preserved: its throughput is at least default's.
    Fastest: on-demand exposes no more than either other arm.
    """
    improved = route_ahead.exposed_fetch_seconds < default.exposed_fetch_seconds
    preserved = route_ahead.tokens_per_second >= default.tokens_per_second
    least_exposed = min(route_ahead.exposed_fetch_seconds, default.exposed_fetch_seconds)
    fastest = on_demand.exposed_fetch_seconds <= least_exposed
    return Bm3Decision(
        default=default,
        route_ahead=route_ahead,
        on_demand=on_demand,
        exposed_fetch_improved=improved,
        throughput_preserved=preserved,
        on_demand_fastest=fastest,
        ship_priority_band=improved and preserved and fastest,
    )


def build_bm3_report(
    *,
    models: Sequence[str],
    arms: Mapping[str, Mapping[str, Sequence[float]]],
    extra: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the BM3 report from samples: medians and repetitions of every arm, the conditions, the verdict.

    `arms` maps each of PRIORITY_BANDS to lists `exposed_fetch_seconds` and `tokens_per_second`, one entry a
    repetition. Keys of `extra` are added at the end.

    Raises
    ------
    InputError
        An arm or one of its lists is missing, or a sample is negative or not finite.
    """
    missing = [band for band in PRIORITY_BANDS if band not in arms]
    if missing:
        raise InputError(f"BM3 arms missing: {', '.join(missing)}; give all of {', '.join(PRIORITY_BANDS)}")
    medians = {band: _arm_from_samples(band, arms[band]) for band in PRIORITY_BANDS}
    decision = bm3_decision(
        default=medians["background"], route_ahead=medians["route-ahead"], on_demand=medians["on-demand"]
    )
    report: dict[str, Any] = {
        "benchmark": "BM3",
        "models": list(models),
        "priorities": {band: _PRIORITIES[band] for band in PRIORITY_BANDS},
        "medians": {band: {name: getattr(arm, name) for name in _SAMPLES} for band, arm in medians.items()},
        "repetitions": {band: len(arms[band]["exposed_fetch_seconds"]) for band in PRIORITY_BANDS},
        "exposed_fetch_improved": decision.exposed_fetch_improved,
        "throughput_preserved": decision.throughput_preserved,
        "on_demand_fastest": decision.on_demand_fastest,
        "ship_priority_band": decision.ship_priority_band,
    }
    return {**report, **(extra or {})}


def _arm_from_samples(band: str, samples: Mapping[str, Sequence[float]]) -> PriorityArm:
    if not isinstance(samples, Mapping):
        raise InputError(
            f"the BM3 arm {band} is {shown(samples)}; give a mapping with the lists {', '.join(_SAMPLES)}"
        )
    for name in _SAMPLES:
        if name not in samples:
            raise InputError(f"the BM3 arm {band} has no {name}; give one sample a repetition")
    return priority_arm(
        exposed_fetch_seconds=median(samples["exposed_fetch_seconds"]),
        tokens_per_second=median(samples["tokens_per_second"]),
    )
