"""The model with every expert in memory, watched: a forward's routing, and what later routers say of earlier states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from hideaway.hw.engine.kv_store import KvStore
from hideaway.hw.engine.work import Seat
from hideaway.hw.route_recall.rounds import Ids
from hideaway.hw.store.reader import ExpertStore
from hideaway.hw.target.attention import PackedRows
from hideaway.hw.target.model import Hidden, Target
from hideaway.hw.target.resident import ResidentExperts


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What a forward over rows of one text leaves; shapes as in `hideaway.hw.route_recall.rounds`.

    Parameters
    ----------
    ids : array
        (L, rows, k).
    stale, stale_after : array
        (D, L, rows, k); with D = 0 where nobody looked ahead.
    hidden : Hidden
        Final rows and the drafter's features.
    """

    ids: Ids
    stale: Ids
    stale_after: Ids
    hidden: Hidden


class WatchedModel:
    """Runs rows of one text at a time.

    Parameters
    ----------
    compute_expert : callable
        From an expert's bytes (uint8) and rows (n, hidden) to outputs (n, hidden).
    farthest : int
        D, layers that a guess is made ahead at most.
    """

    def __init__(
        self,
        target: Target,
        store: ExpertStore,
        compute_expert: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
        farthest: int,
    ) -> None:
        self.target = target
        self.num_layers = len(target.moe_layers)
        self.num_experts = store.description.num_experts
        self.farthest = min(farthest, self.num_layers - 1)
        self._resident = ResidentExperts(store, compute_expert, target.device)
        self._kv = KvStore()

    def forget(self, sequence: int) -> None:
        """Give back the cache of a text. Changes state."""
        self._kv.forget(sequence)

    def forward(self, tokens: Sequence[int], seat: Seat, *, look_ahead: bool) -> Seen:
        """Run the rows of a seat; what lay beyond its `tokens_before` is dropped from its cache. Changes state."""
        rows, top_k = len(tokens), self.target.top_k
        ids = np.empty((self.num_layers, rows, top_k), dtype=np.int16)
        stale = np.full((self.farthest if look_ahead else 0, *ids.shape), -1, dtype=np.int16)
        stale_after = stale.copy()

        def experts(
            layer: int, inputs: torch.Tensor, choice: torch.Tensor, weights: torch.Tensor
        ) -> torch.Tensor:
            ids[layer] = choice.cpu().numpy()
            total = self._resident.total(layer, inputs, choice, weights)
            if look_ahead:
                residual = self.target.residual()
                self._look_ahead(layer, residual, stale)
                self._look_ahead(layer, residual + total, stale_after)
            return total

        packed = PackedRows((seat,), self._kv)
        hidden = self.target.forward(torch.tensor(list(tokens)), packed, experts)
        return Seen(ids, stale, stale_after, hidden)

    def embed(self, tokens: Sequence[int]) -> torch.Tensor:
        """Return the embeddings of tokens, (rows, hidden)."""
        return self.target.embed(torch.tensor(list(tokens)))

    def named(self, rows: torch.Tensor) -> Ids:
        """Return what every layer's router says of residual rows (rows, hidden), (L, rows, k)."""
        routed = [self.target.routed_by(layer, rows).cpu().numpy() for layer in range(self.num_layers)]
        return np.stack(routed).astype(np.int16)

    def _look_ahead(self, layer: int, residual: torch.Tensor, guesses: Ids) -> None:
        """Write down what the routers after `layer` say of its residual. Changes `guesses`."""
        for distance in range(1, min(len(guesses), self.num_layers - 1 - layer) + 1):
            later = layer + distance
            guesses[distance - 1, later] = self.target.routed_by(later, residual).cpu().numpy()
