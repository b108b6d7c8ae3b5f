"""Real dense work of a model's shapes: attention, shared experts, routers, head and drafter, of random numbers.

Every layer has weights of its own, so that each visit reads them cold, as a model's are. Everything is float32 on the
CPU: its bfloat16 `linear` is slower for a prompt's many rows on processors without bfloat16 units.
"""

from __future__ import annotations

import math

import torch
from torch.nn.functional import rms_norm, silu

from hideaway.hw.engine.attention import Attention
from hideaway.hw.engine.kv_store import KvStore
from hideaway.hw.engine.products import product
from hideaway.hw.engine.work import Seat
from hideaway.sim.inputs.models import Architecture

_EMBEDDED = 4096
"""Rows of the input embedding; looking one up costs nothing, so the table need not be whole."""
_DRAFTER_WIDTH = 4
"""Width of the drafter's feed-forward matrices in hidden sizes."""


class Weights:
    """Makes random matrices on a device from one generator."""

    def __init__(self, seed: int, device: torch.device) -> None:
        self._generator = torch.Generator(device).manual_seed(seed)
        self.device = device
        self.num_bytes = 0

    def matrix(self, rows: int, columns: int) -> torch.Tensor:
        """Return (rows, columns) with entries of variance 1 / columns."""
        bound = math.sqrt(3 / columns)
        made = torch.empty((rows, columns), device=self.device)
        self.num_bytes += made.nbytes
        return made.uniform_(-bound, bound, generator=self._generator)


class SwiGlu:
    """A gated feed-forward that is always on the device."""

    def __init__(self, hidden: int, width: int, weights: Weights) -> None:
        self._gate_up = weights.matrix(2 * width, hidden)
        self._down = weights.matrix(hidden, width)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return (rows, hidden)."""
        gate, up = product(rows, self._gate_up).chunk(2, dim=1)
        return product(silu(gate) * up, self._down)


class SyntheticLayer:
    """One layer without its routed experts.

    Parameters
    ----------
    index : int
        Layer of the model.
    """

    def __init__(self, architecture: Architecture, index: int, weights: Weights) -> None:
        hidden = architecture.hidden_size
        self._hidden = hidden
        self.attention = Attention(architecture, index, weights.matrix)
        self.always: SwiGlu | None = None
        self.router: torch.Tensor | None = None
        if index in architecture.dense_indices and architecture.dense_layers is not None:
            self.always = SwiGlu(hidden, architecture.dense_layers.intermediate_size, weights)
            return
        self.router = weights.matrix(architecture.experts.count, hidden)
        if architecture.shared_experts is not None:
            self.always = SwiGlu(hidden, architecture.shared_experts.intermediate_size, weights)

    def attend(self, rows: torch.Tensor, seats: tuple[Seat, ...], kv: KvStore) -> torch.Tensor:
        """Return the rows after attention. Appends to the caches."""
        return rows + self.attention.forward(rms_norm(rows, (self._hidden,)), seats, kv)

    def normed(self, rows: torch.Tensor) -> torch.Tensor:
        """Return what router and experts read."""
        return rms_norm(rows, (self._hidden,))


class SyntheticTrunk:
    """All layers, the head and the drafter.

    Parameters
    ----------
    drafter_parameters : float
        Weights of the drafter, embedding and head excluded: those are the target's.
    """

    def __init__(self, architecture: Architecture, drafter_parameters: float, weights: Weights) -> None:
        hidden = architecture.hidden_size
        every = [
            SyntheticLayer(architecture, index, weights) for index in range(len(architecture.layer_kinds))
        ]
        self.moe_layers = [layer for layer in every if layer.router is not None]
        self.dense_layers = [layer for layer in every if layer.router is None]
        self.head = weights.matrix(architecture.vocab_size, hidden)
        self.embedding = weights.matrix(_EMBEDDED, hidden) * math.sqrt(hidden)
        self._hidden = hidden
        self._drafter = _drafter(hidden, round(drafter_parameters), weights)

    def routers(self, layer: int, count: int) -> list[torch.Tensor]:
        """Return the routers of `count` MoE layers from `layer` on."""
        found = [other.router for other in self.moe_layers[layer : layer + count]]
        return [router for router in found if router is not None]

    def draft(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the drafted tokens of (rows, hidden) inputs: one parallel forward, then the target's head."""
        for up, down in self._drafter:
            rows = rows + product(silu(product(rms_norm(rows, (self._hidden,)), up)), down)
        return self.logits(rows).argmax(dim=1)

    def logits(self, rows: torch.Tensor) -> torch.Tensor:
        """Return (rows, vocabulary)."""
        return product(rms_norm(rows, (self._hidden,)), self.head)


def _drafter(hidden: int, parameters: int, weights: Weights) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return pairs of matrices with `parameters` weights in all, to the nearest pair of rows."""
    pairs = []
    left = max(1, round(parameters / (2 * hidden)))
    while left > 0:
        width = min(left, _DRAFTER_WIDTH * hidden)
        pairs.append((weights.matrix(width, hidden), weights.matrix(hidden, width)))
        left -= width
    return pairs
