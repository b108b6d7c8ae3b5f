"""The figures of a finished run: the contract's ten first, then those that explain them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from hideaway.sim.contract import REQUIRED_METRICS
from hideaway.sim.inputs.scenario.fields import Scenario
from hideaway.sim.metrics import Limits, Meter
from hideaway.sim.scheduler import Scheduler


class Visits(Protocol):
    """Seconds that the compute stream spent not computing (`hideaway.sim.world.visit.Visitor`)."""

    exposed_seconds: float
    issue_idle_seconds: float
    sync_seconds: float


class Copies(Protocol):
    """Seconds that the link was busy, and whole experts that it moved, by band."""

    busy_seconds: float

    @property
    def moved(self) -> Sequence[int]: ...  # noqa: D102


class FinishedWorld(Protocol):
    """What either world offers when its run is over."""

    @property
    def meter(self) -> Meter: ...  # noqa: D102
    @property
    def scheduler(self) -> Scheduler: ...  # noqa: D102
    @property
    def visits(self) -> Visits: ...  # noqa: D102
    @property
    def copies(self) -> Copies: ...  # noqa: D102


def summarise(
    scenario: Scenario, world: FinishedWorld, expert_bytes: int
) -> tuple[dict[str, float], tuple[str, ...]]:
    """Return the metrics of a run and what a reader of them should know.

    Units stand in the names; shares and counts are plain numbers. Occupancies are time means, `_peak` a peak.
    """
    meter = world.meter
    window = meter.window(scenario.closed_loop)
    limits = Limits(scenario.ttft_limit_seconds, scenario.tpot_limit_seconds)
    figures = {
        **_service(meter, window, limits),
        **_memory(world),
        **_experts(world, expert_bytes),
        **_time(world),
    }
    ordered = {name: figures.pop(name) for name in REQUIRED_METRICS}
    return {**ordered, **figures}, _warnings(scenario, world, window)


def _service(meter: Meter, window: tuple[float, float], limits: Limits) -> dict[str, float]:
    times = list(meter.requests.values())
    ttft = np.array([request.first_token_seconds - request.arrival_seconds for request in times])
    last = np.array([request.finish_seconds - request.first_token_seconds for request in times])
    tokens = np.array([request.output_tokens for request in times])
    tpot = last / np.maximum(tokens - 1, 1)
    met = (ttft <= limits.ttft_seconds) & (tpot <= limits.tpot_seconds)
    rate = meter.tokens_per_second(window)
    latencies = meter.round_latencies()
    p50, p90, p99 = np.quantile(latencies, [0.5, 0.9, 0.99]) if latencies.size else (0.0, 0.0, 0.0)
    return {
        "output_tokens_per_second": rate,
        "acceptance_length_a": meter.round_tokens / meter.rounds if meter.rounds else 1.0,
        "ttft_seconds": float(ttft.mean()),
        "per_round_latency_seconds": float(latencies.mean()) if latencies.size else 0.0,
        "goodput_at_slo": rate * float(tokens[met].sum() / tokens.sum()),
        "ttft_seconds_p99": float(np.quantile(ttft, 0.99)),
        "tpot_seconds": float(tpot.mean()),
        "per_round_latency_seconds_p50": float(p50),
        "per_round_latency_seconds_p90": float(p90),
        "per_round_latency_seconds_p99": float(p99),
        "requests_within_limits": float(met.mean()),
        "makespan_seconds": meter.end_seconds,
        "rounds": float(meter.rounds),
        "forwards": float(meter.forwards),
    }


def _memory(world: FinishedWorld) -> dict[str, float]:
    meter, kv = world.meter, world.scheduler.batch.kv
    seconds = meter.occupied_seconds or 1.0
    return {
        "expert_occupancy_bytes": meter.occupied_expert_bytes / seconds,
        "kv_occupancy_bytes": meter.occupied_kv_bytes / seconds,
        "kv_occupancy_bytes_peak": float(kv.peak_bytes),
        "preemptions": float(world.scheduler.batch.preemptions),
    }


def _experts(world: FinishedWorld, expert_bytes: int) -> dict[str, float]:
    counts, copies, meter = world.scheduler.cache.counts, world.copies, world.meter
    missed = counts.needed - counts.hits
    committed = meter.round_tokens or 1
    return {
        "expert_cache_hit_rate": counts.hits / counts.needed if counts.needed else 1.0,
        "route_ahead_prefetch_coverage": counts.covered / counts.needed if counts.needed else 1.0,
        "wasted_prefetch_bytes": float(counts.wasted * expert_bytes),
        "timely_coverage": counts.timely / (counts.timely + missed) if counts.timely + missed else 1.0,
        "prefetched_bytes": float(counts.prefetched * expert_bytes),
        "moved_bytes": float(sum(copies.moved) * expert_bytes),
        "moved_bytes_per_committed_token": sum(copies.moved) * expert_bytes / committed,
        "experts_per_visit": counts.needed / counts.visits if counts.visits else 0.0,
        "misses_per_visit": missed / counts.visits if counts.visits else 0.0,
        "layer_visits": float(counts.visits),
    }


def _time(world: FinishedWorld) -> dict[str, float]:
    meter, visits, copies = world.meter, world.visits, world.copies
    busy = meter.forward_seconds + meter.draft_seconds + meter.route_seconds
    forwards = meter.forwards or 1
    seated, waited = world.scheduler.seated_rounds, world.scheduler.waited_rounds
    return {
        "exposed_seconds": visits.exposed_seconds,
        "exposed_seconds_per_forward": visits.exposed_seconds / forwards,
        "exposed_share": visits.exposed_seconds / busy if busy else 0.0,
        "issue_idle_seconds": visits.issue_idle_seconds,
        "sync_seconds": visits.sync_seconds,
        "draft_seconds": meter.draft_seconds,
        "route_seconds": meter.route_seconds,
        "forward_seconds": meter.forward_seconds,
        "link_busy_share": copies.busy_seconds / meter.end_seconds if meter.end_seconds else 0.0,
        "seated_share": seated / (seated + waited) if seated + waited else 1.0,
    }


def _warnings(scenario: Scenario, world: FinishedWorld, window: tuple[float, float]) -> tuple[str, ...]:
    found = []
    if scenario.closed_loop is not None and window == (0.0, world.meter.end_seconds):
        found.append(
            "throughput counts the whole run: the window between first wave and last admission is too short; "
            "ask for more requests"
        )
    if world.scheduler.batch.preemptions:
        found.append(
            f"{world.scheduler.batch.preemptions} sequences were preempted for KV memory and recomputed"
        )
    return tuple(found)


def offloading(metrics: Mapping[str, float], group_launch_seconds: float) -> dict[str, float]:
    """Return what offloading costs beyond waiting: every expert that arrives late is launched by itself.

    `arrival_launch_seconds` is that launch times the experts that were no hits; `offload_seconds` adds exposed,
    issue idle and synchronisation; `offload_share` is its share of the engine's busy time. Slowed compute while
    the link is busy is not in it.
    """
    launches = metrics["misses_per_visit"] * metrics["layer_visits"] * group_launch_seconds
    waits = metrics["exposed_seconds"] + metrics["issue_idle_seconds"] + metrics["sync_seconds"]
    busy = metrics["forward_seconds"] + metrics["draft_seconds"] + metrics["route_seconds"]
    return {
        "arrival_launch_seconds": launches,
        "offload_seconds": launches + waits,
        "offload_share": (launches + waits) / busy if busy else 0.0,
    }
