"""Text as easy and hard stretches: each round belongs to a class with its own rate, and classes persist.

Conditional acceptance that *rises* with position, as measured over 16 positions of GLM-5.2 with DSpark
(vllm-project/vllm pull request 52992), is what a mixture looks like: later positions are reached mostly by easy
rounds. 28 % of rounds at 0.90 and 72 % at 0.64 fit that curve to 0.003.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hideaway.sim.inputs.acceptance.model import (
    CHUNK,
    DrawLength,
    capped_draws,
    check_block_size,
    check_probability,
)
from hideaway.sim.inputs.acceptance.positions import MAX_POSITIONS, lengths_from_uniforms, survival

DEFAULT_EASY_RATE = 0.90
DEFAULT_HARD_RATE = 0.64
DEFAULT_EASY_WEIGHT = 0.28
DEFAULT_PERSISTENCE = 0.8
"""Assumed: no source publishes it. Easy stretches last 1 / (0.72 * 0.2), about 7 rounds; hard ones about 18."""


@dataclass(frozen=True, slots=True)
class MixtureAcceptance:
    """Two classes of rounds in a two-state chain, each with one acceptance rate for all positions.

    Parameters
    ----------
    easy_rate, hard_rate
        Acceptance rate of a draft in an easy and in a hard round.
    easy_weight
        Share w of easy rounds in the long run.
    persistence
        Correlation p of the classes of neighbouring rounds: an easy round is followed by an easy one with
        probability w + p (1 - w), a hard one by a hard one with (1 - w) + p w; 0 draws every round afresh, 1 keeps
        a request in its first class. The long-run share is w for every p.
    origin
        One sentence for the list of defaults in force.
    """

    easy_rate: float
    hard_rate: float
    easy_weight: float
    persistence: float
    origin: str

    def __post_init__(self) -> None:
        """Check that all four are probabilities."""
        for value, what in (
            (self.easy_rate, "the acceptance rate of easy rounds"),
            (self.hard_rate, "the acceptance rate of hard rounds"),
            (self.easy_weight, "the share of easy rounds"),
            (self.persistence, "the persistence of classes"),
        ):
            check_probability(value, what)

    def mean_length(self, block_size: int) -> float:
        """Return the stationary mean: w times the easy mean plus (1 - w) times the hard mean."""
        check_block_size(block_size)
        easy = 1.0 + float(survival((self.easy_rate,), block_size - 1).sum())
        hard = 1.0 + float(survival((self.hard_rate,), block_size - 1).sum())
        return self.easy_weight * easy + (1.0 - self.easy_weight) * hard

    def sequence(self, rng: np.random.Generator) -> DrawLength:
        """Return the draws of one request, its first class drawn from the long-run shares."""
        return capped_draws(self._lengths(rng))

    def _lengths(self, rng: np.random.Generator) -> Iterator[int]:
        easy_survival = survival((self.easy_rate,), MAX_POSITIONS)
        hard_survival = survival((self.hard_rate,), MAX_POSITIONS)
        stay_easy = self.easy_weight + self.persistence * (1.0 - self.easy_weight)
        become_easy = self.easy_weight * (1.0 - self.persistence)
        easy = bool(rng.random() < self.easy_weight)
        while True:
            runs = rng.random(CHUNK)
            as_easy = lengths_from_uniforms(runs, easy_survival).tolist()
            as_hard = lengths_from_uniforms(runs, hard_survival).tolist()
            moves = rng.random(CHUNK).tolist()
            for length_if_easy, length_if_hard, move in zip(as_easy, as_hard, moves, strict=True):
                yield length_if_easy if easy else length_if_hard
                easy = move < (stay_easy if easy else become_easy)
