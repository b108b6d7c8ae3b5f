"""Bytes that guesses move in vain: in all, and by the position of the rejected row they were for.

*Coverage and waste in all* are those of `hideaway.sim.route_ahead`: an expert is wasted if no kept row chose it. *By
rejected position*: the experts that a guess names for row j of the block and for no other row, summed over layers,
given that row j was rejected: what would not have been moved without drafting that far. Row 0, the anchor, is never
rejected.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hideaway.hw.route_recall.guesses import Guess
from hideaway.hw.route_recall.rounds import Chosen, union
from hideaway.hw.route_recall.scores import Bootstrap, Estimate
from hideaway.sim.route_ahead import RouteAheadStats


class Waste:
    """Coverage and waste of one predictor at one distance.

    Parameters
    ----------
    expert_bytes : int
        Of one expert.
    """

    def __init__(self, num_sequences: int, block_size: int, num_experts: int, expert_bytes: int) -> None:
        self.stats = RouteAheadStats()
        self._bytes = expert_bytes
        self._sizes = dict.fromkeys(range(num_experts), expert_bytes)
        self._alone = np.zeros((num_sequences, block_size))
        self._rejections = np.zeros((num_sequences, block_size))

    def add(self, sequence: int, guess: Guess, truth: Chosen, kept: int) -> None:
        """Count one block of which the first `kept` rows are committed. Changes state."""
        self.stats.begin_step()
        named = union(guess.experts)
        for layer, mask in enumerate(truth):
            self.stats.observe_layer(layer, np.flatnonzero(named[layer]), mask, self._sizes)
        self.stats.commit_step(kept)
        self._alone[sequence, kept:] += alone(guess.experts)[kept:]
        self._rejections[sequence, kept:] += 1

    def by_position(self, bootstrap: Bootstrap) -> tuple[Estimate | None, ...]:
        """Return, for each row of the block, the mean bytes named for it alone in rounds that rejected it."""
        return tuple(
            bootstrap.ratio(self._alone[:, row] * self._bytes, self._rejections[:, row])
            for row in range(self._alone.shape[1])
        )

    def rejections(self) -> tuple[int, ...]:
        """Return how many rounds rejected each row of the block."""
        return tuple(int(count) for count in self._rejections.sum(axis=0))


def alone(experts: Chosen) -> npt.NDArray[np.int64]:
    """Return how many (layer, expert) pairs each row of a guess (L, B, E) is alone in naming, (B,)."""
    once = experts.sum(axis=1, keepdims=True) == 1
    counts: npt.NDArray[np.int64] = (experts & once).sum(axis=(0, 2))
    return counts


@dataclass(frozen=True, slots=True)
class WasteResult:
    """Coverage and waste of one predictor at one distance.

    Parameters
    ----------
    distance : int
        Layers ahead; 0 if made before verify.
    coverage : float
        Share of what all rows chose that was named; layers below the distance count as not named.
    waste_ratio : float
        Share of what was named that no kept row chose.
    predicted_bytes, wasted_bytes : float
        A round.
    wasted_by_position : tuple of Estimate or None
        Mean bytes named for row j alone, given that it was rejected; None where it never was.
    """

    predictor: str
    distance: int
    coverage: float
    waste_ratio: float
    predicted_bytes: float
    wasted_bytes: float
    wasted_by_position: tuple[Estimate | None, ...]


def waste_result(key: tuple[str, int], waste: Waste, bootstrap: Bootstrap) -> WasteResult:
    """Return the result of a predictor at a distance."""
    stats = waste.stats
    rounds = max(1, stats.steps)
    return WasteResult(
        *key,
        stats.coverage,
        stats.waste_ratio,
        (stats.predicted_prefetch_bytes or 0) / rounds,
        (stats.wasted_prefetch_bytes or 0) / rounds,
        waste.by_position(bootstrap),
    )
