"""Acceptance by position in the block: draft i is accepted with probability c_i, given that all before it were.

P(run of at least i drafts) = S_i = c_1 * ... * c_i, so a round of B rows commits 1 + sum of S_i for i below B on
average. One rate for all positions is the case of a vector of length one.

Not here: a mixture of two such rates (`mixture.py`); reading vectors from files (`load.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.acceptance.model import (
    CHUNK,
    DrawLength,
    capped_draws,
    check_block_size,
    check_probability,
)

MAX_POSITIONS = 4096
"""Longest vector read, and the longest run drawn."""


@dataclass(frozen=True, slots=True)
class PositionAcceptance:
    """Conditional acceptance rates by draft position; positions beyond the vector take its last rate.

    Parameters
    ----------
    conditional_rates
        c_1, c_2, …: P(draft i accepted | drafts 1 to i - 1 accepted).
    origin
        One sentence for the list of defaults in force.
    """

    conditional_rates: tuple[float, ...]
    origin: str

    def __post_init__(self) -> None:
        """Check that there are rates and that each is a probability."""
        if not 1 <= len(self.conditional_rates) <= MAX_POSITIONS:
            raise InputError(
                f"an acceptance vector has {len(self.conditional_rates)} rates; give 1 to {MAX_POSITIONS}"
            )
        for position, rate in enumerate(self.conditional_rates, start=1):
            check_probability(rate, f"the acceptance rate of position {position}")

    def mean_length(self, block_size: int) -> float:
        """Return 1 + sum over i < block_size of S_i."""
        check_block_size(block_size)
        return 1.0 + float(self._survival(block_size - 1).sum())

    def sequence(self, rng: np.random.Generator) -> DrawLength:
        """Return the draws of one request."""
        return capped_draws(_lengths(self._survival(MAX_POSITIONS), rng))

    def _survival(self, num_positions: int) -> npt.NDArray[np.float64]:
        """Return S_1 … S_num_positions."""
        return survival(self.conditional_rates, num_positions)


def survival(conditional_rates: Sequence[float], num_positions: int) -> npt.NDArray[np.float64]:
    """Return P(the first i drafts are all accepted) for i = 1 … num_positions, the last rate held."""
    rates = np.full(num_positions, conditional_rates[-1])
    given = min(num_positions, len(conditional_rates))
    rates[:given] = conditional_rates[:given]
    return np.cumprod(rates)


def lengths_from_uniforms(
    uniforms: npt.NDArray[np.float64], survivals: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """Return 1 + the accepted run of each uniform: a run reaches i exactly when the uniform is below S_i."""
    return 1 + np.searchsorted(-survivals, -uniforms, side="left")


def conditional_from_cumulative(cumulative: Sequence[float]) -> tuple[float, ...]:
    """Return conditional rates from P(drafts 1 to i all accepted), which is how vLLM logs them.

    Positions after the first that is never reached are dropped.

    Raises
    ------
    InputError
        A figure is not a probability or exceeds the one before it.
    """
    rates: list[float] = []
    before = 1.0
    for position, value in enumerate(cumulative, start=1):
        check_probability(value, f"the cumulative acceptance of position {position}")
        if value > before:
            raise InputError(
                f"the cumulative acceptance rises from {before:g} to {value:g} at position {position}; it cannot, so"
                " mark the rates as conditional if that is what they are"
            )
        rates.append(value / before)
        if value == 0.0:
            break
        before = value
    return tuple(rates)


def _lengths(survivals: npt.NDArray[np.float64], rng: np.random.Generator) -> Iterator[int]:
    while True:
        yield from lengths_from_uniforms(rng.random(CHUNK), survivals).tolist()
