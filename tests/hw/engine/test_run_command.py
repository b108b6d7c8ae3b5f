"""`hideaway run`: the same metrics as `simulate`, one sentence for bad input, nothing half-written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("torch")

from hideaway.main import main
from hideaway.sim.event_log import EventLog
from hideaway.sim.timeline import Timeline
from tests.hw.engine.small_shape import scenario_in


@pytest.fixture
def words(tmp_path, monkeypatch):
    """Return the words of a small run."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    scenario = scenario_in(tmp_path)
    return [
        "run", "--shape", scenario.model, "--routing", scenario.routing, "--trace", scenario.trace, "--requests", "3",
        "--concurrency", "2", "--block-size", "4", "--slot-fraction", "0.5", "--drafter-parameters", "20000",
        "--layers", "3", "--threads", "1",
    ]  # fmt: skip


def test_a_run_prints_and_writes_one_result(words, tmp_path, capsys) -> None:
    files = {name: tmp_path / f"{name}.out" for name in ("timeline", "event-log", "perfetto", "out")}
    flags = [word for name, path in files.items() for word in (f"--{name}", str(path))]
    assert main([*words, "--json", *flags]) == 0
    shown = capsys.readouterr()
    result = json.loads(shown.out)
    assert result.keys() == {"scenario", "metrics", "warnings", "environment", "failures"}
    assert result["environment"]["device"]["kind"] == "disk"
    assert result["environment"]["expert_kernel"]
    assert result["scenario"]["layers"] == 3
    assert result["scenario"]["share_of_layers"] == 0.8
    assert str(tmp_path / "cache") in shown.err
    written = json.loads(files["out"].read_text())
    assert written["format"] == "hideaway-run"
    assert written["metrics"] == result["metrics"]
    assert Timeline.read_jsonl(files["timeline"]).header["environment"] == result["environment"]
    assert len(EventLog.read_jsonl(files["event-log"])) > 10
    assert files["perfetto"].stat().st_size > 0
    assert main(words) == 0
    shown = capsys.readouterr()
    assert "reusing" in shown.err
    assert "output_tokens_per_second" in shown.out


@pytest.mark.parametrize(("flags", "sentence"), [
    (["--device", "disk", "--link-rate", "1e9"], "only paced-memory has a set rate"),
    (["--device", "cuda"], "the cuda device needs"),
    (["--layers", "0"], "layers"),
    (["--threads", "-1"], "threads"),
    (["--eviction", "belady"], "belady looks into the future"),
    (["--store", "nowhere"], "is not an expert store"),
    (["--slots", "8"], "nothing is offloaded"),
])  # fmt: skip
def test_bad_input_is_one_sentence(words, flags, sentence, capsys) -> None:
    import torch

    if "cuda" in flags and torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    assert main([*words, *flags]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("hideaway: ")
    assert sentence in error


def test_an_interrupted_run_leaves_no_file_and_ends(words, tmp_path) -> None:
    out = tmp_path / "result.json"
    requests = tmp_path / "long.csv"
    requests.write_text("arrival_seconds,input_tokens,output_tokens\n" + "0,10,2000\n" * 3)
    words[words.index("--trace") + 1] = str(requests)
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "hideaway",
            *words,
            "--device",
            "paced-memory",
            "--link-rate",
            "1e6",
            "-o",
            str(out),
        ],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert process.stderr is not None
    assert "making" in process.stderr.readline()
    time.sleep(3.0)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert error.strip().splitlines()[-1].startswith("hideaway: interrupted")
    assert "Traceback" not in error
    assert not out.exists()
