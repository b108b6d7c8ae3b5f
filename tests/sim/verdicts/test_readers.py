"""Benchmark files in each form they come in, and what is refused."""

import json

import pytest

from hideaway.sim.errors import InputError
from hideaway.sim.gates import (
    Memcpy,
    NvtxRange,
    bm3_decision,
    build_bm2_report,
    build_bm3_report,
    compute_overlap,
    priority_arm,
)
from hideaway.sim.verdicts import read_bm2, read_bm3, read_bm4, read_bm5


@pytest.fixture
def write(tmp_path):
    def write_json(value, name="file.json"):
        path = tmp_path / name
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        return path

    return write_json


def test_a_bm2_report_reads_as_it_was_built(write):
    report = build_bm2_report(
        model="m",
        saturated_tensor_count=3,
        window_us=500.0,
        per_expert_samples_ns=[900_000],
        batched_samples_ns=[300_000],
        warmup=1,
        iterations=1,
    )
    measured = read_bm2(write(report))
    assert (measured.per_expert_us, measured.batched_us, measured.cpp_internal_us) == (900.0, 300.0, None)
    assert (measured.window_us, measured.source) == (500.0, "file.json")


@pytest.mark.parametrize(
    "content",
    [
        {"per_expert_us": 900.0, "batched_us": 300},
        {"per_expert_samples_ns": [9e5], "batched_samples_ns": [3e5]},
    ],
)
def test_bm2_figures_and_samples_read_too(write, content):
    measured = read_bm2(write(content | {"source": "a run"}))
    assert (measured.per_expert_us, measured.batched_us, measured.window_us) == (900.0, 300.0, None)
    assert measured.source == "a run"


SAMPLES = {
    band: {"exposed_fetch_seconds": [exposed], "tokens_per_second": [speed]}
    for band, exposed, speed in (
        ("background", 0.02, 100),
        ("route-ahead", 0.01, 101),
        ("on-demand", 0.005, 102),
    )
}


def test_bm3_reads_reports_samples_and_several_models(write):
    arms = [
        priority_arm(exposed_fetch_seconds=e, tokens_per_second=t)
        for e, t in ((0.02, 100), (0.01, 101), (0.005, 102))
    ]
    expected = bm3_decision(default=arms[0], route_ahead=arms[1], on_demand=arms[2])
    report = build_bm3_report(models=["a", "b"], arms=SAMPLES)
    assert read_bm3(write(report)).decisions == (("a, b", expected),)
    assert read_bm3(write({"arms": SAMPLES})).decisions == (("model 0", expected),)
    both = read_bm3(write({"per_model": [report, report], "ship_priority_band": True})).decisions
    assert both == (("a, b", expected), ("a, b", expected))


def test_a_bm3_verdict_alone_reads_as_quoted(write):
    measured = read_bm3(write({"ship_priority_band": False, "published_verdict": "no"}))
    assert (measured.decisions, measured.quoted_ship, measured.published_verdict) == ((), False, "no")


COPIES = [{"start": 0, "end": 10, "bytes": 100}, {"start": 10, "end": 20, "bytes": 50}]
RANGES = [
    {"name": ":dflash_draft", "start": 0, "end": 4},
    {"name": "dflash_draft", "start": 12, "end": 15},
    {"name": "target_verify", "start": 18, "end": 30},
    {"name": "expert_h2d", "start": 0, "end": 20},
]


def test_a_capture_is_computed_not_believed(write):
    content = {
        "memcpys": COPIES,
        "ranges": RANGES,
        "seconds_per_unit": 1e-3,
        "measured_h2d_bytes_per_second": 1000.0,
        "overlap_fraction": 0.99,
        "t_verify_seconds": 99.0,
    }
    measured = read_bm4(write(content))
    expected = compute_overlap([Memcpy(**item) for item in COPIES], [NvtxRange(**item) for item in RANGES])
    assert measured.is_recomputed
    assert measured.total_h2d_bytes == 150
    assert measured.fraction() == expected.overlap_fraction == pytest.approx(65 / 150)
    assert measured.draft_seconds == pytest.approx(0.007)
    assert measured.verify_seconds == pytest.approx(0.012)
    assert (measured.router_seconds, measured.num_rounds) == (None, 2)
    assert measured.overlap_or_derived_seconds() == pytest.approx(0.065)
    assert measured.captured_ranges == ("dflash_draft", "expert_h2d", "target_verify")


def test_a_capture_may_name_its_own_compute_ranges(write):
    measured = read_bm4(write({"memcpys": COPIES, "ranges": RANGES, "compute_ranges": ["expert_h2d"]}))
    assert measured.fraction() == 1.0


def test_stated_fraction_and_bytes_must_agree(write):
    good = {"total_h2d_bytes": 100, "overlapped_h2d_bytes": 25.0, "overlap_fraction": 0.25}
    assert read_bm4(write(good)).fraction() == 0.25
    with pytest.raises(InputError, match=r"states an overlap fraction of 0\.3 but its bytes give 0\.25"):
        read_bm4(write(good | {"overlap_fraction": 0.3}))


def test_bm5_reads_two_rows(write):
    measured = read_bm5(write({"python_row": {"a": 1}, "cpp_row": {"a": 2}, "rel_tol": 0.5}))
    assert (measured.python_row, measured.cpp_row, measured.rel_tol) == ({"a": 1}, {"a": 2}, 0.5)


HUGE = "9" * 5000


