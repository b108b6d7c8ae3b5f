"""The figures of a run from hand-made counts and times."""

from types import SimpleNamespace

import pytest

from hideaway.sim.contract import REQUIRED_METRICS
from hideaway.sim.expert_cache import CacheCounts
from hideaway.sim.inputs.scenario import Scenario
from hideaway.sim.metrics import Meter
from hideaway.sim.world.summary import summarise


def world_of(meter, *, counts=None, moved=(0, 0, 0), preemptions=0, seated=(0, 0), busy_seconds=0.0):
    """Return what `summarise` looks at of a world."""
    return SimpleNamespace(
        meter=meter,
        copies=SimpleNamespace(moved=list(moved), busy_seconds=busy_seconds),
        visits=SimpleNamespace(exposed_seconds=1.5, issue_idle_seconds=0.25, sync_seconds=0.5),
        scheduler=SimpleNamespace(
            batch=SimpleNamespace(kv=SimpleNamespace(peak_bytes=77), preemptions=preemptions),
            cache=SimpleNamespace(counts=counts or CacheCounts()),
            seated_rounds=seated[0],
            waited_rounds=seated[1],
        ),
    )


def two_requests():
    """Request 0: TTFT 1 s, 5 tokens by 3 s (TPOT 0.5 s); request 1: TTFT 3 s, 3 tokens by 12 s (TPOT 4 s)."""
    meter = Meter()
    meter.arrived(0, 0.0, 5)
    meter.arrived(1, 1.0, 3)
    meter.first_token(0, 1.0)
    meter.round(0, 2.0, 3)
    meter.round(0, 3.0, 1)
    meter.finished(0, 3.0)
    meter.first_token(1, 4.0)
    meter.round(1, 12.0, 2)
    meter.finished(1, 12.0)
    meter.forward(0.0, 4.0, expert_bytes=100, kv_bytes=8)
    meter.forward(4.0, 12.0, expert_bytes=400, kv_bytes=2)
    meter.draft_seconds = 3.0
    return meter


def figures(world, expert_bytes=10, **fields):
    return summarise(Scenario(**{"rate": 1.0, **fields}), world, expert_bytes)


def test_the_contracts_figures_come_first_and_in_its_order():
    metrics, _ = figures(world_of(two_requests()))
    assert tuple(metrics)[: len(REQUIRED_METRICS)] == REQUIRED_METRICS


def test_service_figures_of_an_open_loop():
    metrics, _ = figures(world_of(two_requests()))
    assert metrics["output_tokens_per_second"] == 8 / 12
    assert metrics["acceptance_length_a"] == 6 / 3
    assert metrics["ttft_seconds"] == 2.0
    assert metrics["tpot_seconds"] == (0.5 + 4.0) / 2
    assert metrics["per_round_latency_seconds"] == pytest.approx((1.0 + 1.0 + 8.0) / 3)
    assert metrics["per_round_latency_seconds_p50"] == 1.0
    assert metrics["makespan_seconds"] == 12.0


@pytest.mark.parametrize(
    ("ttft", "tpot", "good_tokens"),
    [(3.0, 4.0, 8), (3.0, 3.9, 5), (2.9, 4.0, 5), (0.9, 9.0, 0), (1.0, 0.5, 5)],
)
def test_goodput_counts_the_tokens_of_requests_that_met_both_limits(ttft, tpot, good_tokens):
    metrics, _ = figures(world_of(two_requests()), ttft_limit_seconds=ttft, tpot_limit_seconds=tpot)
    assert metrics["goodput_at_slo"] == pytest.approx(good_tokens / 12)


def test_occupancies_are_means_over_time_and_peaks_are_named_so():
    metrics, _ = figures(world_of(two_requests()))
    assert metrics["expert_occupancy_bytes"] == (4 * 100 + 8 * 400) / 12
    assert metrics["kv_occupancy_bytes"] == (4 * 8 + 8 * 2) / 12
    assert metrics["kv_occupancy_bytes_peak"] == 77


def test_expert_figures_are_shares_of_the_distinct_experts_needed():
    counts = CacheCounts(
        visits=4, needed=40, hits=30, covered=36, timely=5, prefetched=9, wasted=3, streamed=2
    )
    metrics, _ = figures(world_of(two_requests(), counts=counts, moved=(10, 8, 1)))
    assert metrics["expert_cache_hit_rate"] == 0.75
    assert metrics["route_ahead_prefetch_coverage"] == 0.9
    assert metrics["timely_coverage"] == 5 / 15
    assert metrics["wasted_prefetch_bytes"] == 30
    assert metrics["moved_bytes"] == 190
    assert metrics["moved_bytes_per_committed_token"] == 190 / 6
    assert (metrics["experts_per_visit"], metrics["misses_per_visit"]) == (10, 2.5)


def test_a_run_that_needed_nothing_has_perfect_coverage():
    metrics, _ = figures(world_of(two_requests()))
    names = ("expert_cache_hit_rate", "route_ahead_prefetch_coverage", "timely_coverage", "seated_share")
    assert [metrics[name] for name in names] == [1.0] * 4


def test_exposed_share_is_of_the_time_that_compute_was_at_work():
    metrics, _ = figures(world_of(two_requests(), busy_seconds=6.0, seated=(3, 1)))
    assert metrics["exposed_share"] == 1.5 / (12.0 + 3.0)
    assert metrics["link_busy_share"] == 0.5
    assert metrics["seated_share"] == 0.75
    assert (metrics["issue_idle_seconds"], metrics["sync_seconds"]) == (0.25, 0.5)


def test_requests_of_one_token_have_no_rounds_and_no_time_per_further_token():
    meter = Meter()
    meter.arrived(0, 0.0, 1)
    meter.first_token(0, 2.0)
    meter.finished(0, 2.0)
    metrics, _ = figures(world_of(meter))
    assert metrics["acceptance_length_a"] == 1.0
    assert metrics["tpot_seconds"] == metrics["per_round_latency_seconds"] == 0.0
    assert metrics["output_tokens_per_second"] == 0.5


def test_a_reader_is_told_of_preemptions_and_of_a_window_too_short():
    _, warnings = figures(world_of(two_requests(), preemptions=3), rate=None, concurrency=2)
    assert len(warnings) == 2
    assert "throughput counts the whole run" in warnings[0]
    assert warnings[1].startswith("3 sequences were preempted")
    assert figures(world_of(two_requests()))[1] == ()
