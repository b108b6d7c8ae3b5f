"""A fixed hot set by profiled popularity: the most used experts of each layer stay, all others are streamed.

The profile is a count matrix, for instance from a recorded routing trace. Source: the "pinned hot expert" option
of public offload engines (for example FreeToken's VRAM hot-expert pin, ktransformers' expert placement).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hideaway.sim.masks import mask_of


class StaticHotSet:
    """Never drops anything; the scheduler starts with `hot` resident and streams the rest."""

    def touch(self, layer: int, used: int) -> None:
        """Nothing: the set is fixed."""

    def insert(self, layer: int, experts: int) -> None:
        """Nothing: the set is fixed."""

    def forget(self, layer: int, experts: int) -> None:
        """Nothing: the set is fixed."""

    def victims(self, layer: int, count: int, candidates: int) -> int:
        """Return no victim; changes nothing."""
        return 0


def hot_set(popularity: npt.NDArray[np.float64], slots_per_layer: Sequence[int]) -> list[int]:
    """Return per layer the mask of its most popular experts, as many as the layer has slots.

    Parameters
    ----------
    popularity : array, shape (num_layers, num_experts)
        Uses of each expert; ties go to the lower id.
    """
    order = np.argsort(-popularity, axis=1, kind="stable")
    return [mask_of(order[layer, :slots].tolist()) for layer, slots in enumerate(slots_per_layer)]