@pytest.mark.parametrize(
    ("read", "content", "named"),
    [
        (read_bm2, [], "give a JSON object"),
        (read_bm2, {}, "has no medians_us"),
        (read_bm2, {"medians_us": [1]}, "medians_us is"),
        (read_bm2, {"per_expert_us": "fast"}, "median of python-per-expert of file.json is 'fast'"),
        (read_bm2, {"per_expert_us": 1, "window_us": 0}, "window_us is 0"),
        (read_bm2, {"per_expert_samples_ns": []}, "samples_ns is empty"),
        (read_bm2, {"per_expert_us": 1, "source": "\ud800"}, "source is .* not valid text"),
        (read_bm2, '{"per_expert_us": NaN}', "median of python-per-expert of file.json is nan"),
        (read_bm2, '{"per_expert_us": ' + HUGE + "}", "is not JSON"),
        (read_bm3, {}, "has no medians, arms or ship_priority_band"),
        (read_bm3, {"ship_priority_band": "yes"}, "has no medians, arms or ship_priority_band"),
        (read_bm3, {"medians": {"background": {}}}, "lack the arm background"),
        (read_bm3, {"medians": []}, "medians of .* is \\[\\]"),
        (read_bm3, {"arms": {}}, "arms missing"),
        (read_bm3, {"arms": 3}, "without medians or arms"),
        (read_bm3, {"per_model": []}, "per_model of"),
        (read_bm3, {"per_model": [3]}, "per_model of"),
        (read_bm3, {"per_model": [{"arms": SAMPLES}, {}]}, "without medians or arms"),
        (read_bm4, {}, "has no term of BM4"),
        (read_bm4, {"t_draft_seconds": -1}, "t_draft_seconds of file.json is -1"),
        (read_bm4, {"measured_h2d_bytes_per_second": 0}, "measured_h2d_bytes_per_second of file.json is 0"),
        (read_bm4, {"overlap_fraction": 1.5}, "overlap_fraction of file.json is 1.5"),
        (read_bm4, {"expert_bytes": 10**400}, "expert_bytes of file.json is"),
        (read_bm4, {"num_rounds": 0}, "num_rounds of file.json is 0"),
        (read_bm4, {"total_h2d_bytes": 1, "overlapped_h2d_bytes": 2}, "overlapped_h2d_bytes is 2"),
        (read_bm4, {"memcpys": COPIES}, "ranges of file.json is None"),
        (read_bm4, {"memcpys": [3], "ranges": []}, r"memcpys\[0\] of file.json"),
        (read_bm4, {"memcpys": [{"start": 0}], "ranges": []}, r"memcpys\[0\] of file.json"),
        (read_bm4, {"memcpys": [{"start": 1, "end": 0, "bytes": 1}], "ranges": []}, "before its start"),
        (
            read_bm4,
            {"memcpys": [], "ranges": [{"name": 1, "start": 0, "end": 1}]},
            "the name of a range is 1",
        ),
        (read_bm4, {"memcpys": [], "ranges": [], "compute_ranges": "x"}, "compute_ranges of file.json"),
        (read_bm4, {"memcpys": [], "ranges": [], "seconds_per_unit": 0}, "seconds_per_unit is 0"),
        (read_bm5, {"python_row": {}}, "has no cpp_row"),
        (read_bm5, {"python_row": {}, "cpp_row": []}, "has no cpp_row"),
        (read_bm5, {"python_row": {}, "cpp_row": {}, "rel_tol": None}, "rel_tol is None"),
    ],
)
def test_malformed_files_are_refused_in_one_sentence(write, read, content, named):
    with pytest.raises(InputError, match=named) as caught:
        read(write(content))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("read", [read_bm2, read_bm3, read_bm4, read_bm5])
def test_a_file_that_is_not_there_is_refused(read, tmp_path):
    with pytest.raises(InputError, match="cannot read BM"):
        read(tmp_path / "absent.json")


RANGE_TABLE = (
    "range_name,count,total_duration_ms\n:dflash_draft,2,30.5\ntarget_verify,2,100\n:cpu_to_gpu,7,1\n"
)


def test_a_range_table_sums_lines_of_one_name(write):
    table = read_bm4(write(RANGE_TABLE + "dflash_draft,1,9.5\n", "ranges.csv"))
    assert table.draft_seconds == pytest.approx(0.04)
    assert table.verify_seconds == pytest.approx(0.1)
    assert (table.num_rounds, table.num_expert_copies, table.router_seconds) == (3, 7, None)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("", "has the columns ''"),
        ("a,b\n1,2\n", "has the columns 'a, b'"),
        ("range_name,count,count\nx,1,1\n", "names a column twice"),
        (RANGE_TABLE + "x,1\n", "line 5 of .* does not have 3 columns"),
        (RANGE_TABLE + "x,1,1,1\n", "line 5 of .* does not have 3 columns"),
        (RANGE_TABLE + "x,one,1\n", "count in line 5"),
        (RANGE_TABLE + "x,1.5,1\n", "count in line 5"),
        (RANGE_TABLE + "x,1,-1\n", "total_duration_ms in line 5"),
        (RANGE_TABLE + "x,1,nan\n", "total_duration_ms in line 5"),
        (RANGE_TABLE + "x,1,1e300\n", "total_duration_ms in line 5"),
        (RANGE_TABLE + '"x,1,1\n', "is not CSV"),
        ("memcpy_kind,total_MB\n[Device-to-Host],1\n", "has no Host-to-Device line"),
        ("memcpy_kind,total_MB\n[Host-to-Device],x\n", "total_MB in line 2"),
    ],
)
def test_malformed_tables_are_refused_in_one_sentence(write, content, named):
    with pytest.raises(InputError, match=named) as caught:
        read_bm4(write(content, "table.CSV"))
    assert "\n" not in str(caught.value)
