"""What every acceptance model answers, and the checks they share.

The models come next: `constant.py`, `positions.py`, `mixture.py`, `replay.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np

from hideaway.sim.errors import InputError

DrawLength = Callable[[int], int]
"""Takes the block size of a round and returns the tokens that it commits, 1 to the block size."""

CHUNK = 256
"""Rounds drawn at once: a draw from numpy costs microseconds, a chunk hardly more."""


class AcceptanceModel(Protocol):
    """A process of acceptance lengths, the target's own token included."""

    @property
    def origin(self) -> str:
        """One sentence for the list of defaults in force."""
        ...

    def mean_length(self, block_size: int) -> float:
        """Return the expected tokens committed by a round of `block_size` rows, exactly."""
        ...

    def sequence(self, rng: np.random.Generator) -> DrawLength:
        """Return the draws of one request; give every request its own generator."""
        ...


def check_block_size(block_size: int) -> None:
    """Refuse a block without a row."""
    if block_size < 1:
        raise InputError(f"block_size is {block_size}; a round verifies at least 1 row")


def check_probability(value: float, what: str) -> None:
    """Refuse what is not a number from 0 to 1; `what` names it."""
    if isinstance(value, bool) or not math.isfinite(value) or not 0.0 <= value <= 1.0:
        raise InputError(f"{what} is {value}; give a number from 0 to 1")


def capped_draws(lengths: Iterator[int]) -> DrawLength:
    """Return a draw that takes the next length and cuts it at the block size.

    Right for any model in which a draft's fate does not depend on how many drafts follow it.
    """
    take = lengths.__next__

    def draw(block_size: int) -> int:
        length = take()
        return length if length < block_size else block_size

    return draw
