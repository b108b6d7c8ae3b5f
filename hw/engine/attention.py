"""Attention over a sequence's own cache, with real matrices of the model's shapes and random numbers in them.

Grouped (full, sliding) and latent attention, the latter with its up projections absorbed into query and output.
Positions are not encoded and heads not normalised: both are a few operations a row, nothing beside the matrices.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn.functional import scaled_dot_product_attention

from hideaway.hw.engine.kv_store import KvStore
from hideaway.hw.engine.products import product
from hideaway.hw.engine.work import Seat
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.models import Architecture
from hideaway.sim.inputs.models.attention import GroupedAttention, LatentAttention

MakeWeight = Callable[[int, int], torch.Tensor]


class Attention:
    """Attention of one layer.

    Parameters
    ----------
    index : int
        Layer of the model, for the cache.
    weight : callable
        Makes a matrix of (rows, columns).
    """

    def __init__(self, architecture: Architecture, index: int, weight: MakeWeight) -> None:
        kind = architecture.layer_kinds[index]
        shape = architecture.attention_of(kind)
        hidden = architecture.hidden_size
        if not isinstance(shape, GroupedAttention | LatentAttention):
            raise InputError(
                f"layer {index} of {architecture.name} has {kind} attention, which the real engine does not compute; "
                "lower --layers to those before it, or take another shape"
            )
        self._index = index
        self._shape = shape
        self._window = architecture.sliding_window_tokens if kind == "sliding" else None
        self._inputs = [weight(*matrix) for matrix in shape.input_matrices(hidden)]
        self._output = weight(*shape.output_matrices(hidden)[0])

    def forward(self, rows: torch.Tensor, seats: tuple[Seat, ...], kv: KvStore) -> torch.Tensor:
        """Return (rows, hidden); the rows of the seats follow one another. Appends to the caches."""
        shape = self._shape
        if isinstance(shape, LatentAttention):
            return self._latent(shape, rows, seats, kv)
        return self._grouped(shape, rows, seats, kv)

    def _grouped(
        self, shape: GroupedAttention, rows: torch.Tensor, seats: tuple[Seat, ...], kv: KvStore
    ) -> torch.Tensor:
        queries, keys, values = (product(rows, weight) for weight in self._inputs)
        gate = None
        if shape.output_gate:
            queries, gate = queries.chunk(2, dim=1)
        new = torch.stack([keys, values]).view(2, -1, shape.num_kv_heads, shape.head_dim).transpose(1, 2)
        queries = queries.view(-1, shape.num_heads, shape.head_dim).transpose(0, 1)
        pieces = []
        for seat, first in zip(seats, _firsts(seats), strict=True):
            mine = slice(first, first + seat.num_rows)
            cached = kv.append(seat.seq_id, self._index, new[:, :, mine], seat.tokens_before)
            pieces.append(self._attend(queries[:, mine], cached[0], cached[1]))
        joined = torch.cat(pieces, dim=1).transpose(0, 1).reshape(-1, shape.query_width)
        if gate is not None:
            joined = joined * torch.sigmoid(gate)
        return product(joined, self._output)

    def _latent(
        self, shape: LatentAttention, rows: torch.Tensor, seats: tuple[Seat, ...], kv: KvStore
    ) -> torch.Tensor:
        *to_query, down, up = self._inputs
        queries = rows
        for weight in to_query:
            queries = product(queries, weight)
        heads, nope, rank = shape.num_heads, shape.nope_dim, shape.kv_rank
        up = up.view(heads, nope + shape.value_dim, rank)
        queries = queries.view(-1, heads, nope + shape.rope_dim).transpose(0, 1)
        absorbed = torch.cat([queries[:, :, :nope] @ up[:, :nope], queries[:, :, nope:]], dim=2)
        new = product(rows, down)[None, None]
        pieces = []
        for seat, first in zip(seats, _firsts(seats), strict=True):
            mine = slice(first, first + seat.num_rows)
            cached = kv.append(seat.seq_id, self._index, new[:, :, mine], seat.tokens_before)[0]
            pieces.append(self._attend(absorbed[:, mine], cached, cached[:, :, :rank]))
        values = torch.cat(pieces, dim=1) @ up[:, nope:].transpose(1, 2)
        return product(values.transpose(0, 1).reshape(-1, heads * shape.value_dim), self._output)

    def _attend(self, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """Return (heads, rows, width) of causal attention; the last key belongs to the last row."""
        num_rows, tokens = queries.shape[1], keys.shape[1]
        first = 0 if self._window is None else max(0, tokens - num_rows - self._window + 1)
        keys, values = keys[:, first:], values[:, first:]
        at = torch.arange(tokens - num_rows, tokens, device=keys.device)[:, None]
        of = torch.arange(first, tokens, device=keys.device)[None]
        seen = of <= at
        if self._window is not None:
            seen &= of > at - self._window
        attended: torch.Tensor = scaled_dot_product_attention(
            queries[None], keys[None], values[None], attn_mask=seen, enable_gqa=True
        )
        return attended[0]


def _firsts(seats: tuple[Seat, ...]) -> list[int]:
    firsts, total = [], 0
    for seat in seats:
        firsts.append(total)
        total += seat.num_rows
    return firsts
