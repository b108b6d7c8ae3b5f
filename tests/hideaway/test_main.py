"""The front door: help, errors and exit codes of the command itself."""

from __future__ import annotations

import pytest

from hideaway.main import main
from hideaway.subcommands import SUBCOMMANDS


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in SUBCOMMANDS)


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_every_command_shows_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    out = capsys.readouterr().out
    example = out.lower().split("example", 1)[1]
    assert f"hideaway {name}" in example
    assert main([name, *(["show"] if name == "profile" else []), "--help"]) == 0
    assert "--json" in capsys.readouterr().out


@pytest.mark.parametrize("argv", [["nonsense"], ["simulate", "--nonsense"], ["simulate", "--slots", "many"]])
def test_bad_words_are_one_sentence_and_exit_code_2(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("hideaway: ")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("hideaway 0.")
