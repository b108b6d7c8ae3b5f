"""`hideaway calibrate`: a profile for the simulator, a page that needs nothing else, one sentence for bad input."""

from __future__ import annotations

import json
import re

import pytest

from hideaway.main import main
from hideaway.sim.inputs.profiles import load_profile
from hideaway.sim.inputs.schemas import check_schema
from tests.calibrate.planted import Planted

PLANTED = Planted().link().host().experts().contention()


@pytest.fixture
def measured(tmp_path):
    path = tmp_path / "M.json"
    PLANTED.file(1, samples=12).write(path)
    return path


def test_the_profile_is_loaded_and_simulated_with(measured, tmp_path, capsys) -> None:
    out = tmp_path / "mine.json"
    assert main(["calibrate", str(measured), "-o", str(out), "--name", "mine"]) == 0
    shown = capsys.readouterr()
    assert "link.h2d_bytes_per_second" in shown.out
    assert "no series of the" in shown.out
    assert f"profile: {out}" in shown.err
    value = json.loads(out.read_text())
    check_schema(value, "profile", "mine")
    profile = load_profile(str(out))
    assert profile.name == "mine"
    assert profile.device == "planted"
    assert profile.noise["link copy"].relative_spread == pytest.approx(0.03, abs=0.01)
    assert profile.calibration["base_profile"] == "rtx-pro-6000"
    details = profile.calibration["parameters"]["link.h2d_bytes_per_second"]
    low, high = details["interval_95"]
    assert low < profile.value("link.h2d_bytes_per_second") < high
    assert details["validity"]["link copy"]["transfer_bytes"] == [65536.0, 16777216.0]
    assert details["at_bound"] is False
    assert profile.to_dict() == value
    words = ["simulate", "--profile", str(out), "--model", "gpt-oss-20b", "--requests", "2", "--json"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["output_tokens_per_second"] > 0


def test_the_page_holds_every_curve_parameter_and_check_and_asks_no_network(measured, tmp_path) -> None:
    page = tmp_path / "report.html"
    assert main(["calibrate", str(measured), "--report", str(page)]) == 0
    text = page.read_text()
    curves = ("link copy", "link gap", "issue one by one", "issue as a batch", "routed ids", "between forwards",
              "experts", "expert on arrival", "memory read", "compute beside the link")  # fmt: skip
    captions = re.findall(r"<figcaption>(.*?):", text)
    assert set(curves) <= set(captions)
    assert text.count("<svg") == len(captions) + 1  # and the level over the run
    for word in ("link.latency_seconds", "kept from profile rtx-pro-6000", "memory.device_bytes", "Drift over the run",
                 "held-out error", "p99 / median", "measured over", "lag-1 correlation"):  # fmt: skip
        assert word in text
    outside = re.findall(r'(?:src|href)="(?!#|data:)[^"]*"', text)
    assert outside == []
    assert "<script" not in text


def test_the_same_files_and_seed_give_the_same_bytes(tmp_path) -> None:
    measured = tmp_path / "M.json"
    Planted().contention().file(1, samples=12).write(measured)
    for name in ("one", "two"):
        words = [
            "-o",
            str(tmp_path / f"{name}.json"),
            "--report",
            str(tmp_path / f"{name}.html"),
            "--seed",
            "5",
        ]
        assert main(["calibrate", str(measured), *words]) == 0
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def test_json_holds_points_forms_checks_drift_and_flags(measured, capsys) -> None:
    assert main(["calibrate", str(measured), "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert value["format"] == "hideaway-calibration"
    assert value["profile"]["name"] == "planted"
    assert {"curve", "observed", "fitted", "relative_residual"} <= value["curves"][0].keys()
    assert all(
        {"form", "median_error"} <= trial.keys() for form in value["forms"] for trial in form["trials"]
    )
    assert value["drift"]["drifted"] is False
    assert set(value["kept_from_base"]) >= {"memory.device_bytes", "router.launch_seconds"}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"device": "another"}, "device is 'planted' in one and 'another' in another"),
        ({"driver": "2.0"}, "driver is '1.0' in one and '2.0' in another"),
        ({"clocks_mhz": {"processor": 2600.0}}, "processor is 2000.0 MHz in one and 2600.0 MHz in another"),
    ],
)
def test_other_devices_drivers_and_clocks_are_not_merged(
    measured, tmp_path, capsys, change, sentence
) -> None:
    other = tmp_path / "other.json"
    PLANTED.file(2, samples=12, environment=change).write(other)
    out = tmp_path / "mine.json"
    assert main(["calibrate", str(measured), str(other), "-o", str(out)]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert not out.exists()


def test_files_of_one_machine_are_pooled(measured, tmp_path, capsys) -> None:
    other = tmp_path / "other.json"
    PLANTED.file(2, samples=12).write(other)
    assert main(["calibrate", str(measured), "--json"]) == 0
    one = json.loads(capsys.readouterr().out)
    assert main(["calibrate", str(measured), str(other), "--json"]) == 0
    both = json.loads(capsys.readouterr().out)
    assert both["curves"][0]["samples"] == 2 * one["curves"][0]["samples"]


def test_a_measurement_without_anything_to_fit_is_refused(tmp_path, capsys) -> None:
    path = tmp_path / "M.json"
    empty = Planted()
    empty.add("timer", 1e-7, call="clock")
    empty.file(1).write(path)
    assert main(["calibrate", str(path)]) == 2
    assert "no series that a parameter can be fitted to" in capsys.readouterr().err


def test_a_file_that_is_no_measurement_is_refused(tmp_path, capsys) -> None:
    path = tmp_path / "M.json"
    path.write_text("{}")
    assert main(["calibrate", str(path)]) == 2
    assert "does not follow the measurement format" in capsys.readouterr().err
