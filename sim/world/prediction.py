"""What the simulated world knows of the experts ahead: exactly near, with stated recall and precision beyond.

The routing of layer 0 follows from the tokens; at any later layer the router's input depends on the layers below,
so a real engine knows the exact set only when verify gets there. `exact_depth` layers are exact (1: causal,
num_layers: oracle); a predictor with stated recall and precision per layer distance stands in for the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hideaway.sim.inputs.prediction import RecallPredictor
from hideaway.sim.inputs.predictor_file import predictor_named
from hideaway.sim.inputs.routing import UnionTable
from hideaway.sim.inputs.scenario.fields import Scenario

_SAMPLED_BLOCKS = 64


@dataclass(frozen=True, slots=True)
class Quality:
    """Recall and precision of a predicted expert set."""

    recall: float
    precision: float


def of_union(token: Quality, *, num_rows: int, top_k: int, num_experts: int, distinct: float) -> Quality:
    """Return the quality of the union of the guesses for `num_rows` tokens that read `distinct` experts.

    Recall is published per token; a visit reads a union, which is guessed better: an expert that M rows choose is
    missed only if all M guesses miss it. With M - 1 Poisson of mean m - 1, m = rows k / distinct, the missed
    share is E[(1-recall)^M] = (1-recall) exp(-(m-1) recall). Wrong picks, taken as uniform over the experts that
    their row does not choose, are wrong for the union only if no other row chooses them; those that are fall on
    `num_experts - distinct` experts as balls into boxes.

    Parameters
    ----------
    token : Quality
        Of one token's guess.
    distinct : float
        Mean distinct experts of the union.
    """
    picks = num_rows * top_k
    recall = 1.0 - (1.0 - token.recall) * math.exp(-(picks / distinct - 1.0) * token.recall)
    wrong = picks * token.recall / token.precision * (1.0 - token.precision)
    free = num_experts - distinct
    extra = 0.0
    if free > 0:
        outside = wrong * free / (num_experts - top_k)
        extra = free * (1.0 - math.exp(-outside / free))
    right = recall * distinct
    return Quality(recall, right / (right + extra) if right > 0 else 1.0)


class Foresight:
    """Predictions of expert sets, made from the sets that the rows will really read.

    The predictor of a union depends on how many rows it is of; one is kept for each power of two of blocks.

    Parameters
    ----------
    scenario : Scenario
        Names the preset, or states recall and precision outright.
    block_size : int
        Rows of one sequence's block.
    lookahead : int
        Next layers that the prefetch policy wants predicted at each visit.
    rng : numpy.random.Generator
        Draws the errors.
    """

    def __init__(
        self,
        scenario: Scenario,
        table: UnionTable,
        *,
        top_k: int,
        block_size: int,
        lookahead: int,
        rng: np.random.Generator,
    ) -> None:
        preset = predictor_named(scenario.predictor)
        layers = table.num_layers
        self._tokens = [
            Quality(
                recall if scenario.recall is None else scenario.recall,
                precision if scenario.precision is None else scenario.precision,
            )
            for recall, precision in zip(
                preset.recall_by_distance(layers), preset.precision_by_distance(layers), strict=True
            )
        ]
        self._table = table
        self._top_k = top_k
        self._block_size = block_size
        self._rng = rng
        self._predictors: dict[int, RecallPredictor] = {}
        self.lookahead = lookahead

    def block(self, needed: Sequence[int], exact_depth: int) -> tuple[int, ...]:
        """Return what a route pass names for one sequence's drafted block, one mask per layer of `needed`."""
        beyond = self._predictor(1).predict_each(needed[exact_depth:], distance=1, step=1)
        return (*needed[:exact_depth], *beyond)

    def ahead(self, needed: Sequence[int], num_blocks: int) -> list[tuple[int, ...]]:
        """Return, for each layer, what a visit there predicts of the next layers, nearest first."""
        depth, num_layers = self.lookahead, len(needed)
        if depth == 0:
            return [()] * num_layers
        predictor = self._predictor(num_blocks)
        if depth == 1:
            return [*((guess,) for guess in predictor.predict_each(needed[1:], distance=1, step=0)), ()]
        return [
            tuple(predictor.predict_each(needed[layer + 1 : layer + 1 + depth], distance=1, step=1))
            for layer in range(num_layers)
        ]

    def _predictor(self, num_blocks: int) -> RecallPredictor:
        """Return the predictor of unions of about `num_blocks` blocks, made when first asked for."""
        bucket = max(1, num_blocks).bit_length()
        if bucket not in self._predictors:
            self._predictors[bucket] = self._make_predictor(self._block_size << (bucket - 1))
        return self._predictors[bucket]

    def _make_predictor(self, num_rows: int) -> RecallPredictor:
        distinct = _mean_distinct(self._table, num_rows, self._rng)
        unions = [
            of_union(
                token,
                num_rows=num_rows,
                top_k=self._top_k,
                num_experts=self._table.num_experts,
                distinct=distinct,
            )
            for token in self._tokens
        ]
        recalls = [quality.recall for quality in unions]
        precisions = [quality.precision for quality in unions]
        return RecallPredictor(self._table.num_experts, recalls, precisions, self._rng)


def _mean_distinct(table: UnionTable, num_rows: int, rng: np.random.Generator) -> float:
    """Return the mean distinct experts of blocks of `num_rows` successive rows of the trace."""
    starts = rng.integers(table.num_tokens, size=_SAMPLED_BLOCKS)
    sizes = [
        mask.bit_count() for start in starts for mask in table.unions(np.array([start]), np.array([num_rows]))
    ]
    return float(np.mean(sizes))
