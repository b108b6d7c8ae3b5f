"""Attention of a block over the committed tokens' injected keys and over its own rows, in the two shapes it is needed.

`attend_blocks` takes many blocks of many sequences at once, for training and evaluation; `attend_one` one block over
the keys of one sequence, for serving. Both compute softmax(q k / sqrt(d)) v over the context and the block together.
The projections around them are in `layers.py`.
"""

from __future__ import annotations

import torch
from torch.nn.functional import scaled_dot_product_attention


def attend_blocks(
    queries: torch.Tensor,
    context: tuple[torch.Tensor, torch.Tensor],
    own: tuple[torch.Tensor, torch.Tensor],
    context_seen: torch.Tensor,
    own_seen: torch.Tensor | None,
) -> torch.Tensor:
    """Return what every row of every block gathers, (seqs, blocks, rows, heads, head_dim).

    Parameters
    ----------
    queries
        (seqs, blocks, rows, heads, head_dim).
    context
        Keys and values of the committed tokens, each (seqs, tokens, kv_heads, head_dim): shared by the blocks.
    own
        Keys and values of the blocks' rows, each (seqs, blocks, rows, kv_heads, head_dim).
    context_seen
        Booleans, (seqs, blocks, rows or 1, tokens).
    own_seen
        Booleans, (rows, rows), row sees column; None means that all rows of a block see one another.
    """
    seqs, blocks, rows, heads, width = queries.shape
    kv_heads = own[0].shape[3]
    grouped = queries.view(seqs, blocks, rows, kv_heads, heads // kv_heads, width) * width**-0.5
    over_context = torch.einsum("sbrkgd,stkd->skgbrt", grouped, context[0])
    over_own = torch.einsum("sbrkgd,sbckd->skgbrc", grouped, own[0])
    lowest = torch.finfo(queries.dtype).min
    over_context = over_context.masked_fill(~context_seen[:, None, None], lowest)
    if own_seen is not None:
        over_own = over_own.masked_fill(~own_seen, lowest)
    scores = torch.cat([over_context, over_own], dim=-1)
    shares = torch.softmax(scores, dim=-1, dtype=torch.promote_types(scores.dtype, torch.float32))
    shares = shares.to(queries.dtype)
    tokens = context[0].shape[1]
    gathered = torch.einsum("skgbrt,stkd->sbrkgd", shares[..., :tokens], context[1])
    gathered = gathered + torch.einsum("skgbrc,sbckd->sbrkgd", shares[..., tokens:], own[1])
    return gathered.reshape(queries.shape)


def attend_one(
    queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, *, window: int | None, causal: bool
) -> torch.Tensor:
    """Return what every row of one block gathers, (rows, heads, head_dim).

    Parameters
    ----------
    queries
        (rows, heads, head_dim), of the last positions of the keys.
    keys, values
        (kv_heads, tokens, head_dim), of the whole context and then the block's own rows.
    window, causal
        As `DrafterConfig.window` and `causal` say for the layer.
    """
    rows, tokens = queries.shape[0], keys.shape[1]
    first = 0 if window is None else max(0, tokens - rows - window + 1)
    seen = None
    if causal or window is not None:
        at = torch.arange(tokens - rows, tokens, device=keys.device)[:, None]
        of = torch.arange(first, tokens, device=keys.device)[None]
        seen = block_sees(at, of, window=window, causal=causal)
    gathered: torch.Tensor = scaled_dot_product_attention(
        queries.transpose(0, 1)[None],
        keys[None, :, first:],
        values[None, :, first:],
        attn_mask=seen,
        enable_gqa=True,
    )
    return gathered[0].transpose(0, 1)


def block_sees(at: torch.Tensor, of: torch.Tensor, *, window: int | None, causal: bool) -> torch.Tensor:
    """Return whether a row at position `at` sees a key at position `of`, booleans of the broadcast shape.

    A window of W covers the row's own position and W - 1 before it, and as many after it where later rows are seen
    (z-lab/dflash at 1012959, `_attention_mask`).
    """
    seen = of <= at if causal else torch.ones_like(of <= at)
    if window is not None:
        seen = seen & (at - of < window) & (of - at < window)
    return seen
