"""Acceptance lengths as an engine recorded them, in their order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.acceptance.constant import MAX_LENGTH
from hideaway.sim.inputs.acceptance.model import DrawLength, capped_draws, check_block_size


@dataclass(frozen=True, slots=True)
class ReplayAcceptance:
    """A recording read in a circle; every request starts at its own random round, so order within it is kept.

    A recorded length above the block size commits the whole block.

    Parameters
    ----------
    lengths
        Tokens committed per round, the target's own included.
    origin
        One sentence for the list of defaults in force.
    """

    lengths: tuple[int, ...]
    origin: str

    def __post_init__(self) -> None:
        """Check that there are lengths and that each counts the target's own token."""
        if not self.lengths:
            raise InputError("an acceptance recording holds no round; record at least one acceptance_length")
        lowest, highest = min(self.lengths), max(self.lengths)
        if lowest < 1 or highest > MAX_LENGTH:
            raise InputError(
                f"{self.origin} run from {lowest} to {highest}; they count the target's own token,"
                f" so 1 to {MAX_LENGTH} are allowed (add 1 to a count of accepted drafts)"
            )

    def mean_length(self, block_size: int) -> float:
        """Return the mean over the recording, each length cut at the block size."""
        check_block_size(block_size)
        return float(np.minimum(np.array(self.lengths), block_size).mean())

    def sequence(self, rng: np.random.Generator) -> DrawLength:
        """Return the draws of one request."""
        return capped_draws(self._lengths_from(int(rng.integers(len(self.lengths)))))

    def _lengths_from(self, start: int) -> Iterator[int]:
        yield from self.lengths[start:]
        while True:
            yield from self.lengths
