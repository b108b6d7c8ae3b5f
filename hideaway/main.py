"""The `hideaway` command: pick a subcommand, parse its flags, turn bad input into one sentence and exit code 2.

Each subcommand is a module in `hideaway.subcommands` with `configure(parser)` and `run(arguments) -> int`.
Only the module that is asked for is imported.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import NoReturn

from hideaway.sim.errors import InputError
from hideaway.subcommands import SUBCOMMANDS
from hideaway.version import __version__

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one sentence, raised instead of printed."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}; see `{self.prog} --help`")


def main(argv: Sequence[str] | None = None) -> int:
    """Return the exit code of one command: 0 done, 2 bad input (one sentence on stderr), 130 interrupted."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return _dispatch(words)
    except InputError as error:
        print(f"hideaway: {' '.join(str(error).split())}", file=sys.stderr)
        return EXIT_BAD_INPUT
    except KeyboardInterrupt:
        print(
            "hideaway: interrupted; files already named are complete, nothing else was written",
            file=sys.stderr,
        )
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return 0


def _dispatch(words: list[str]) -> int:
    if words and words[0] == "--version":
        print(f"hideaway {__version__}")
        return 0
    if not words or words[0] in {"-h", "--help"}:
        print(_overview())
        return 0
    name, rest = words[0], words[1:]
    if name not in SUBCOMMANDS:
        raise InputError(f"there is no command {name!r}; the commands are {', '.join(SUBCOMMANDS)}")
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
