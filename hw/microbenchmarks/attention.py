"""Attention by rows, sequences and context; `dense.py` adds the rest of what a visit computes before its experts.

Layers of one kind take turns, each with weights and a cache of its own, as in a forward.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from typing import ClassVar

import torch

from hideaway.hw.engine.kv_store import KvStore
from hideaway.hw.engine.synthetic_layers import SyntheticLayer
from hideaway.hw.engine.work import Seat
from hideaway.hw.microbenchmarks.benchmark import Axes, Benchmark, Operation, whole
from hideaway.hw.microbenchmarks.rig import Rig
from hideaway.hw.microbenchmarks.subject import FLOAT_BYTES
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.models.attention import GroupedAttention, LatentAttention
from hideaway.sim.inputs.models.weight_formats import weights_of

FLOPS_PER_WEIGHT = 2
Visit = Callable[[SyntheticLayer, torch.Tensor, tuple[Seat, ...], KvStore], object]


class Attention(Benchmark):
    """Attention alone, with the residual and the norm before it."""

    name = "attention"
    informs = ("compute.layer_launch_seconds", "memory.read_bytes_per_second",
                                "compute.flops_per_second")  # fmt: skip
    axes: ClassVar = {
        "shape": "model",
        "layer_kind": "full, sliding or mla",
        "sequences": "sequences with rows in the forward",
        "rows_each": "rows of each",
        "context_tokens": "tokens that a sequence had when its last token was committed",
    }
    summary = "attention by rows, sequences and context"

    def points(self, *, quick: bool) -> list[Axes]:
        """Return decode, blocks and prompts for each kind of layer."""
        if quick:
            wanted = [(1, 1, 128), (1, 8, 512), (4, 8, 512), (1, 128, 1)]
        else:
            wanted = [(1, rows, context) for rows in (1, 4, 8, 16) for context in (128, 1024, 4096)]
            wanted += [(4, rows, 1024) for rows in (1, 8)] + [(8, 8, 512)]
            wanted += [(1, rows, 1) for rows in (64, 256, 512)]
        return self.points_of(wanted)

    def bytes(self, axes: Axes) -> int:
        """Return weights once and every sequence's cache, as the engine holds them."""
        cached = whole(axes, "sequences") * self._tokens(axes) * self._cache_width(axes)
        return (self._weights(axes) + cached) * FLOAT_BYTES

    def flops(self, axes: Axes) -> int:
        """Return projections of all rows, and scores and sums over what each row sees (all of it, masked or not)."""
        rows = whole(axes, "sequences") * whole(axes, "rows_each")
        shape = self._shape(axes)
        return rows * (
            FLOPS_PER_WEIGHT * self._weights(axes) + shape.flops_per_context_token * self._tokens(axes)
        )

    def prepare(self, rig: Rig, axes: Axes) -> Operation:
        """Return one visit to the next layer of the kind."""
        return self.operation(rig, axes, lambda layer, rows, seats, kv: layer.attend(rows, seats, kv))

    def operation(self, rig: Rig, axes: Axes, visit: Visit) -> Operation:
        """Return `visit` to the next layer of the kind, caches filled."""
        layers = rig.layers[str(axes["layer_kind"])]
        context, count = whole(axes, "context_tokens"), whole(axes, "rows_each")
        seats = tuple(Seat.block(number, count, context) for number in range(whole(axes, "sequences")))
        kv = self._filled(rig, axes, [index for index, _ in layers])
        rows = rig.rows(len(seats) * count)
        turns = cycle(layer for _, layer in layers)
        current = [layers[0][1]]

        def set_up() -> None:
            current[0] = next(turns)

        def run() -> None:
            visit(current[0], rows, seats, kv)
            rig.settle()

        return Operation(run, set_up, cycle_bytes=len(layers) * self.bytes(axes))

    def _filled(self, rig: Rig, axes: Axes, indices: list[int]) -> KvStore:
        """Return caches that hold every sequence's context."""
        shape = self._shape(axes)
        tokens = whole(axes, "context_tokens") - 1
        kv = KvStore()
        for seq_id in range(whole(axes, "sequences")):
            for index in indices:
                if isinstance(shape, GroupedAttention):
                    size = (2, shape.num_kv_heads, tokens, shape.head_dim)
                else:
                    size = (1, 1, tokens, shape.kv_rank + shape.rope_dim)
                kv.append(seq_id, index, rig.normal(size), 0)
        return kv

    def points_of(self, wanted: list[tuple[int, int, int]]) -> list[Axes]:
        """Return points of (sequences, rows, context) for each kind of layer that has routed experts."""
        kinds = self.subject.spec.layer_kinds
        architecture = self.subject.architecture
        dense = set(architecture.dense_indices)
        here = sorted({kind for index, kind in enumerate(kinds) if index not in dense})
        return [
            {
                "shape": self.subject.name,
                "layer_kind": kind,
                "sequences": sequences,
                "rows_each": rows,
                "context_tokens": context,
            }
            for kind in here
            for sequences, rows, context in wanted
        ]

    def _weights(self, axes: Axes) -> int:
        architecture = self.subject.architecture
        shape, hidden = self._shape(axes), architecture.hidden_size
        return weights_of([*shape.input_matrices(hidden), *shape.output_matrices(hidden)])

    def _tokens(self, axes: Axes) -> int:
        """Return the tokens that the rows attend to; a sliding layer reads its window."""
        count = whole(axes, "rows_each")
        tokens = whole(axes, "context_tokens") - 1 + count
        window = self.subject.architecture.sliding_window_tokens
        if axes["layer_kind"] == "sliding" and window is not None:
            return min(tokens, window + count - 1)
        return tokens

    def _cache_width(self, axes: Axes) -> int:
        shape = self._shape(axes)
        if isinstance(shape, GroupedAttention):
            return 2 * shape.kv_width
        return shape.kv_rank + shape.rope_dim

    def _shape(self, axes: Axes) -> GroupedAttention | LatentAttention:
        architecture, kind = self.subject.architecture, str(axes["layer_kind"])
        shape = architecture.attention_of(kind)
        if not isinstance(shape, GroupedAttention | LatentAttention):
            raise InputError(
                f"{architecture.name} has {kind} attention, which the real engine does not compute; lower --layers to "
                "those before it, or take another shape"
            )
        return shape
