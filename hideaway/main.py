"""The `hideaway` command: pick a subcommand, parse its flags, turn bad input into one sentence and exit code 2.

Each subcommand is a module in `hideaway.subcommands` with `configure(parser)` and `run(arguments) -> int`.
Only the module that is asked for is imported.
"""

from __future__ import annotations

import argparse
import importlib
import io
import sys
from collections.abc import Sequence
from typing import NoReturn

from hideaway.interrupts import interrupts_held_back
from hideaway.sim.errors import HideawayError, InputError
from hideaway.sim.number_checks import shown
from hideaway.subcommands import SUBCOMMANDS
from hideaway.version import __version__

EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130
_MAX_SENTENCE_CHARACTERS = 1200


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one sentence, raised instead of printed."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}; see `{self.prog} --help`")


def main(argv: Sequence[str] | None = None) -> int:
    """Return the exit code of one command: 0 done, 2 bad input, 1 another failure, 130 interrupted.

    All but 0 come with one sentence on stderr.
    """
    _escape_what_the_terminal_lacks()
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return _dispatch(words)
    except InputError as error:
        return _fail(str(error), EXIT_BAD_INPUT)
    except HideawayError as error:
        return _fail(str(error), EXIT_FAILED)
    except MemoryError:
        return _fail("there is not enough memory for this; ask for less at a time", EXIT_FAILED)
    except KeyboardInterrupt:
        return _fail(
            "interrupted; files already named are complete, nothing else was written", EXIT_INTERRUPTED
        )
    except BrokenPipeError:
        sys.stderr.close()
        return 0


def _fail(sentence: str, code: int) -> int:
    """Print one line, without the middle of a long one (it repeats what was given), and return `code`."""
    line = " ".join(sentence.split())
    if len(line) > _MAX_SENTENCE_CHARACTERS:
        half = _MAX_SENTENCE_CHARACTERS // 2
        line = f"{line[:half]} … {line[-half:]}"
    print(f"hideaway: {line}", file=sys.stderr)
    return code


def _escape_what_the_terminal_lacks() -> None:
    """Have characters that the terminal's encoding lacks printed as escapes instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _dispatch(words: list[str]) -> int:
    if words and words[0] == "--version":
        print(f"hideaway {__version__}")
        return 0
    if not words or words[0] in {"-h", "--help"}:
        print(_overview())
        return 0
    name, rest = words[0], words[1:]
    if name not in SUBCOMMANDS:
        raise InputError(f"there is no command {shown(name)}; the commands are {', '.join(SUBCOMMANDS)}")
    with interrupts_held_back():
        module = importlib.import_module(SUBCOMMANDS[name].module)
    parser = _Parser(
        prog=f"hideaway {name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.configure(parser)
    try:
        arguments = parser.parse_args(rest)
    except SystemExit as stop:  # argparse exits after printing --help
        return int(stop.code or 0)
    return int(module.run(arguments))


def _overview() -> str:
    width = max(map(len, SUBCOMMANDS), default=0)
    lines = ["usage: hideaway COMMAND [flags]   (hideaway COMMAND --help shows flags and an example)", ""]
    lines += [f"  {name:<{width}}  {entry.summary}" for name, entry in SUBCOMMANDS.items()]
    return "\n".join(lines)
