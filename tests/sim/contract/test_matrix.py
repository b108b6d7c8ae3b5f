"""Matrices: complete, well formed, grouped by cell."""

import math

import numpy as np
import pytest

from hideaway.sim.contract import (
    BLOCKED_STATUS,
    REQUIRED_BASELINES,
    REQUIRED_METRICS,
    UNAVAILABLE_CAPACITY,
    aggregate_result_matrices,
    evaluate_matrix,
    validate_result_matrix,
)


def full_matrix():
    return {baseline: dict.fromkeys(REQUIRED_METRICS, 1.0) for baseline in REQUIRED_BASELINES}


def row(baseline, **changes):
    identity = {
        "model": "M",
        "draft": "d",
        "baseline": baseline,
        "block_size": 16,
        "concurrency": 8,
        "repeat": 0,
    }
    return identity | dict.fromkeys(REQUIRED_METRICS, 1.0) | changes


def blocked_row(baseline, status):
    return {key: value for key, value in row(baseline).items() if key not in REQUIRED_METRICS} | {
        "status": status
    }


def test_metric_names_and_their_order_are_frozen():
    assert REQUIRED_METRICS == (
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
    assert REQUIRED_BASELINES == ("B0", "B1", "B2", "B3")
    assert (UNAVAILABLE_CAPACITY, BLOCKED_STATUS) == ("UNAVAILABLE_CAPACITY", "BLOCKED_UNTIL_2D_SCHEDULER")


def test_a_full_matrix_is_valid_and_further_baselines_do_no_harm():
    validate_result_matrix(full_matrix() | {"OURS": {}})


def test_missing_baselines_are_all_named_in_order():
    matrix = full_matrix()
    del matrix["B2"]
    with pytest.raises(ValueError, match="missing baselines: B2"):
        validate_result_matrix(matrix)
    del matrix["B0"]
    with pytest.raises(ValueError, match="missing baselines: B0, B2"):
        validate_result_matrix(matrix)


@pytest.mark.parametrize("baseline", REQUIRED_BASELINES)
@pytest.mark.parametrize("metric", REQUIRED_METRICS)
def test_every_metric_of_every_baseline_is_required(baseline, metric):
    matrix = full_matrix()
    del matrix[baseline][metric]
    with pytest.raises(ValueError, match=f"{baseline} has no {metric}"):
        validate_result_matrix(matrix)


@pytest.mark.parametrize("value", [True, math.nan, math.inf, -1, "1", None, [1]], ids=str)
def test_a_malformed_metric_is_refused_by_name(value):
    matrix = full_matrix()
    matrix["B1"]["ttft_seconds"] = value
    with pytest.raises(ValueError, match=r"B1\.ttft_seconds is "):
        validate_result_matrix(matrix)


def test_integers_and_numpy_scalars_are_metrics():
    matrix = full_matrix()
    matrix["B1"]["wasted_prefetch_bytes"] = 12_582_912
    matrix["B1"]["kv_occupancy_bytes"] = np.int64(3)
    validate_result_matrix(matrix)


def test_only_b3_may_be_unavailable_for_capacity():
    matrix = full_matrix() | {"B3": {"status": UNAVAILABLE_CAPACITY}}
    validate_result_matrix(matrix)
    with pytest.raises(ValueError, match="B2 has no"):
        validate_result_matrix(matrix | {"B2": {"status": UNAVAILABLE_CAPACITY}})
    with pytest.raises(ValueError, match="B3 has no"):
        validate_result_matrix(matrix | {"B3": {"status": "OK"}})
    validate_result_matrix(matrix | {"B3": full_matrix()["B3"] | {"status": "OK"}})


@pytest.mark.parametrize("matrix", [None, [], "B0"])
def test_what_is_no_matrix_is_refused(matrix):
    with pytest.raises(ValueError, match="a matrix is a mapping from baseline to row"):
        validate_result_matrix(matrix)
    with pytest.raises(ValueError, match="a matrix is a mapping from baseline to row"):
        evaluate_matrix(matrix)


def test_rows_are_grouped_by_model_block_size_and_concurrency():
    rows = [row("B0"), row("B1"), row("B0", concurrency=1), row("B0", model="N")]
    matrices = aggregate_result_matrices(rows)
    assert list(matrices) == [("M", 16, 8), ("M", 16, 1), ("N", 16, 8)]
    assert matrices["M", 16, 8] == {"B0": rows[0], "B1": rows[1]}


def test_one_baseline_twice_in_a_cell_is_refused():
    with pytest.raises(ValueError, match="duplicate baseline B0"):
        aggregate_result_matrices([row("B0"), row("B0", repeat=1)])


@pytest.mark.parametrize("key", ["model", "block_size", "concurrency", "baseline"])
def test_a_row_without_its_cell_is_refused_by_key(key):
    bad = row("B1")
    del bad[key]
    with pytest.raises(ValueError, match=f"row 1 has no '{key}'"):
        aggregate_result_matrices([row("B0"), bad])


def test_evaluation_lists_present_missing_blocked_and_invalid():
    matrix = {
        "OURS": row("OURS"),
        "B0": row("B0"),
        "B1": row("B1", ttft_seconds=-1),
        "B2": blocked_row("B2", BLOCKED_STATUS),
    }
    complete, detail = evaluate_matrix(matrix)
    assert complete is False
    assert detail == {
        "present": ["B0", "B1", "B2", "OURS"],
        "blocked": ["B2"],
        "missing": ["B3"],
        "invalid": ["B1"],
        "bm1": {},
    }


@pytest.mark.parametrize(("allowed", "expected"), [((), False), (["B2"], True), (["B3"], False)])
def test_a_blocked_baseline_counts_only_where_it_is_allowed(allowed, expected):
    matrix = {baseline: row(baseline) for baseline in REQUIRED_BASELINES}
    matrix["B2"] = blocked_row("B2", BLOCKED_STATUS)
    complete, detail = evaluate_matrix(matrix, allow_blocked=allowed)
    assert complete is expected
    assert detail["blocked"] == ["B2"]


def test_bm1_is_attached_where_both_times_are_there():
    matrix = {baseline: row(baseline) for baseline in REQUIRED_BASELINES}
    matrix["B1"] |= {"t_router_seconds": 0.002, "t_verify_seconds": 0.020}
    complete, detail = evaluate_matrix(matrix)
    assert complete is True
    assert list(detail["bm1"]) == ["B1"]
    assert detail["bm1"]["B1"]["bm1_pass"] is True


def test_a_bad_bm1_time_makes_the_baseline_invalid():
    matrix = {baseline: row(baseline) for baseline in REQUIRED_BASELINES}
    matrix["B1"] |= {"t_router_seconds": 0.002, "t_verify_seconds": 0.0}
    complete, detail = evaluate_matrix(matrix)
    assert complete is False
    assert detail["invalid"] == ["B1"]
