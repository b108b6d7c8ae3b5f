"""`hideaway measure`: a valid file, a table, one sentence for bad input, a whole file after Ctrl-C."""

from __future__ import annotations

import json
import os
import signal

import pytest

pytest.importorskip("torch")

from hideaway.main import main
from hideaway.sim.inputs.measurements import read_measurements
from hideaway.sim.inputs.models import save_architecture
from tests.hw.engine.small_shape import GROUPED


@pytest.fixture
def words(tmp_path, monkeypatch):
    """Return the words of a small measurement."""
    monkeypatch.setattr("hideaway.hw.engine.store_cache.cache_folder", lambda: tmp_path / "cache")
    save_architecture(tmp_path / "model.json", GROUPED)
    return ["measure", "--shape", str(tmp_path / "model.json"), "--layers", "2", "--threads", "1", "--quick",
            "--drafter-parameters", "20000"]  # fmt: skip


def test_a_quick_measurement_prints_and_writes_every_sample(words, tmp_path, capsys) -> None:
    out = tmp_path / "M.json"
    only = ["--only", "timer", "visit_ends", "issue", "scheduling", "router", "--seconds", "2.5"]
    assert main([*words, *only, "--seed", "7", "--json", "-o", str(out)]) == 0
    shown = capsys.readouterr()
    file = read_measurements(out)
    assert json.loads(shown.out) == json.loads(out.read_text())
    assert {series.benchmark for series in file.measurements} == {
        "timer",
        "visit_ends",
        "issue",
        "scheduling",
        "router",
    }
    assert file.environment["seed"] == 7
    assert file.environment["model"] == "small"
    assert file.environment["arguments"]["only"] == ["timer", "visit_ends", "issue", "scheduling", "router"]
    assert file.environment["link"]["kind"] == "disk"
    assert not file.interrupted
    assert "points of 5 benchmarks: about" in shown.err
    assert "random experts" in shown.err
    for secret in (str(tmp_path), os.path.expanduser("~"), os.uname().nodename):
        assert secret in ("/", "localhost") or secret not in out.read_text()


def test_without_json_a_table_shows_medians_and_why_sampling_ended(words, capsys) -> None:
    assert main([*words, "--only", "timer", "--seconds", "0.5"]) == 0
    shown = capsys.readouterr().out
    for word in ("timer", "elapsed", "worst ±", "stopped", "openmp_wait_policy", "load_average_after"):
        assert word in shown
    assert any(reason in shown for reason in ("converged", "time budget", "sample cap"))


def test_what_needs_no_experts_makes_no_store(words, tmp_path, capsys) -> None:
    assert main([*words, "--only", "timer", "head", "--seconds", "0.5"]) == 0
    assert "random experts" not in capsys.readouterr().err
    assert not (tmp_path / "cache").exists()


def test_the_list_says_what_each_benchmark_varies_and_measures_nothing(words, tmp_path, capsys) -> None:
    assert main([*words, "--list"]) == 0
    shown = capsys.readouterr().out
    for name in ("link", "experts", "attention", "contention", "rows_each", "context_tokens"):
        assert name in shown
    assert not (tmp_path / "cache").exists()
    assert main([*words, "--list", "--json", "--only", "experts"]) == 0
    (experts,) = json.loads(capsys.readouterr().out)["benchmarks"]
    assert experts["benchmark"] == "experts"
    assert experts["points"][0]["rows_each"] == 1
    assert "expert.launch_seconds" in experts["informs"]


@pytest.mark.parametrize(("flags", "sentence"), [
    (["--only", "speed"], "there is no benchmark 'speed'"),
    (["--device", "paced-memory"], "give --link-rate"),
    (["--device", "disk", "--link-rate", "1e9"], "only paced-memory has a set rate"),
    (["--device", "paced-memory", "--link-rate", "0"], "link_rate is 0"),
    (["--seconds", "-1"], "seconds is -1"),
    (["--threads", "0"], "threads"),
    (["--layers", "99"], "layers is 99"),
    (["--shape", "nothing"], "nothing"),
    (["--store", "nowhere"], "is not an expert store"),
    (["--drafter-parameters", "0"], "drafter_parameters"),
])  # fmt: skip
def test_bad_input_is_one_sentence(words, flags, sentence, capsys) -> None:
    assert main([*words, *flags]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("hideaway: ")
    assert sentence in error


def test_every_parameter_that_a_benchmark_informs_exists(words, capsys) -> None:
    from hideaway.sim.inputs.profiles import PARAMETERS

    assert main([*words, "--list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["benchmarks"]
    assert {name for entry in listed for name in entry["informs"]} <= set(PARAMETERS)


def interrupt_at(monkeypatch, number) -> None:
    """Send this process a real interrupt in the run of that number of the router's benchmark."""
    from hideaway.hw.microbenchmarks.router import Router

    prepare, count = Router.prepare, [0]

    def prepared(self, rig, axes):
        operation = prepare(self, rig, axes)
        run = operation.run

        def counted() -> None:
            run()
            count[0] += 1
            if count[0] == number:
                signal.raise_signal(signal.SIGINT)

        operation.run = counted
        return operation

    monkeypatch.setattr(Router, "prepare", prepared)


def test_an_interrupted_measurement_leaves_a_whole_file_that_says_so(
    words, tmp_path, monkeypatch, capsys
) -> None:
    out = tmp_path / "M.json"
    interrupt_at(monkeypatch, 40)
    assert main([*words, "--only", "router", "timer", "--seconds", "60", "-o", str(out)]) == 130
    error = capsys.readouterr().err
    assert "marked interrupted" in error
    assert error.strip().splitlines()[-1].startswith("hideaway: interrupted")
    file = read_measurements(out)
    assert file.interrupted
    assert file.series("router")
    assert file.environment["measured_seconds"] < 60


def test_an_interrupt_before_the_first_sample_leaves_no_file(words, tmp_path, monkeypatch) -> None:
    out = tmp_path / "M.json"
    interrupt_at(monkeypatch, 1)
    assert main([*words, "--only", "router", "--seconds", "60", "-o", str(out)]) == 130
    assert not out.exists()
