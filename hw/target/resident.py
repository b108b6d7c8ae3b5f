"""A target with every expert in memory, without engine, scheduler or transfers: the plain model.

For checks that need logits of given tokens: rows are scored chunk by chunk after what stands before them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from hideaway.hw.engine.expert_rows import ExpertRows
from hideaway.hw.engine.kv_store import KvStore
from hideaway.hw.engine.work import Seat
from hideaway.hw.store.reader import ExpertStore
from hideaway.hw.target.attention import PackedRows
from hideaway.hw.target.model import Target
from hideaway.sim.masks import experts_of

OnLayer = Callable[[int, torch.Tensor], None]
"""Told the number of a layer with experts and what its rows chose, (rows, top_k)."""


class ResidentExperts:
    """Every expert that was asked for so far, on the device, and the sums that rows get of them.

    Parameters
    ----------
    compute_expert : callable
        From an expert's bytes (uint8) and rows (n, hidden) to outputs (n, hidden).
    """

    def __init__(
        self,
        store: ExpertStore,
        compute_expert: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
        device: torch.device,
    ) -> None:
        self._store = store
        self._compute_expert = compute_expert
        self._device = device
        self._loaded: dict[tuple[int, int], torch.Tensor] = {}

    def total(self, layer: int, rows: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """Return the weighted sum of each row's experts, (rows, hidden)."""
        table = rows.new_empty((ids.numel(), rows.shape[1]))
        computed = ExpertRows(rows, ids, weights, table)
        for expert in experts_of(computed.needed):
            computed.compute(expert, self._expert(layer, expert), self._compute_expert)
        return computed.total()

    def _expert(self, layer: int, expert: int) -> torch.Tensor:
        key = layer, expert
        if key not in self._loaded:
            stored = torch.from_numpy(self._store.read(layer, expert))
            self._loaded[key] = stored.to(self._device)
        return self._loaded[key]


class ResidentModel:
    """Computes logits of given tokens.

    Parameters
    ----------
    compute_expert : callable
        From an expert's bytes (uint8) and rows (n, hidden) to outputs (n, hidden).
    on_layer : callable, optional
        Called at every layer with experts, while its residual is at hand.
    """

    def __init__(
        self,
        target: Target,
        store: ExpertStore,
        compute_expert: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
        on_layer: OnLayer | None = None,
    ) -> None:
        self._target = target
        self._resident = ResidentExperts(store, compute_expert, target.device)
        self._on_layer = on_layer

    def decoder(self) -> Callable[[Sequence[int]], torch.Tensor]:
        """Return a function from the next tokens of one text to their logits, (tokens, vocabulary)."""
        kv, before = KvStore(), 0

        def decode(tokens: Sequence[int]) -> torch.Tensor:
            nonlocal before
            seat = Seat(0, len(tokens), before + len(tokens), before)
            before += len(tokens)
            packed = PackedRows((seat,), kv, self._target.invariant)
            hidden = self._target.forward(torch.tensor(tokens), packed, self._experts)
            return self._target.logits(hidden.rows)

        return decode

    def logits(self, tokens: Sequence[int], chunk: int) -> Iterator[torch.Tensor]:
        """Yield the logits of one text's rows, (chunk, vocabulary) at a time; the last may be shorter."""
        decode = self.decoder()
        for first in range(0, len(tokens), chunk):
            yield decode(tokens[first : first + chunk])

    def _experts(
        self, layer: int, rows: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        if self._on_layer is not None:
            self._on_layer(layer, ids)
        return self._resident.total(layer, rows, ids, weights)
