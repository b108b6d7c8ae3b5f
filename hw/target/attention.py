"""Attention over our own caches, registered with transformers under the name `ATTENTION`.

Rows of all sequences come packed as one batch. For each sequence its new keys and values go into its cache, which is
first cut back to the tokens that stay; then its rows attend to the cache, causally, within the layer's window, and with
a sink where the layer has one: a logit that takes its share of the softmax and gives nothing.

In the invariant way every row is computed by itself from a copy of exactly the keys that it sees, so that the shapes of
all operations follow from the row's position alone, and with them the order of every sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

from hideaway.hw.engine.kv_store import KvStore
from hideaway.hw.engine.work import Seat

ATTENTION = "hideaway_packed"
_PIECE_ROWS = 128
"""Rows whose scores are held at once where the softmax is written out: 64 heads and 8,192 keys then take 0.27 GB."""


@dataclass(frozen=True, slots=True)
class PackedRows:
    """Whose rows a forward holds; handed through transformers' model to `attend`.

    Parameters
    ----------
    seats : tuple of Seat
        In the order of their rows.
    kv : KvStore
        Their caches.
    invariant : bool
        Compute every row by itself.
    """

    seats: tuple[Seat, ...]
    kv: KvStore
    invariant: bool = False

    def positions(self) -> torch.Tensor:
        """Return the position of every row in its sequence, (rows,)."""
        pieces = [torch.arange(seat.tokens_before, seat.tokens_before + seat.num_rows) for seat in self.seats]
        return torch.cat(pieces)


def attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    packed: PackedRows,
    scaling: float,
    sliding_window: int | None = None,
    s_aux: torch.Tensor | None = None,
    **_: Any,  # noqa: ANN401
) -> tuple[torch.Tensor, None]:
    """Return what every row gathers, (1, rows, heads, head_dim). Appends to the caches.

    Parameters
    ----------
    module : torch.nn.Module
        The layer's attention; its `layer_idx` names the cache.
    query, key, value : torch.Tensor
        (1, heads, rows, head_dim), those of key and value with the layer's key-value heads.
    s_aux : torch.Tensor, optional
        The sinks' logits, (heads,).
    """
    layer: int = module.layer_idx  # type: ignore[assignment]
    new = torch.stack([key[0], value[0]])
    pieces = []
    first = 0
    for seat in packed.seats:
        mine = slice(first, first + seat.num_rows)
        first += seat.num_rows
        keys, values = packed.kv.append(seat.seq_id, layer, new[:, :, mine], seat.tokens_before)
        way = _row_by_row if packed.invariant else _together
        pieces.append(way(query[0, :, mine], keys, values, scaling, sliding_window, s_aux))
    return torch.cat(pieces, dim=1).transpose(0, 1)[None], None


def _together(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    scaling: float,
    window: int | None,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """Return (heads, rows, head_dim); the last key belongs to the last row."""
    num_rows, tokens = queries.shape[1], keys.shape[1]
    if sinks is not None and num_rows > _PIECE_ROWS:
        before = tokens - num_rows
        ends = [*range(_PIECE_ROWS, num_rows, _PIECE_ROWS), num_rows]
        pieces = zip(queries.tensor_split(ends[:-1], dim=1), ends, strict=True)
        parts = [
            _together(piece, keys[:, : before + end], values[:, : before + end], scaling, window, sinks)
            for piece, end in pieces
        ]
        return torch.cat(parts, dim=1)
    first = 0 if window is None else max(0, tokens - num_rows - window + 1)
    keys, values = keys[:, first:], values[:, first:]
    at = torch.arange(tokens - num_rows, tokens, device=keys.device)[:, None]
    of = torch.arange(first, tokens, device=keys.device)[None]
    seen = of <= at
    if window is not None:
        seen &= of > at - window
    if sinks is None:
        gathered: torch.Tensor = scaled_dot_product_attention(
            queries[None], keys[None], values[None], attn_mask=seen, scale=scaling, enable_gqa=True
        )
        return gathered[0]
    return _gather(queries, keys, values, scaling, seen, sinks)


def _row_by_row(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    scaling: float,
    window: int | None,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """Return the same, each row from its own keys only."""
    num_rows, tokens = queries.shape[1], keys.shape[1]
    rows = []
    for row in range(num_rows):
        end = tokens - num_rows + row + 1
        seen = slice(0 if window is None else max(0, end - window), end)
        own = queries[:, row : row + 1].clone(memory_format=torch.contiguous_format)
        rows.append(_gather(own, _copy(keys[:, seen]), _copy(values[:, seen]), scaling, None, sinks))
    return torch.cat(rows, dim=1)


def _gather(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    scaling: float,
    seen: torch.Tensor | None,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """Return softmax(q k · scaling, sink) v written out, (heads, rows, head_dim)."""
    heads, num_rows, width = queries.shape
    groups = keys.shape[0]
    stacked = queries.reshape(groups, heads // groups * num_rows, width)
    scores = torch.bmm(stacked, keys.transpose(1, 2)).mul_(scaling).view(heads, num_rows, -1)
    if seen is not None:
        scores = scores.masked_fill(~seen, -torch.inf)
    if sinks is not None:
        scores = torch.cat([scores, sinks.to(scores.dtype).view(-1, 1, 1).expand(-1, num_rows, 1)], dim=2)
    shares = torch.softmax(scores, dim=2, dtype=torch.float32).to(values.dtype)
    if sinks is not None:
        shares = shares[:, :, :-1]
    gathered = torch.bmm(shares.reshape(groups, heads // groups * num_rows, -1), values)
    return gathered.view(heads, num_rows, width)


def _copy(cached: torch.Tensor) -> torch.Tensor:
    """Return a copy of its own: the cache's strides depend on how far it has ever grown."""
    return cached.clone(memory_format=torch.contiguous_format)


AttentionInterface.register(ATTENTION, attend)
