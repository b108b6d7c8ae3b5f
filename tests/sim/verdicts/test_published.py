"""What the public experiment published loads as it is and is judged."""

import json

import pytest

from hideaway.sim.contract import (
    REQUIRED_METRICS,
    aggregate_result_matrices,
    evaluate_matrix,
    load_observations,
    validate_result_matrix,
)
from hideaway.sim.contract.writers import write_rows_json
from hideaway.sim.verdicts import GateMeasurements, judge_gates, judge_rows, read_bm2, read_bm3, read_bm4
from hideaway.sim.verdicts.published import (
    PUBLISHED_BM2,
    PUBLISHED_BM3,
    PUBLISHED_BM4,
    PUBLISHED_FOLDER,
    PUBLISHED_ROWS,
)

ROW_FILES = sorted(PUBLISHED_ROWS.glob("*.json"))


@pytest.fixture(scope="module")
def capture():
    first, *others = (read_bm4(path) for path in PUBLISHED_BM4)
    for other in others:
        first = first.filled_from(other)
    return first


@pytest.fixture(scope="module")
def verdicts(capture):
    rows = tuple(row for path in ROW_FILES for row in load_observations(path))
    measured = GateMeasurements(
        rows=rows, bm2=read_bm2(PUBLISHED_BM2), bm3=read_bm3(PUBLISHED_BM3), bm4=capture
    )
    return judge_gates(measured)


def test_there_are_three_row_files_and_every_file_is_named_in_the_readme():
    assert [path.name for path in ROW_FILES] == [
        "gptoss-bm4-46808a3.json",
        "gptoss-bm4-619d2a7.json",
        "gptoss-validate-619d2a7.json",
    ]
    readme = (PUBLISHED_FOLDER / "README.md").read_text()
    for path in PUBLISHED_FOLDER.rglob("*"):
        if path.is_file() and path.name != "README.md":
            assert f"`{path.relative_to(PUBLISHED_FOLDER)}`" in readme


@pytest.mark.parametrize("path", ROW_FILES, ids=lambda path: path.stem)
def test_a_published_row_loads_as_it_is_and_survives_being_written(path, tmp_path):
    rows = load_observations(path)
    assert rows == json.loads(path.read_text())
    assert set(REQUIRED_METRICS) <= rows[0].keys()
    write_rows_json(tmp_path / "again.json", rows)
    assert load_observations(tmp_path / "again.json") == rows


@pytest.mark.parametrize("path", ROW_FILES, ids=lambda path: path.stem)
def test_a_published_row_alone_is_no_complete_matrix(path):
    rows = load_observations(path)
    matrices = aggregate_result_matrices(rows)
    assert list(matrices) == [("openai/gpt-oss-20b", 16, 1)]
    complete, detail = evaluate_matrix(matrices["openai/gpt-oss-20b", 16, 1])
    assert complete is False
    assert detail["present"] == ["OURS"]
    assert detail["missing"] == ["B0", "B1", "B2", "B3"]
    with pytest.raises(ValueError, match="missing baselines: B0, B1, B2, B3"):
        validate_result_matrix(matrices["openai/gpt-oss-20b", 16, 1])
    (cell,) = judge_rows(rows, path.name)
    assert (cell.complete, cell.present, cell.invalid) == (False, ("OURS",), ())
    assert any("kv_occupancy_bytes fell back" in warning for warning in cell.warnings)
    assert any("no drafted token was accepted" in warning for warning in cell.warnings)


def test_all_three_rows_share_one_identity_so_they_are_no_one_matrix():
    rows = [row for path in ROW_FILES for row in load_observations(path)]
    with pytest.raises(ValueError, match="duplicate baseline OURS"):
        aggregate_result_matrices(rows)


def test_bm1_passes_with_the_published_times(verdicts):
    bm1 = verdicts.verdicts[0]
    assert (bm1.gate, bm1.outcome, bm1.limit) == ("BM1", "pass", 1.0)
    assert bm1.value == 0.141468786 / 1.131497051


def test_bm2_needs_no_batch_against_the_published_window_of_one_round(verdicts):
    bm2 = verdicts.verdicts[1]
    assert (bm2.outcome, bm2.value, bm2.unit) == ("fail", 1132.1, "µs")
    assert bm2.limit == pytest.approx(0.28568175106252114e6 / 11)
    assert "[101.5, 1132.1) µs" in bm2.reason
    assert "pull/160" in bm2.reason


