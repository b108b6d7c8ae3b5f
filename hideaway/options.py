"""Flags that several subcommands share, so that they are spelled and explained one way."""

from __future__ import annotations

import argparse

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


def add_out_option(parser: argparse.ArgumentParser, help_text: str) -> None:
    """Add `-o/--out` with a help text that says what is written."""
    parser.add_argument("-o", "--out", metavar="PATH", help=help_text)
