"""BM5: issuing another way changes nothing visible; a hop stays only while its benchmark passes."""

import math

import pytest

from hideaway.sim.gates import (
    bm2_decision,
    bm3_decision,
    cpp_hop_verdicts,
    priority_arm,
    summarise_bm5_equivalence,
)

INVARIANTS = ["acceptance_length_a", "route_ahead_prefetch_coverage", "wasted_prefetch_bytes"]


def row(speed=100.0, **changes):
    return {
        "acceptance_length_a": 3.0,
        "route_ahead_prefetch_coverage": 0.75,
        "wasted_prefetch_bytes": 12_582_912.0,
        "output_tokens_per_second": speed,
    } | changes


def test_throughput_may_move():
    assert summarise_bm5_equivalence(python_row=row(), cpp_row=row(140.0)) == {
        "benchmark": "BM5",
        "equivalent": True,
        "mismatched": [],
        "python_tokens_per_second": 100.0,
        "cpp_tokens_per_second": 140.0,
    }


@pytest.mark.parametrize("name", INVARIANTS)
def test_nothing_else_may(name):
    summary = summarise_bm5_equivalence(python_row=row(), cpp_row=row(**{name: 0.5}))
    assert summary["equivalent"] is False
    assert summary["mismatched"] == [name]


@pytest.mark.parametrize("name", INVARIANTS)
def test_an_absent_invariant_is_a_mismatch(name):
    lacking = {key: value for key, value in row().items() if key != name}
    assert summarise_bm5_equivalence(python_row=lacking, cpp_row=row())["mismatched"] == [name]
    assert summarise_bm5_equivalence(python_row=row(), cpp_row=row(**{name: None}))["mismatched"] == [name]


def test_tolerance_is_relative_to_the_larger_value_or_one():
    big = {"python_row": row(wasted_prefetch_bytes=1e9)}
    assert summarise_bm5_equivalence(**big, cpp_row=row(wasted_prefetch_bytes=1e9 + 999))["equivalent"]
    assert not summarise_bm5_equivalence(**big, cpp_row=row(wasted_prefetch_bytes=1e9 + 1002))["equivalent"]
    small = {"python_row": row(route_ahead_prefetch_coverage=1e-9)}
    assert summarise_bm5_equivalence(**small, cpp_row=row(route_ahead_prefetch_coverage=9e-7))["equivalent"]
    assert not summarise_bm5_equivalence(**small, cpp_row=row(route_ahead_prefetch_coverage=9e-7), rel_tol=0)[
        "equivalent"
    ]


def test_throughput_that_was_not_measured_is_none():
    lacking = {key: value for key, value in row().items() if key != "output_tokens_per_second"}
    assert summarise_bm5_equivalence(python_row=lacking, cpp_row=row())["python_tokens_per_second"] is None


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"cpp_row": row(acceptance_length_a=math.nan)}, r"cpp_row\.acceptance_length_a is nan"),
        ({"python_row": row(wasted_prefetch_bytes=-1)}, r"python_row\.wasted_prefetch_bytes is -1"),
        ({"cpp_row": None}, "cpp_row is None"),
        ({"rel_tol": -1}, "rel_tol is -1"),
    ],
)
def test_malformed_rows_are_refused(change, named):
    with pytest.raises(ValueError, match=named):
        summarise_bm5_equivalence(**{"python_row": row(), "cpp_row": row(), **change})


@pytest.mark.parametrize("bm2", [None, True, False])
@pytest.mark.parametrize("bm3", [None, True, False])
def test_a_hop_is_kept_only_where_its_own_benchmark_is_there_and_passes(bm2, bm3):
    verdicts = cpp_hop_verdicts(
        bm2=None if bm2 is None else {"ship_batched": bm2, "benchmark": "BM2"},
        bm3=None if bm3 is None else {"ship_priority_band": bm3},
    )
    assert list(verdicts) == ["batched_issuance", "priority_band"]
    assert [verdict["keep"] for verdict in verdicts.values()] == [bm2 is True, bm3 is True]
    for benchmark, measured, verdict in zip(("BM2", "BM3"), (bm2, bm3), verdicts.values(), strict=True):
        assert benchmark in verdict["reason"]
        assert ("not measured" in verdict["reason"]) is (measured is None)


def test_a_report_without_its_flag_removes_the_hop():
    verdicts = cpp_hop_verdicts(bm2={"benchmark": "BM2"}, bm3=None)
    assert verdicts["batched_issuance"] == {
        "keep": False,
        "reason": "batched issuance is removed: the BM2 report has no ship_batched",
    }


def test_decisions_serve_as_reports():
    def arm(exposed):
        return priority_arm(exposed_fetch_seconds=exposed, tokens_per_second=1)

    verdicts = cpp_hop_verdicts(
        bm2=bm2_decision(900, 300, None, 500),
        bm3=bm3_decision(default=arm(1), route_ahead=arm(2), on_demand=arm(0)),
    )
    assert [verdict["keep"] for verdict in verdicts.values()] == [True, False]


@pytest.mark.parametrize("flag", ["false", 2, [True]])
def test_a_flag_that_is_no_boolean_is_refused(flag):
    with pytest.raises(ValueError, match="ship_batched of the BM2 report"):
        cpp_hop_verdicts(bm2={"ship_batched": flag}, bm3=None)
