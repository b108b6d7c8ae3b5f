"""Each gate passes, fails or is not measured, for a reason."""

import pytest

from hideaway.sim.gates import bm3_decision, priority_arm
from hideaway.sim.verdicts import GateMeasurements, judge_gates
from hideaway.sim.verdicts.measurements import Bm2Measurement, Bm3Measurement, Bm4Measurement, Bm5Measurement

CAPTURE = {
    "source": "capture",
    "total_h2d_bytes": 100.0,
    "overlapped_h2d_bytes": 20.0,
    "h2d_bytes_per_second": 100.0,
    "draft_seconds": 0.5,
    "router_seconds": 0.1,
    "verify_seconds": 0.4,
}


def judge(**measured):
    report = judge_gates(GateMeasurements(**measured))
    return {verdict.gate: verdict for verdict in report.verdicts}, report.hops


def test_nothing_measured_is_not_measured_everywhere_and_removes_both_hops():
    verdicts, hops = judge()
    assert list(verdicts) == ["BM1", "BM2", "BM3", "BM4", "BM5"]
    for verdict in verdicts.values():
        assert (verdict.outcome, verdict.value, verdict.limit, verdict.origin) == (
            "not measured",
            None,
            None,
            "none",
        )
        assert verdict.reason
    assert not any(hop["keep"] for hop in hops.values())


def row(router, verify, **changes):
    times = {"t_router_seconds": router, "t_verify_seconds": verify}
    return {"baseline": "OURS", "model": "m", "cost_terms": times} | changes


def test_bm1_is_judged_on_the_worst_row():
    verdicts, _ = judge(rows=(row(0.1, 1.0), row(0.5, 1.0), {"baseline": "B0", "model": "m"}))
    assert (verdicts["BM1"].outcome, verdicts["BM1"].value) == ("pass", 0.5)
    assert "worst of 2" in verdicts["BM1"].reason
    verdicts, _ = judge(rows=(row(0.1, 1.0), row(1.0, 1.0)))
    assert (verdicts["BM1"].outcome, verdicts["BM1"].value) == ("fail", 1.0)


def test_bm1_prefers_the_rows_own_times_to_the_capture():
    capture = Bm4Measurement(**CAPTURE)
    assert judge(bm4=capture)[0]["BM1"].value == 0.25
    assert judge(rows=(row(0.1, 1.0),), bm4=capture)[0]["BM1"].value == 0.1
    assert judge(rows=(row(None, 1.0),), bm4=capture)[0]["BM1"].value == 0.25


@pytest.mark.parametrize(
    ("per_expert", "batched", "outcome", "keep"),
    [
        (900.0, 300.0, "pass", True),
        (900.0, 600.0, "fail", False),
        (400.0, 300.0, "fail", False),
        (900.0, None, "not measured", False),
        (None, 300.0, "not measured", False),
    ],
)
def test_bm2_and_its_hop(per_expert, batched, outcome, keep):
    measured = Bm2Measurement(source="file", per_expert_us=per_expert, batched_us=batched, window_us=500.0)
    verdicts, hops = judge(bm2=measured)
    assert verdicts["BM2"].outcome == outcome
    assert hops["batched_issuance"]["keep"] is keep


@pytest.mark.parametrize(("rounds", "window_us"), [(None, 800_000.0), (4, 200_000.0)])
def test_bm2_takes_the_window_of_one_round_from_the_capture(rounds, window_us):
    capture = Bm4Measurement(**CAPTURE, num_rounds=rounds)
    verdicts, _ = judge(bm2=Bm2Measurement(source="file", per_expert_us=1.0), bm4=capture)
    assert verdicts["BM2"].limit == pytest.approx(window_us)


def test_bm2_without_any_window_is_not_measured():
    verdicts, hops = judge(bm2=Bm2Measurement(source="file", per_expert_us=900.0, batched_us=1.0))
    assert verdicts["BM2"].outcome == "not measured"
    assert "no hide window" in verdicts["BM2"].reason
    assert hops["batched_issuance"]["keep"] is False


def decision(route_ahead):
    def arm(exposed, speed):
        return priority_arm(exposed_fetch_seconds=exposed, tokens_per_second=speed)

    return bm3_decision(default=arm(0.02, 100), route_ahead=arm(*route_ahead), on_demand=arm(0.005, 100))


GOOD, BAD = decision((0.01, 101)), decision((0.01, 99))


@pytest.mark.parametrize(
    ("decisions", "outcome"),
    [((GOOD,), "pass"), ((BAD,), "fail"), ((GOOD, BAD, GOOD), "fail"), ((GOOD, GOOD), "pass")],
)
def test_bm3_must_pass_on_every_model(decisions, outcome):
    named = tuple((f"model {index}", one) for index, one in enumerate(decisions))
    verdicts, hops = judge(bm3=Bm3Measurement(source="file", decisions=named))
    assert (verdicts["BM3"].outcome, verdicts["BM3"].value, verdicts["BM3"].limit) == (outcome, 0.01, 0.02)
    assert ("is lost" in verdicts["BM3"].reason) is (outcome == "fail")
    assert hops["priority_band"]["keep"] is (outcome == "pass")


