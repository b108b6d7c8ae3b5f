"""Flags that several subcommands share, so that they are spelled and explained one way."""

from __future__ import annotations

import argparse
import os

from hideaway.sim.errors import InputError
from hideaway.sim.files import check_writable

DEFAULT_SEED = 1408
"""The upstream experiment's seed."""


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Add `--json`: machine-readable output on stdout and nothing else there."""
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


def add_seed_option(parser: argparse.ArgumentParser) -> None:
    """Add `--seed`: same inputs and seed, same bytes out."""
    parser.add_argument(
        "--seed",
        type=int,
        default=DEFAULT_SEED,
        metavar="N",
        help="seed of every random draw (default %(default)s)",
    )


def add_out_option(parser: argparse.ArgumentParser, help_text: str, *, folder: bool = False) -> None:
    """Add `-o/--out`, a file or a folder, with a help text that says what is written."""
    kind = output_folder if folder else output_file
    parser.add_argument("-o", "--out", metavar="PATH", type=kind, help=help_text)


def output_file(text: str) -> str:
    """Return the path of a file to write, refused before the work if it cannot be written; a type of argparse."""
    return _checked(text, folder=False)


def output_folder(text: str) -> str:
    """Return the path of a folder to write files to, as `output_file`."""
    return _checked(text, folder=True)


def refuse_same_file(arguments: argparse.Namespace, *names: str) -> None:
    """Refuse flags that name one file to write two things to.

    Raises
    ------
    InputError
        Naming the two flags.
    """
    flags: dict[str, str] = {}
    for name in names:
        path = getattr(arguments, name)
        if path is not None:
            other = flags.setdefault(os.path.realpath(path), name)
            if other != name:
                both = " and ".join(f"--{flag.replace('_', '-')}" for flag in (other, name))
                raise InputError(f"{both} both name {path!r}; give each a file of its own")


def _checked(text: str, *, folder: bool) -> str:
    try:
        check_writable(text, folder=folder)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text
