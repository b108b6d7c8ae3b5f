"""`hideaway simulate` and `hideaway matrix` from flags to files, on runs of a few requests."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from hideaway.main import main
from hideaway.sim.contract import (
    REQUIRED_METRICS,
    aggregate_result_matrices,
    evaluate_matrix,
    load_observations,
)
from hideaway.sim.timeline import Timeline

SMALL = ["--requests", "3", "--concurrency", "2"]
MATRIX = ["matrix", "--requests", "2", "--concurrency", "1", "2", "--block-size", "4", "8", "--workers", "1"]


def output_of(argv: list[str], capsys: pytest.CaptureFixture[str]) -> dict:
    assert main(argv) == 0
    return json.loads(capsys.readouterr().out)


def test_simulate_prints_the_contract_metrics_first_and_every_default(
    capsys: pytest.CaptureFixture[str],
) -> None:
    result = output_of(["simulate", *SMALL, "--json"], capsys)
    assert tuple(result["metrics"])[: len(REQUIRED_METRICS)] == REQUIRED_METRICS
    settings = result["scenario"]
    for name in (
        "trace",
        "slots",
        "acceptance",
        "router_exact_depth",
        "predictor",
        "ttft_limit_seconds",
        "seed",
    ):
        assert name in settings


def test_a_scenario_file_and_flags_say_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "scenario.toml"
    path.write_text(
        'requests = 3\nconcurrency = 2\nblock_size = 4\nbaseline = "B1"\n[parameters]\n"link.latency_seconds" = 1e-4\n'
    )
    flags = ["--block-size", "4", "--baseline", "B1", "--set", "link.latency_seconds=1e-4"]
    from_file = output_of(["simulate", "--scenario", str(path), "--json"], capsys)
    from_flags = output_of(["simulate", *SMALL, *flags, "--json"], capsys)
    assert from_file == from_flags


def test_a_timeline_changes_no_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = output_of(["simulate", *SMALL, "--json"], capsys)
    files = ["--timeline", str(tmp_path / "t.jsonl"), "--perfetto", str(tmp_path / "t.pftrace")]
    logged = output_of(["simulate", *SMALL, "--json", *files], capsys)
    assert logged == plain
    timeline = Timeline.read_jsonl(tmp_path / "t.jsonl")
    waits = sum(record.end_seconds - record.start_seconds for record in timeline if record.kind == "wait")
    metrics = plain["metrics"]
    assert waits == pytest.approx(metrics["exposed_seconds"] + metrics["issue_idle_seconds"], rel=1e-9)


def test_compute_records_never_overlap(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.jsonl"
    output_of(["simulate", *SMALL, "--json", "--timeline", str(path)], capsys)
    pieces = [
        (record.start_seconds, record.end_seconds)
        for record in Timeline.read_jsonl(path)
        if record.track == "compute" and record.kind != "wait"
    ]
    pieces.sort()
    assert all(end <= start + 1e-12 for (_, end), (start, _) in itertools.pairwise(pieces))


def test_matrix_writes_contract_valid_files_twice_the_same(tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert main([*MATRIX, "--out", str(tmp_path / name)]) == 0
    rows = load_observations(tmp_path / "a" / "rows.json")
    cells = aggregate_result_matrices(rows)
    assert len(cells) == 4
    assert all(evaluate_matrix(cell)[0] for cell in cells.values())
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files == [
        "exposed.png", "matrix.csv", "matrix.json", "matrix.md", "money.png", "rows.json", "settings.json",
    ]  # fmt: skip
    for name in files:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_resident_baseline_that_does_not_fit_is_unavailable(capsys: pytest.CaptureFixture[str]) -> None:
    argv = [
        "matrix",
        "--model",
        "gpt-oss-120b",
        "--profile",
        "rtx-5090",
        "--slot-fraction",
        "0.2",
        "--requests",
        "1",
    ]
    argv += [
        "--concurrency",
        "1",
        "--block-size",
        "4",
        "--baselines",
        "B0",
        "B1",
        "B2",
        "B3",
        "--workers",
        "1",
    ]
    result = output_of([*argv, "--routing", "fitted:gpt-oss-20b", "--json"], capsys)
    by_name = {row["baseline"]: row for row in result["rows"]}
    assert by_name["B3"]["status"] == "UNAVAILABLE_CAPACITY"
    assert by_name["B0"]["output_tokens_per_second"] > 0


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["simulate", "--slot-fraction", "1"], "offloaded"),
        (["simulate", "--model", "gpt-oss-120b", "--profile", "rtx-5090", "--baseline", "B3"], "KV caches"),
        (["simulate", "--rate", "1", "--concurrency", "2"], "choose one way"),
        (["simulate", "--routing", "replay:gpt-oss-20b", "--model", "Qwen3-30B-A3B"], "fitted:"),
        (["matrix", "--concurrency", "1", "1"], "different whole numbers"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(
    argv: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    assert words in capsys.readouterr().err


def test_a_matrix_is_not_overwritten_unless_asked_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ["matrix", "--requests", "1", "--concurrency", "1", "--block-size", "4", "--baselines", "B3"]
    out = ["--workers", "1", "--out", str(tmp_path)]
    assert main([*small, *out]) == 0
    before = (tmp_path / "rows.json").read_bytes()
    assert main([*small, *out, "--seed", "1"]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert (tmp_path / "rows.json").read_bytes() == before
    assert main([*small, *out, "--overwrite"]) == 0


def test_a_matrix_takes_its_axes_from_the_scenario_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "scenario.toml"
    path.write_text('requests = 1\nblock_size = 4\nconcurrency = 2\nbaseline = "B3"\n')
    result = output_of(["matrix", "--scenario", str(path), "--json", "--workers", "1"], capsys)
    assert [(row["baseline"], row["block_size"], row["concurrency"]) for row in result["rows"]] == [
        ("B3", 4, 2)
    ]
    path.write_text("rate = 2.0\n")
    assert main(["matrix", "--scenario", str(path)]) == 2
    assert "closes its loops" in capsys.readouterr().err
