"""`hideaway headroom` from flags to table, file and picture."""

import contextlib
import io
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hideaway.campaigns.paired import Estimate
from hideaway.main import main
from hideaway.report.headroom_table import spelled

SMALL = [
    *("headroom", "--baseline", "B1", "--requests", "6", "--launch", "graph"),
    *("--replications", "2", "--most-users", "1", "--tpot-limit-seconds", "1e-6", "--workers", "1"),
]


class Outcome(NamedTuple):
    """What one run printed and wrote."""

    out: str
    file: Path
    picture: Path


def run_into(folder: Path, *flags: str, load: tuple[str, str] = ("--concurrency", "2")) -> Outcome:
    trace, file, picture = folder / "requests.csv", folder / "answer.json", folder / "gains.png"
    trace.write_text("arrival_seconds,input_tokens,output_tokens\n" + "0,40,24\n" * 12)
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        code = main([*SMALL, *load, "--trace", str(trace), "-o", str(file), "--plot", str(picture), *flags])
    assert code == 0
    return Outcome(out.getvalue(), file, picture)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("headroom")


@pytest.fixture(scope="module")
def files(folder: Path) -> tuple[bytes, bytes, dict[str, Any]]:
    done = run_into(folder, "--json")
    return done.file.read_bytes(), done.picture.read_bytes(), json.loads(done.out)


@pytest.fixture(scope="module")
def value(files: tuple[bytes, bytes, dict[str, Any]]) -> dict[str, Any]:
    return files[2]


def test_file_and_json_agree_and_the_same_seed_gives_the_same_bytes(
    files: tuple[bytes, bytes, dict[str, Any]], folder: Path
) -> None:
    file, picture, printed = files
    assert json.loads(file) == {"format": "hideaway-headroom", "version": 1, **printed}
    assert picture.startswith(b"\x89PNG")
    again = run_into(folder)
    assert (again.file.read_bytes(), again.picture.read_bytes()) == (file, picture)
    for text in (
        "in force",
        "in order of tokens/s gained",
        "all resident (B3)",
        "held back most by: link",
        "not applicable: a closed loop",
        "expert slots",
        "no law from size to acceptance is known",
        "users served: 0",
        "TPOT breaks first",
    ):
        assert text in again.out


def test_limits_come_in_order_of_worth_with_intervals(value: dict[str, Any]) -> None:
    gains = [limit["gained_tokens_per_second"] for limit in value["limits"]]
    assert [gain["mean"] for gain in gains] == sorted((gain["mean"] for gain in gains), reverse=True)
    assert all(gain["low"] <= gain["mean"] <= gain["high"] for gain in gains)
    assert value["limits"][0]["limit"] == "link"
    names = {entry["limit"] for entry in (*value["limits"], *value["absent"])}
    assert names == {
        *("link", "issue cost", "host round trip", "contention", "eviction", "router depth", "prediction"),
        *("rejected drafts", "queueing"),
    }
    base = value["base"]["tokens_per_second"]["mean"]
    for gain in (*value["limits"], value["bound"]):
        without = gain["without_it"]["tokens_per_second"]["mean"]
        assert gain["gained_tokens_per_second"]["mean"] == pytest.approx(without - base)


def test_everything_in_force_is_said(value: dict[str, Any]) -> None:
    settings = value["settings"]
    assert settings["requests"] == 6
    assert settings["seeds"] == "1408 to 1409"
    assert settings["share"] == 0.99
    assert settings["slots"] == 16
    assert "gpt-oss-20b" in settings["routing_origin"]


def test_an_open_loop_is_ordered_by_time_per_token(tmp_path: Path) -> None:
    value = json.loads(run_into(tmp_path, "--json", load=("--rate", "20")).out)
    saved = [limit["saved_tpot_seconds"]["mean"] for limit in value["limits"]]
    assert value["ordered_by"] == "saved_tpot_seconds"
    assert saved == sorted(saved, reverse=True)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--baseline", "B3"], "nothing is offloaded"),
        (["--slots", "32"], "nothing is offloaded"),
        (["--replications", "1"], "an interval needs 2"),
        (["--share", "0"], "--share is 0.0"),
        (["--share", "nan"], "--share is nan"),
        (["--most-users", "0"], "--most-users is 0"),
        (["--workers", "0"], "--workers is 0"),
        (["--requests", "0"], "requests is 0"),
        (["--requests", "many"], "--requests"),
        (["--plot", "gains.txt"], "must end in .png or .svg"),
        (["--rate", "1", "--concurrency", "2"], "choose one way"),
        (["--seed", str(2**63 - 1)], "seed is"),
    ],
)
def test_bad_flags_are_one_sentence(flags: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, *flags]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert said in captured.err


@pytest.mark.parametrize(
    ("flags", "file", "requests"),
    [
        ([], "", 20),
        (["--concurrency", "16"], "", 40),
        ([], "concurrency = 10", 25),
        ([], "requests = 9", 9),
        (["--requests", "7"], "requests = 9", 7),
    ],
)
def test_default_number_of_requests_follows_the_users(
    flags: list[str], file: str, requests: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hideaway.subcommands import headroom as command

    seen = []

    def stop(scenario: Any, **_: object) -> None:
        seen.append(scenario.requests)
        raise command.InputError("enough")

    monkeypatch.setattr(command, "run_headroom", stop)
    path = tmp_path / "scenario.toml"
    path.write_text(file)
    assert main(["headroom", "--scenario", str(path), *flags]) == 2
    assert seen == [requests]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Estimate(961.5, 932.3, 990.7), "+962 [+932, +991]"),
        (Estimate(0.6, 0.4, 0.8), "+0.60 [+0.40, +0.80]"),
        (Estimate(-0.04, -2.0, 1.9), "+0.0 [-2.0, +1.9]"),
        (Estimate(0.0, 0.0, 0.0), "0"),
        (Estimate(12345.0, 11345.0, 13345.0), "+12,345 [+11,345, +13,345]"),
    ],
)
def test_an_interval_is_spelled_with_the_digits_it_is_worth(value: Estimate, text: str) -> None:
    assert spelled(value) == text
