"""The whole dense part of a layer visit, as `TorchWork.dense` computes it: the check on the sum of its parts."""

from __future__ import annotations

import torch

from hideaway.hw.engine.kv_store import KvStore
from hideaway.hw.engine.products import product
from hideaway.hw.engine.synthetic_layers import SyntheticLayer
from hideaway.hw.engine.work import Seat
from hideaway.hw.microbenchmarks.attention import FLOPS_PER_WEIGHT, Attention
from hideaway.hw.microbenchmarks.benchmark import Axes, Operation, whole
from hideaway.hw.microbenchmarks.rig import Rig
from hideaway.hw.microbenchmarks.subject import FLOAT_BYTES


class Dense(Attention):
    """All that a layer visit computes before its experts: attention, norms, router, shared experts."""

    name = "dense"
    summary = "attention, router and shared experts of a visit together, as the engine computes them"

    def points(self, *, quick: bool) -> list[Axes]:
        """Return a few points that check the sum of the parts."""
        return self.points_of([(1, 8, 512)] if quick else [(1, 1, 512), (1, 8, 512), (4, 8, 512), (1, 64, 1)])

    def bytes(self, axes: Axes) -> int:
        """Return what attention reads, the router and shared experts."""
        return super().bytes(axes) + self._others() * FLOAT_BYTES

    def flops(self, axes: Axes) -> int:
        """Return the work of attention, router and shared experts."""
        rows = whole(axes, "sequences") * whole(axes, "rows_each")
        return super().flops(axes) + rows * FLOPS_PER_WEIGHT * self._others()

    def prepare(self, rig: Rig, axes: Axes) -> Operation:
        """Return what `TorchWork.dense` does without lookahead."""

        def visit(layer: SyntheticLayer, rows: torch.Tensor, seats: tuple[Seat, ...], kv: KvStore) -> None:
            attended = layer.attend(rows, seats, kv)
            inputs = layer.normed(attended)
            assert layer.router is not None
            product(inputs, layer.router)
            if layer.always is not None:
                attended = attended + layer.always.forward(inputs)

        return self.operation(rig, axes, visit)

    def _others(self) -> int:
        architecture = self.subject.architecture
        router = architecture.experts.count * architecture.hidden_size
        shared = architecture.shared_experts
        return router + (0 if shared is None else 3 * architecture.hidden_size * shared.intermediate_size)
