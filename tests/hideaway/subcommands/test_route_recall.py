"""`hideaway route-recall`: a pair's folder in; tables, a file, a picture and a predictor out."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from hideaway.main import main
from hideaway.sim.inputs.predictor_file import predictor_named
from tests.hw.engine.micro_pair import write_pair


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    return write_pair(tmp_path_factory.mktemp("pair"))


@pytest.fixture
def words(pair, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(pair.parent / "cache"))
    return [
        "route-recall", "--model", str(pair), "--rounds", "6", "--sequences", "2", "--prompt-tokens", "16",
        "--threads", "1",
    ]  # fmt: skip


def test_one_run_writes_figures_picture_and_predictor(words, tmp_path, capsys) -> None:
    out, plot, preset = (str(tmp_path / name) for name in ("out.json", "curves.svg", "gate.json"))
    assert main([*words, "--json", "-o", out, "--plot", plot, "--preset", preset]) == 0
    value = json.loads(capsys.readouterr().out)
    written = json.loads((tmp_path / "out.json").read_text())
    assert written.pop("format") == "hideaway-route-recall"
    assert written.pop("version") == 1
    assert written == value
    assert value["rounds"] == value["calibration_rounds"] == 6
    assert value["settings"]["drafts"] == "drafter"
    assert value["settings"]["block_size"] == 8
    curves = {curve["predictor"]: curve for curve in value["curves"]}
    assert {"stale-gate", "co-occurrence", "drafter-features", "previous-token"} <= set(curves)
    gate = predictor_named(preset)
    recall = curves["stale-gate"]["rows"][0]["recall"]["value"]
    assert gate.recall_by_distance(3) == pytest.approx((recall,) * 3, abs=1e-6)
    assert "6 rounds of 2 texts" in gate.source
    assert (tmp_path / "curves.svg").read_text().startswith("<?xml")


def test_tables_say_what_is_in_force_and_what_was_found(words, tmp_path, capsys) -> None:
    text = tmp_path / "text.txt"
    text.write_text("".join(f"value_{number} = {number * 7919 % 1000}\n" for number in range(60)))
    flags = ["--drafts", "replay", "--spoilt-share", "0.5", "--text", str(text), "--block-size", "4"]
    assert main([*words, *flags, "--slots", "3", "--layer-seconds", "1e-3"]) == 0
    shown = capsys.readouterr().out
    for words_shown in (
        "in force", "spoilt_share", "recall by row of the block", "recall by layer", "coverage and waste",
        "replayed over slots and a link", "Before verify the best guess is", "6 rounds of 2 texts, 4 rows each",
    ):  # fmt: skip
        assert words_shown in shown
    assert "drafter-features" not in shown


@pytest.mark.parametrize(("flags", "sentence"), [
    (["--rounds", "0"], "--rounds is 0 but must be a whole number >= 1"),
    (["--sequences", "1"], "--sequences is 1"),
    (["--block-size", "9"], "--block-size is 9 but the drafter drafts at most 8 rows"),
    (["--spoilt-share", "1.5"], "--spoilt-share is 1.5"),
    (["--expert-seconds", "0"], "--expert-seconds is 0"),
    (["--sequences", "40"], "the text has 232 tokens but twice 40 texts"),
    (["--rounds", "500"], "a text grows to up to 2024 tokens"),
    (["--drafts", "replay", "--temperature", "1"], "--temperature was given with --drafts replay"),
    (["--drafts", "replay", "--drafter", "x"], "--drafter was given with --drafts replay"),
    (["--preset", "x.toml"], "a scenario takes files that end in .json"),
    (["--preset-predictor", "oracle"], "--preset-predictor is 'oracle'; choose one of stale-gate"),
    (["--plot", "x.pdf"], "must end in .png or .svg"),
    (["--preset", "x.json", "-o", "x.json"], "both name 'x.json'"),
    (["--model", "nowhere"], "neither a folder nor a shipped pair"),
    (["--text", "nowhere.txt"], "cannot read text 'nowhere.txt'"),
])  # fmt: skip
def test_what_cannot_be_measured_is_one_sentence(
    words, flags, sentence, tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*words, *flags]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("hideaway: ")
    assert sentence in error
    assert not list(tmp_path.iterdir())


def test_a_predictor_that_was_not_measured_makes_no_preset_and_nothing_else(words, tmp_path, capsys) -> None:
    text = tmp_path / "text.txt"
    text.write_text("".join(f"value_{number} = {number * 7919 % 1000}\n" for number in range(60)))
    flags = ["--drafts", "replay", "--text", str(text), "--preset-predictor", "drafter-features"]
    assert main([*words, *flags, "--preset", str(tmp_path / "x.json"), "-o", str(tmp_path / "y.json")]) == 2
    assert "--preset-predictor is 'drafter-features' but stale-gate" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]


def test_help_has_an_example_and_needs_no_model(capsys) -> None:
    assert main(["route-recall", "--help"]) == 0
    assert "hideaway route-recall --model tiny" in capsys.readouterr().out
