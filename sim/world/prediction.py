"""What the simulated world knows of the experts ahead: exactly near, with stated recall and precision beyond.

The routing of layer 0 follows from the tokens; at any later layer the router's input depends on the layers below,
so a real engine knows the exact set only when verify gets there. `exact_depth` layers are exact (1: causal,
num_layers: oracle); a predictor with stated recall and precision per layer distance stands in for the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hideaway.sim.inputs.prediction import PRESETS, RecallPredictor
from hideaway.sim.inputs.scenario.fields import Scenario


def make_predictor(
    scenario: Scenario, num_layers: int, num_experts: int, rng: np.random.Generator
) -> RecallPredictor:
    """Return the predictor of a scenario: its preset, or the one recall and precision it states."""
    preset = PRESETS[scenario.predictor]
    recalls = preset.recall_by_distance(num_layers)
    precisions = preset.precision_by_distance(num_layers)
    if scenario.recall is not None:
        recalls = (scenario.recall,) * num_layers
    if scenario.precision is not None:
        precisions = (scenario.precision,) * num_layers
    return RecallPredictor(num_experts, recalls, precisions, rng)


class Foresight:
    """Predictions of expert sets, made from the sets that the rows will really read.

    Parameters
    ----------
    predictor : RecallPredictor
        Degrades a true set according to its distance in layers.
    lookahead : int
        Next layers that the prefetch policy wants predicted at each visit.
    """

    def __init__(self, predictor: RecallPredictor, lookahead: int) -> None:
        self._predictor = predictor
        self.lookahead = lookahead

    def block(self, needed: Sequence[int], exact_depth: int) -> tuple[int, ...]:
        """Return what a route pass names for a drafted block, one mask per layer."""
        predict = self._predictor.predict
        exact = tuple(needed[:exact_depth])
        beyond = (predict(mask, distance) for distance, mask in enumerate(needed[exact_depth:], start=1))
        return (*exact, *beyond)

    def ahead(self, needed: Sequence[int]) -> list[tuple[int, ...]]:
        """Return, for each layer, what a visit there predicts of the next layers, nearest first."""
        if self.lookahead == 0:
            return [()] * len(needed)
        predict = self._predictor.predict
        num_layers = len(needed)
        depth = self.lookahead
        return [
            tuple(
                predict(needed[layer + distance], distance)
                for distance in range(1, min(depth, num_layers - 1 - layer) + 1)
            )
            for layer in range(num_layers)
        ]
