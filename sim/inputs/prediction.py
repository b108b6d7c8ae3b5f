"""A stand-in for a predictor of routing: expert sets with a stated recall and precision by layer distance.

Beyond the depth to which routing is known exactly, an engine guesses: it runs a later layer's router on an earlier
hidden state, or counts which experts follow which. What matters to transfers is how much of the true set the guess
holds (recall) and how much of the guess is true (precision); `RecallPredictor` draws guesses with exactly these
expectations.

Published figures are in `PRESETS`. Not here: which distance a layer has (the scheduler's route-ahead).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.acceptance.model import check_probability

POOL_SIZE = 1021
"""Bitmasks drawn per distance and permutations drawn in all. A prime, so that the cycle does not fall into step with
the number of layers."""


class RecallPredictor:
    """Guesses of expert sets whose recall and precision have the stated expectations.

    Each true expert is kept with probability recall, independently. Wrong experts are added at random so that
    E[right in guess] / E[guess] is the precision, as long as enough experts are left that are wrong.
    Changes its place in the pools with every guess; the same generator and calls give the same guesses.

    Parameters
    ----------
    num_experts
        Routed experts of a layer.
    recall_by_distance, precision_by_distance
        Entry d - 1 is for layers d beyond the last exactly known one; larger distances take the last entry.
    rng
        Draws the pools; used while the predictor is made and not after.
    """

    __slots__ = (
        "_keep_pools", "_last", "_num_experts", "_permuted", "_place", "_recalls", "_rounding",
        "_seeds", "_wrong_per_right",
    )  # fmt: skip

    def __init__(
        self,
        num_experts: int,
        recall_by_distance: Sequence[float],
        precision_by_distance: Sequence[float],
        rng: np.random.Generator,
    ) -> None:
        _check_curves(num_experts, recall_by_distance, precision_by_distance)
        self._num_experts = num_experts
        self._recalls = tuple(recall_by_distance)
        self._wrong_per_right = [(1.0 - precision) / precision for precision in precision_by_distance]
        self._last = len(self._recalls) - 1
        self._seeds = rng.integers(2**62, size=len(self._recalls)).tolist()
        self._keep_pools: list[list[int] | None] = [None] * len(self._recalls)
        self._permuted = _growing_masks(num_experts, rng)
        self._rounding: list[float] = rng.random(POOL_SIZE).tolist()
        self._place = 0

    def predict(self, true_mask: int, distance: int) -> int:
        """Return the guessed experts as a bitmask; distance 0 is known exactly and gives the true set."""
        return self.predict_each((true_mask,), distance, 0)[0]

    def predict_each(self, true_masks: Sequence[int], distance: int, step: int) -> list[int]:
        """Return a guess for each true set, the first at `distance`, each further one `step` farther away."""
        num_experts, rounding, permuted = self._num_experts, self._rounding, self._permuted
        place = self._place
        guesses = []
        for true_mask in true_masks:
            if distance <= 0:
                guesses.append(true_mask)
                distance += step
                continue
            index = distance - 1 if distance <= self._last else self._last
            keep = self._keep_pools[index] or self._keep_pool(index)
            place = (place + 1) % POOL_SIZE
            right = true_mask & keep[place]
            num_wrong = right.bit_count() * self._wrong_per_right[index]
            num_false = num_experts - true_mask.bit_count()
            if num_wrong > 0.0 and num_false > 0:
                # Of the first n experts of a random order, n * num_false / num_experts are false on average.
                taken = int(num_wrong * num_experts / num_false + rounding[place])
                order = permuted[(place * 31 + distance) % POOL_SIZE]
                right |= order[taken if taken < num_experts else num_experts] & ~true_mask
            guesses.append(right)
            distance += step
        self._place = place
        return guesses

    def _keep_pool(self, index: int) -> list[int]:
        """Return the masks of kept experts of a distance, drawn when first asked for."""
        generator = np.random.default_rng(self._seeds[index])
        kept = generator.random((POOL_SIZE, self._num_experts)) < self._recalls[index]
        rows = np.packbits(kept, axis=1, bitorder="little")
        pool = [int.from_bytes(row.tobytes(), "little") for row in rows]
        self._keep_pools[index] = pool
        return pool


@dataclass(frozen=True, slots=True)
class PredictionPreset:
    """Published recall by layer distance.

    Parameters
    ----------
    recall_at_one
        Share of the true experts in the guess one layer ahead.
    loss_per_layer
        Recall lost with each further layer.
    floor
        Recall below which it does not fall: what guessing the previous token's experts gives.
    source
        Where the figures come from and which are assumed.
    """

    recall_at_one: float
    loss_per_layer: float
    floor: float
    source: str

    def recall_by_distance(self, num_layers: int) -> tuple[float, ...]:
        """Return recall for distances 1 to num_layers."""
        return tuple(
            max(self.floor, self.recall_at_one - self.loss_per_layer * ahead) for ahead in range(num_layers)
        )

    def precision_by_distance(self, num_layers: int) -> tuple[float, ...]:
        """Return precision for distances 1 to num_layers.

        Equal to the recall: a router run on a stale state guesses as many experts a token as are chosen, so what it
        misses it replaces by as many wrong ones.
        """
        return self.recall_by_distance(num_layers)


PRESETS = {
    "qwen3-30b-a3b": PredictionPreset(
        0.886,
        0.0375,
        0.433,
        "Qwen3-30B-A3B top-8, stale next-layer gate 88.6 %, 3.5 to 4 points lost per further layer, previous token"
        " 43.3 % (measured, github.com/Helldez/BigMoeOnEdge@2d4f2b11); linear loss down to the floor is assumed",
    ),
    "qwen3.6-35b-a3b": PredictionPreset(
        0.807,
        0.0375,
        0.354,
        "Qwen3.6-35B-A3B, stale next-layer gate 80.7 %, 3.5 to 4 points lost per further layer, previous token 35.4 %"
        " (measured, github.com/Helldez/BigMoeOnEdge@2d4f2b11; its route-ahead of 2 layers got 74.7 %); linear loss"
        " down to the floor is assumed",
    ),
    "mixtral-8x7b": PredictionPreset(
        0.85,
        0.0375,
        0.25,
        "Mixtral-8x7B, next-layer guess recall 80 to 90 %, middle taken (arXiv:2312.17238); the loss per layer is"
        " borrowed from Qwen3-30B-A3B and the floor is chance, 2 of 8",
    ),
    "cooccurrence-gpt-oss-20b": PredictionPreset(
        0.610,
        0.0375,
        0.449,
        "gpt-oss-20b, co-occurrence with the previous layer's experts 61.0 % and previous token with popularity 44.9 %"
        " at a budget of top-k (computed from the shipped trace of"
        " AmanPriyanshu/GPT-OSS-MoE-ExpertFingerprinting); the loss per layer is borrowed from Qwen3-30B-A3B",
    ),
}
"""What is published, by model; `perfect` prediction is not a preset but an exact depth of all layers."""

DEFAULT_PRESET = "qwen3-30b-a3b"
"""The only published curve of a stale gate over distance; for other models it is a guess, to be said so."""


def _growing_masks(num_experts: int, rng: np.random.Generator) -> list[list[int]]:
    """Return per random order of the experts the masks of its first 0, 1, … num_experts."""
    pools = []
    for order in rng.permuted(np.tile(np.arange(num_experts), (POOL_SIZE, 1)), axis=1).tolist():
        mask = 0
        masks = [0]
        for expert in order:
            mask |= 1 << expert
            masks.append(mask)
        pools.append(masks)
    return pools


def _check_curves(num_experts: int, recalls: Sequence[float], precisions: Sequence[float]) -> None:
    if num_experts < 1:
        raise InputError(f"a predictor was asked for {num_experts} experts; give at least 1")
    if not recalls or len(recalls) != len(precisions):
        raise InputError(
            f"{len(recalls)} recalls and {len(precisions)} precisions were given; give one of each per distance"
        )
    for distance, (recall, precision) in enumerate(zip(recalls, precisions, strict=True), start=1):
        check_probability(recall, f"the recall at distance {distance}")
        check_probability(precision, f"the precision at distance {distance}")
        if precision == 0.0:
            raise InputError(
                f"the precision at distance {distance} is 0; a guess without a right expert has no size"
            )
