"""Trained pairs of a target and its drafter that are small enough to come with the program.

A pair is a folder with `target/`, `drafter/`, both in the layouts of published checkpoints, and `README.md`, which
says how it was trained and what it does. `reference.py` builds the target as transformers would. Training is in
`hideaway.hw.training`.
"""

from __future__ import annotations

from pathlib import Path

from hideaway.sim.errors import InputError

PAIR_NAMES = ("tiny",)
"""tiny: a byte-level Qwen3-MoE of 5 million parameters, trained on Python's standard library, and its drafter."""

TARGET, DRAFTER = "target", "drafter"
"""Folders within a pair's."""


def pair_folder(name: str) -> Path:
    """Return the folder of a shipped pair.

    Raises
    ------
    InputError
        There is none of that name, or it was left out of the installation.
    """
    if name not in PAIR_NAMES:
        raise InputError(f"there is no shipped pair {name[:200]!r}; there is {', '.join(PAIR_NAMES)}")
    folder = Path(__file__).resolve().parent / name
    if not (folder / TARGET / "config.json").is_file():
        raise InputError(f"the shipped pair {name!r} is not in {folder}; install hideaway again")
    return folder
