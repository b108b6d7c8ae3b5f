"""The same number of tokens every round, or a mixture of the two whole numbers around a fraction."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.acceptance.model import CHUNK, DrawLength, capped_draws, check_block_size

MAX_LENGTH = 4096
"""Above any block that is drafted; refuses slips such as a rate in percent."""


@dataclass(frozen=True, slots=True)
class ConstantAcceptance:
    """Every round commits `length` tokens; a fractional length is its floor or ceiling with that mean.

    A block smaller than the length commits the whole block.
    """

    length: float

    def __post_init__(self) -> None:
        """Refuse lengths below the target's own token."""
        if not math.isfinite(self.length) or not 1.0 <= self.length <= MAX_LENGTH:
            raise InputError(
                f"constant acceptance length is {self.length}; it counts the target's own token, so give a number"
                f" from 1 to {MAX_LENGTH}"
            )

    @property
    def origin(self) -> str:
        """One sentence for the list of defaults in force."""
        return f"{self.length:g} tokens committed a round on average, the target's own included (stated, not measured)"

    def mean_length(self, block_size: int) -> float:
        """Return min(length, block_size): both whole neighbours are cut alike unless the block is below them."""
        check_block_size(block_size)
        return min(self.length, float(block_size))

    def sequence(self, rng: np.random.Generator) -> DrawLength:
        """Return the draws of one request."""
        return capped_draws(_lengths(self.length, rng))


def _lengths(length: float, rng: np.random.Generator) -> Iterator[int]:
    floor = int(length)
    fraction = length - floor
    while True:
        if fraction:
            yield from (floor + (rng.random(CHUNK) < fraction)).tolist()
        else:
            yield floor