def test_bm3_is_quoted(verdicts):
    bm3 = verdicts.verdicts[2]
    assert (bm3.outcome, bm3.origin, bm3.value, bm3.limit) == ("fail", "quoted", None, None)
    assert "no-ship" in bm3.reason
    assert "pull/169" in bm3.reason


def test_bm4_fails_by_the_published_margin_and_names_what_flips_it(verdicts):
    bm4 = verdicts.verdicts[3]
    assert (bm4.outcome, bm4.value, bm4.limit) == ("fail", 0.31589338363457703, 0.28568175106252114)
    assert "margin -0.030212 s" in bm4.reason
    assert "5.39% of the bytes overlap compute (recomputed from the two byte counts)" in bm4.reason
    # 584 copies of 13,236,480 bytes at 57.55 GB/s take 0.134311 s of a window of 0.285682 s.
    assert "584 expert copies alone (7.73 GB) +0.151371 s" in bm4.reason
    assert "without the own draft +0.024189 s" in bm4.reason


def test_the_published_overlap_terms_agree_with_each_other(capture):
    quoted = json.loads(PUBLISHED_BM4[0].read_text())
    assert capture.fraction() == quoted["canonical_overlap_fraction"]
    assert capture.overlapped_h2d_bytes / capture.h2d_bytes_per_second == pytest.approx(
        quoted["overlap_with_prev_verify_seconds"], rel=1e-12
    )
    assert (capture.num_rounds, capture.num_expert_copies, capture.expert_bytes) == (11, 584, 13_236_480)


def test_bm5_was_not_measured(verdicts):
    bm5 = verdicts.verdicts[4]
    assert (bm5.outcome, bm5.value, bm5.origin) == ("not measured", None, "none")


def test_both_hops_are_removed(verdicts):
    assert {name: hop["keep"] for name, hop in verdicts.hops.items()} == {
        "batched_issuance": False,
        "priority_band": False,
    }


def test_the_capture_without_compute_ranges_is_not_a_measured_zero():
    report = read_bm4(PUBLISHED_FOLDER / "bm4-gptoss-619d2a7.json")
    ranges = read_bm4(PUBLISHED_FOLDER / "nvtx-range-summary-619d2a7.csv")
    report_of_all = judge_gates(GateMeasurements(bm4=report.filled_from(ranges)))
    bm1, _, _, bm4, _ = report_of_all.verdicts
    assert bm1.outcome == bm4.outcome == "not measured"
    assert "the ranges captured in" in bm1.reason
    assert "lacks the ranges dflash_draft, route_ahead_router, target_verify" in bm4.reason
    assert "an overlap of 0 is an artefact" in bm4.reason


def test_a_diagnostic_overlap_without_the_window_is_quoted_and_not_judged():
    diagnostic = read_bm4(PUBLISHED_FOLDER / "diag-overlap-native-broad-619d2a7.json")
    bm4 = judge_gates(GateMeasurements(bm4=diagnostic)).verdicts[3]
    assert bm4.outcome == "not measured"
    assert "47.65% of the bytes overlap compute" in bm4.reason


@pytest.mark.parametrize(
    ("name", "total", "rounds"),
    [
        ("cuda-memcpy-summary-619d2a7.csv", 18_035_200_000.0, None),
        ("cuda-memcpy-summary-b766f8f.csv", 18_181_130_000.0, None),
        ("nvtx-range-summary-b766f8f.csv", None, 11),
    ],
)
def test_summary_tables_of_either_layout_load(name, total, rounds):
    table = read_bm4(PUBLISHED_FOLDER / name)
    assert table.total_h2d_bytes == (None if total is None else pytest.approx(total, rel=1e-12))
    assert table.num_rounds == rounds


def test_the_range_table_alone_gives_bm1_to_its_own_precision():
    table = read_bm4(PUBLISHED_FOLDER / "nvtx-range-summary-b766f8f.csv")
    bm1 = judge_gates(GateMeasurements(bm4=table)).verdicts[0]
    assert bm1.outcome == "pass"
    assert bm1.value == pytest.approx(141.469 / 1131.497)
