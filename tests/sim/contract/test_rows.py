"""One row: made with every metric or with a status, refused by name otherwise."""

import math

import numpy as np
import pytest

from hideaway.sim.contract import (
    BLOCKED_STATUS,
    REQUIRED_METRICS,
    UNAVAILABLE_CAPACITY,
    make_observation_row,
    require_offloaded,
)
from hideaway.sim.contract.rows import checked_row
from hideaway.sim.errors import InputError

IDENTITY = {"model": "m", "draft": "d", "baseline": "B1", "block_size": 16, "concurrency": 8, "repeat": 0}
METRICS = dict.fromkeys(REQUIRED_METRICS, 1.0)


def test_a_row_is_identity_then_metrics_in_their_order_then_the_rest():
    row = make_observation_row(
        **IDENTITY,
        metrics=dict(reversed(METRICS.items())) | {"exposed_seconds": -0.5},
        cost_terms={"recall": np.float64(0.75)},
        warnings=["kv estimated"],
    )
    assert list(row) == [*IDENTITY, *REQUIRED_METRICS, "exposed_seconds", "cost_terms", "warnings"]
    assert row["exposed_seconds"] == -0.5
    assert row["cost_terms"] == {"recall": 0.75}
    assert row["warnings"] == ["kv estimated"]


def test_numpy_numbers_become_plain():
    row = make_observation_row(
        **IDENTITY | {"block_size": np.int64(8)},
        metrics=METRICS | {"ttft_seconds": np.float64(2), "kv_occupancy_bytes": np.int64(7)},
    )
    assert type(row["block_size"]) is int
    assert type(row["ttft_seconds"]) is float
    assert type(row["kv_occupancy_bytes"]) is int


@pytest.mark.parametrize("metric", REQUIRED_METRICS)
def test_a_missing_metric_is_named(metric):
    metrics = {name: 1.0 for name in REQUIRED_METRICS if name != metric}
    with pytest.raises(InputError, match=f"missing metrics: {metric}"):
        make_observation_row(**IDENTITY, metrics=metrics)


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, True, None, "1"], ids=str)
def test_a_malformed_metric_is_named(value):
    with pytest.raises(InputError, match="goodput_at_slo is "):
        make_observation_row(**IDENTITY, metrics=METRICS | {"goodput_at_slo": value})


@pytest.mark.parametrize("status", [UNAVAILABLE_CAPACITY, BLOCKED_STATUS])
def test_a_row_with_a_status_carries_no_metrics(status):
    row = make_observation_row(**IDENTITY, metrics={}, status=status)
    assert row == IDENTITY | {"status": status}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"model": ""}, r"the new row\.model is empty"),
        ({"model": 3}, r"the new row\.model is 3"),
        ({"baseline": None}, r"the new row\.baseline is None"),
        ({"block_size": 0}, r"the new row\.block_size is 0"),
        ({"concurrency": 1.5}, r"the new row\.concurrency is 1\.5"),
        ({"repeat": -1}, r"the new row\.repeat is -1"),
        ({"repeat": True}, r"the new row\.repeat is True"),
        ({"status": ""}, r"the new row\.status is empty"),
        ({"metrics": None}, "metrics is None"),
        ({"metrics": METRICS | {"model": 1}}, "metrics holds 'model'"),
        ({"metrics": METRICS | {"extra": math.nan}}, "extra is nan"),
        ({"cost_terms": {"x": math.inf}}, r"cost_terms\.x"),
        ({"warnings": "one text"}, "warnings is the text"),
    ],
    ids=str,
)
def test_a_malformed_argument_is_named(change, named):
    with pytest.raises(InputError, match=named):
        make_observation_row(**{**IDENTITY, "metrics": METRICS, **change})


def test_arguments_are_keywords_only():
    with pytest.raises(TypeError):
        make_observation_row(*IDENTITY.values(), METRICS)


def test_a_row_from_outside_keeps_what_the_contract_does_not_know():
    row = IDENTITY | METRICS | {"hash": "abc", "nested": {"list": [1, None]}, "cost_terms": {"a": 1}}
    assert checked_row(row, "row 0") == row


@pytest.mark.parametrize("key", IDENTITY)
def test_a_row_from_outside_without_identity_is_refused_by_key(key):
    row = {name: value for name, value in IDENTITY.items() if name != key}
    with pytest.raises(InputError, match=f"row 4 of x has no '{key}'"):
        checked_row(row, "row 4 of x")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"ttft_seconds": "fast"}, r"row 0\.ttft_seconds"),
        ({"ttft_seconds": -1}, r"row 0\.ttft_seconds"),
        ({"status": 7}, r"row 0\.status"),
        ({"cost_terms": [1]}, r"row 0\.cost_terms"),
        ({"extra": {"deep": math.nan}}, r"row 0\.extra\.deep"),
    ],
)
def test_a_malformed_value_from_outside_is_refused_by_key(change, named):
    with pytest.raises(InputError, match=named):
        checked_row(IDENTITY | change, "row 0")


@pytest.mark.parametrize("value", [None, 3, "row", [1]])
def test_what_is_no_row_is_refused(value):
    with pytest.raises(InputError, match=r"row 0 is .* but must be an object"):
        checked_row(value, "row 0")


@pytest.mark.parametrize("baseline", ["B0", "B1", "B2"])
def test_an_offloaded_baseline_needs_offloaded_experts(baseline):
    with pytest.raises(RuntimeError, match="offloaded"):
        require_offloaded(baseline, 0)
    require_offloaded(baseline, 1)


def test_the_resident_bound_may_have_none():
    require_offloaded("B3", 0)
