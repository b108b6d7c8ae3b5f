"""`hideaway profile`: the list, one profile with every origin and source, values set, and wrong flags."""

import json

import pytest

from hideaway.main import main
from hideaway.sim.inputs.profiles import PARAMETERS, Profile, builtin_profile_names, load_profile


def run(capsys, *words):
    code = main(["profile", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_list_names_every_built_in_profile_and_counts_origins(capsys):
    code, out, err = run(capsys, "list")
    assert (code, err) == (0, "")
    assert all(name in out for name in builtin_profile_names())
    _, out, _ = run(capsys, "list", "--json")
    for entry in json.loads(out)["profiles"]:
        assert sum(entry["origins"].values()) == len(PARAMETERS)


@pytest.mark.parametrize("name", builtin_profile_names())
def test_every_parameter_is_printed_with_its_unit_origin_and_source(capsys, name):
    code, out, err = run(capsys, "show", name)
    assert code == 0
    assert err.startswith("25 parameters: ")
    for parameter_name, parameter in load_profile(name).parameters.items():
        line = next(line for line in out.splitlines() if line.startswith(f"{parameter_name} "))
        assert parameter.unit in line
        assert parameter.origin in line
        assert f"{parameter_name} ({parameter.origin}): {parameter.source}\n" in out


def test_a_profile_as_json_is_a_profile_file(capsys):
    code, out, _ = run(capsys, "show", "rtx-pro-6000", "--json")
    assert code == 0
    assert Profile.from_dict(json.loads(out)) == load_profile("rtx-pro-6000")


def test_values_can_be_set_and_written(capsys, tmp_path):
    path = tmp_path / "mine.json"
    words = ["--set", "link.latency_seconds=5e-6", "--set", "memory.device_bytes = 48e9", "-o", str(path)]
    code, out, err = run(capsys, "show", "rtx-5090", *words)
    assert code == 0
    assert f"wrote {path}" in err
    assert "link.latency_seconds (assumed): set by the user" in out
    profile = load_profile(str(path))
    assert (profile.value("link.latency_seconds"), profile.value("memory.device_bytes")) == (5e-6, 48e9)
    code, out, _ = run(capsys, "show", str(path), "--json")
    assert Profile.from_dict(json.loads(out)) == profile


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "list|show"),
        (["print"], "invalid choice"),
        (["show"], "NAME"),
        (["show", "none"], "there is no profile or file 'none'"),
        (["show", "rtx-5090", "--set", "link.latency_seconds"], "is not PARAMETER=VALUE"),
        (
            ["show", "rtx-5090", "--set", "link.latency_seconds=fast"],
            "the value of link.latency_seconds is 'fast'",
        ),
        (["show", "rtx-5090", "--set", "link.latency_seconds=nan"], "give a finite number"),
        (["show", "rtx-5090", "--set", "link.latency_seconds=-1"], "link.latency_seconds is -1.0"),
        (["show", "rtx-5090", "--set", "link.speed=1"], "there is no parameter 'link.speed'"),
        (["show", "rtx-5090", "-o", "/proc/nowhere/profile.json"], "cannot write"),
        (["list", "--set", "a=1"], "unrecognized arguments"),
    ],
)
def test_wrong_flags_give_one_sentence_and_code_2(capsys, words, message):
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_help_shows_an_example_that_runs(capsys, tmp_path, monkeypatch):
    assert main(["profile", "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    example = next(line for line in lines if line.strip().startswith("hideaway profile show"))
    monkeypatch.chdir(tmp_path)
    assert main(example.split()[1:]) == 0
    assert (tmp_path / "mine.json").exists()
