"""Recall, precision and their chance levels, counted per text, with bootstrap intervals over texts.

Recall is Σ|G ∩ A| / Σ|A|, precision Σ|G ∩ A| / Σ|G|, with G guessed and A chosen; summed over rows, or over the
block's unions. By chance, |G| experts drawn at random of E hit |G||A|/E: that over the same denominators is the chance
level. Intervals are percentiles of the ratio over texts drawn with replacement (Efron and Tibshirani, *An Introduction
to the Bootstrap*, 1993, section 13.3): rounds of one text resemble each other, so texts are the units.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hideaway.hw.route_recall.guesses import BEFORE_VERIFY, Guess
from hideaway.hw.route_recall.rounds import Chosen, union

Doubles = npt.NDArray[np.float64]
RESAMPLES = 1000
_HITS, _GUESSED, _CHOSEN, _BY_CHANCE = range(4)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A ratio and its 95 % interval."""

    value: float
    low: float
    high: float


class Bootstrap:
    """The same resampled texts for every figure, so that figures can be compared.

    Parameters
    ----------
    rng : numpy.random.Generator
        Draws the texts; used while this is made and not after.
    """

    def __init__(self, num_sequences: int, rng: np.random.Generator, resamples: int = RESAMPLES) -> None:
        drawn = rng.integers(num_sequences, size=(resamples, num_sequences))
        self._times = np.stack([np.bincount(row, minlength=num_sequences) for row in drawn]).astype(
            np.float64
        )

    def ratio(self, above: Doubles, below: Doubles) -> Estimate | None:
        """Return Σ above / Σ below over texts, both (texts,); None where there is nothing below."""
        whole = float(below.sum())
        if whole == 0:
            return None
        resampled = self._times @ below
        ratios = (self._times @ above)[resampled > 0] / resampled[resampled > 0]
        low, high = np.percentile(ratios, [2.5, 97.5])
        return Estimate(float(above.sum()) / whole, float(low), float(high))


@dataclass(frozen=True, slots=True)
class Score:
    """How good guesses are, per row and per block union; None where nothing was guessed or chosen."""

    recall: Estimate | None
    precision: Estimate | None
    recall_by_chance: float
    precision_by_chance: float


class Tally:
    """Counts of one predictor at one distance.

    Attributes
    ----------
    rows, unions : array
        Hits, guessed, chosen and hits by chance of rows (or of unions), (texts, L, 4).
    by_row : array
        The same of each row of the block, layers added up, (texts, B, 4).
    """

    def __init__(self, num_sequences: int, num_layers: int, block_size: int) -> None:
        self.rows = np.zeros((num_sequences, num_layers, 4))
        self.unions = np.zeros((num_sequences, num_layers, 4))
        self.by_row = np.zeros((num_sequences, block_size, 4))

    def add(self, sequence: int, guess: Guess, truth: Chosen) -> None:
        """Count one block. Changes state; layers below the guess's distance are left out."""
        guessed, true = guess.experts[guess.distance :], truth[guess.distance :]
        each = _counts(guessed, true)
        self.rows[sequence, guess.distance :] += each.sum(axis=1)
        self.unions[sequence, guess.distance :] += _counts(union(guessed), union(true))
        self.by_row[sequence] += each.sum(axis=0)


def _counts(guessed: Chosen, true: Chosen) -> Doubles:
    """Return (…, 4) of guessed and true (…, E)."""
    hits = (guessed & true).sum(axis=-1)
    sizes, needs = guessed.sum(axis=-1), true.sum(axis=-1)
    return np.stack([hits, sizes, needs, sizes * needs / guessed.shape[-1]], axis=-1).astype(np.float64)


def score(counts: Doubles, bootstrap: Bootstrap) -> Score:
    """Return the score of counts (texts, 4)."""
    columns = counts.T
    totals = columns.sum(axis=1)
    return Score(
        bootstrap.ratio(columns[_HITS], columns[_CHOSEN]),
        bootstrap.ratio(columns[_HITS], columns[_GUESSED]),
        float(totals[_BY_CHANCE] / totals[_CHOSEN]) if totals[_CHOSEN] else 0.0,
        float(totals[_BY_CHANCE] / totals[_GUESSED]) if totals[_GUESSED] else 0.0,
    )


@dataclass(frozen=True, slots=True)
class Curve:
    """One predictor over distance.

    Parameters
    ----------
    distances : tuple of int
        Layers ahead; for guesses made before verify, layer l is l + 1 ahead.
    rows, unions : tuple of Score
        One for each distance.
    every_row, every_union : Score
        All distances together.
    by_row : tuple of tuple of Score
        For each distance at which a guess is made (one for guesses made before verify), the score of each row of the
        block.
    by_layer : tuple of tuple of Score
        For each such distance, the score of one row by layer. Distances cover different layers, which are not equally
        easy: only the same layer at two distances tells what distance costs.
    """

    predictor: str
    before_verify: bool
    distances: tuple[int, ...]
    rows: tuple[Score, ...]
    unions: tuple[Score, ...]
    every_row: Score
    every_union: Score
    by_row: tuple[tuple[Score, ...], ...]
    by_layer: tuple[tuple[Score, ...], ...]


def curves(tallies: dict[tuple[str, int], Tally], bootstrap: Bootstrap) -> list[Curve]:
    """Return the curve of each predictor, in the order in which they were counted."""
    names = dict.fromkeys(name for name, _ in tallies)
    return [_curve(name, tallies, bootstrap) for name in names]


def _curve(name: str, tallies: dict[tuple[str, int], Tally], bootstrap: Bootstrap) -> Curve:
    mine = {distance: tally for (other, distance), tally in tallies.items() if other == name}
    before = BEFORE_VERIFY in mine
    if before:
        tally = mine[BEFORE_VERIFY]
        distances = tuple(range(1, tally.rows.shape[1] + 1))
        row_counts = [tally.rows[:, layer] for layer in range(len(distances))]
        union_counts = [tally.unions[:, layer] for layer in range(len(distances))]
    else:
        distances = tuple(sorted(mine))
        row_counts = [mine[distance].rows.sum(axis=1) for distance in distances]
        union_counts = [mine[distance].unions.sum(axis=1) for distance in distances]
    return Curve(
        name,
        before,
        distances,
        _scores(row_counts, bootstrap),
        _scores(union_counts, bootstrap),
        score(np.sum(row_counts, axis=0), bootstrap),
        score(np.sum(union_counts, axis=0), bootstrap),
        tuple(_scores(mine[distance].by_row.swapaxes(0, 1), bootstrap) for distance in sorted(mine)),
        tuple(_scores(mine[distance].rows.swapaxes(0, 1), bootstrap) for distance in sorted(mine)),
    )


def _scores(counts: Iterable[Doubles], bootstrap: Bootstrap) -> tuple[Score, ...]:
    return tuple(score(each, bootstrap) for each in counts)