@pytest.mark.parametrize(("ship", "outcome"), [(True, "pass"), (False, "fail")])
def test_bm3_verdict_alone_is_quoted(ship, outcome):
    verdicts, hops = judge(bm3=Bm3Measurement(source="file", quoted_ship=ship))
    assert (verdicts["BM3"].outcome, verdicts["BM3"].origin) == (outcome, "quoted")
    assert hops["priority_band"]["keep"] is ship


def test_bm4_passes_when_the_bytes_fit_the_window():
    verdicts, _ = judge(bm4=Bm4Measurement(**CAPTURE))
    bm4 = verdicts["BM4"]
    assert (bm4.outcome, bm4.value, bm4.limit) == ("fail", 1.0, pytest.approx(0.8))
    verdicts, _ = judge(bm4=Bm4Measurement(**CAPTURE | {"draft_seconds": 0.7}))
    assert verdicts["BM4"].outcome == "pass"


def test_a_term_of_zero_is_a_measurement():
    verdicts, _ = judge(bm4=Bm4Measurement(**CAPTURE | {"draft_seconds": 0.0, "overlapped_h2d_bytes": 0.0}))
    assert verdicts["BM4"].limit == 0.1


@pytest.mark.parametrize(
    ("absent", "named"),
    [
        ("total_h2d_bytes", "total_h2d_bytes"),
        ("h2d_bytes_per_second", "measured_h2d_bytes_per_second, overlap_with_prev_verify_seconds"),
        ("draft_seconds", "t_draft_seconds"),
        ("router_seconds", "t_router_seconds"),
        ("overlapped_h2d_bytes", "overlap_with_prev_verify_seconds"),
    ],
)
def test_bm4_without_a_term_is_not_measured_and_names_it(absent, named):
    verdicts, _ = judge(
        bm4=Bm4Measurement(**{name: value for name, value in CAPTURE.items() if name != absent})
    )
    assert verdicts["BM4"].outcome == "not measured"
    assert verdicts["BM4"].reason.startswith(f"{named} absent from capture")


def test_bm4_is_judged_on_the_row_with_the_least_margin():
    terms = {
        "total_h2d_bytes": 50.0,
        "measured_h2d_bytes_per_second": 100.0,
        "t_draft_seconds": 1.0,
        "t_router_seconds": 0.0,
        "overlap_with_prev_verify_seconds": 0.0,
    }
    easy = {"baseline": "OURS", "model": "easy", **terms}
    hard = {"baseline": "OURS", "model": "hard", "cost_terms": terms | {"total_h2d_bytes": 99.0}}
    verdicts, _ = judge(rows=(easy, hard))
    assert (verdicts["BM4"].outcome, verdicts["BM4"].value) == ("pass", 0.99)
    assert "row OURS of hard" in verdicts["BM4"].reason
    verdicts, _ = judge(rows=(easy, hard), bm4=Bm4Measurement(**CAPTURE))
    assert (verdicts["BM4"].outcome, verdicts["BM4"].value) == ("fail", 1.0)


SAME = {"acceptance_length_a": 3.0, "route_ahead_prefetch_coverage": 0.5, "wasted_prefetch_bytes": 100.0}


@pytest.mark.parametrize(
    ("change", "outcome", "value"),
    [
        ({}, "pass", 0.0),
        ({"acceptance_length_a": 4.0}, "fail", 0.25),
        ({"wasted_prefetch_bytes": None}, "fail", 0.0),
    ],
)
def test_bm5_compares_all_but_throughput(change, outcome, value):
    measured = Bm5Measurement(
        source="file",
        python_row=SAME | {"output_tokens_per_second": 10.0},
        cpp_row=SAME | {"output_tokens_per_second": 20.0} | change,
    )
    verdict = judge(bm5=measured)[0]["BM5"]
    assert (verdict.outcome, verdict.value, verdict.limit) == (outcome, value, 1e-6)
    assert "10 → 20 tokens/s" in verdict.reason
    assert all(name in verdict.reason for name in change)


def test_bytes_that_overlap_cannot_exceed_all_bytes():
    with pytest.raises(ValueError, match="overlapped_h2d_bytes is 101"):
        Bm4Measurement(**CAPTURE | {"overlapped_h2d_bytes": 101.0})
    with pytest.raises(ValueError, match="overlapped_h2d_bytes is 30"):
        Bm4Measurement(source="a", total_h2d_bytes=20.0).filled_from(
            Bm4Measurement(source="b", overlapped_h2d_bytes=30.0)
        )
