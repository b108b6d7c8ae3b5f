"""The drafter: a block of one anchor and mask tokens goes in, hidden states that the target's head reads come out.

**Forward.** Features of a committed token are the outputs of the target's layers `target_layer_ids`, concatenated in
that order: `hidden_states[layer + 1]` as transformers returns them (whose last entry has passed the final norm).
`context = hidden_norm(fc(features))` is computed once and read by every draft layer. A block has the *anchor* in row
0, the last committed token, whose own features are not known yet, and mask tokens in the others, all through the
target's embedding. With n tokens before the anchor, row i stands at position n + i; it attends to the context of
positions 0 to n - 1 and to the rows of its block (in sliding layers: within the window and not to later rows, unless
the configuration says otherwise). After the last layer comes `norm`, then the target's head. The logits of row i are
of the token at position n + i itself, there is no shift: row 0 predicts nothing, rows 1 to B - 1 are the drafts.

**Two ways in**, equal up to rounding: `forward` runs many blocks over whole sequences at once, for training and
evaluation; `extend` and `draft` serve, with a cache for each sequence and blocks of sequences of any length together.

Written from the paper (Chen et al., "DFlash", arXiv 2602.06036) and the public code (z-lab/dflash, dflash/model.py at
44947fb and 1012959); tests compare it with that code's outputs. Keys and values of the cache are in `cache.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import nn

from hideaway.hw.draft.attention import attend_blocks, attend_one, block_sees
from hideaway.hw.draft.cache import ContextCache
from hideaway.hw.draft.config import DrafterConfig
from hideaway.hw.draft.layers import DraftLayer, RmsNorm, Rotary, linear
from hideaway.sim.errors import InputError


class DFlashDrafter(nn.Module):
    """A DFlash drafter; names of the parameters are those of the published tensors.

    Parameters
    ----------
    config
        Its shapes.
    generator
        Draws weights of standard deviation 0.02 (Qwen3's `initializer_range`), for training from scratch. Without
        it the matrices are not set: load them.
    """

    def __init__(self, config: DrafterConfig, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.config = config
        self.fc = linear(config.feature_size, config.hidden_size)
        self.hidden_norm = RmsNorm(config.hidden_size, config.rms_norm_eps)
        self.layers = nn.ModuleList(DraftLayer(config) for _ in range(config.num_hidden_layers))
        self.norm = RmsNorm(config.hidden_size, config.rms_norm_eps)
        self._rotary = Rotary(config.rope, config.head_dim)
        if generator is not None:
            self._draw(generator)

    def project(self, features: torch.Tensor) -> torch.Tensor:
        """Return the context that draft layers read, (..., hidden), of features (..., feature_size)."""
        if features.shape[-1] != self.config.feature_size:
            raise InputError(
                f"features have {features.shape[-1]} channels but the drafter reads {self.config.feature_size}: "
                f"{self.config.hidden_size} of each of the target layers {list(self.config.target_layer_ids)}; "
                "capture those"
            )
        context: torch.Tensor = self.hidden_norm(self.fc(features.to(self.fc.weight.dtype)))
        return context

    def embed_blocks(self, anchors: torch.Tensor, embedding: torch.Tensor, num_rows: int) -> torch.Tensor:
        """Return the rows of blocks, (..., num_rows, hidden): the anchors' embeddings, then mask tokens'.

        Parameters
        ----------
        anchors
            Token ids, (...).
        embedding
            The target's embedding matrix, (vocab, hidden).
        num_rows
            Rows of a block, the anchor's included.
        """
        tokens = anchors.new_full((*anchors.shape, num_rows), self.config.mask_token_id)
        tokens[..., 0] = anchors
        rows = nn.functional.embedding(tokens, embedding) * self.config.input_embedding_scale
        return rows.to(self.fc.weight.dtype)

    def logits(self, hidden: torch.Tensor, head: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        """Return the logits of hidden states (..., hidden), (..., vocab), through the target's head."""
        logits = head(hidden) * self.config.output_multiplier
        cap = self.config.final_logit_softcapping
        return logits if cap is None else torch.tanh(logits / cap) * cap

    def forward(
        self,
        blocks: torch.Tensor,
        context: torch.Tensor,
        *,
        anchor_positions: torch.Tensor,
        context_positions: torch.Tensor,
        context_mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return the hidden states of many blocks at once, (seqs, blocks, rows, hidden); row 0 predicts nothing.

        A block never sees context at its anchor's position or later, whatever `context_mask` says: that is the text
        it is to draft.

        Parameters
        ----------
        blocks
            Embedded rows, (seqs, blocks, rows, hidden), as from `embed_blocks`.
        context
            Projected features of the sequences, (seqs, tokens, hidden), as from `project`.
        anchor_positions
            Position of every block's row 0 in its sequence, whole numbers (seqs, blocks).
        context_positions
            Position of every token of the context, whole numbers (seqs, tokens).
        context_mask
            Booleans that broadcast to (seqs, blocks, tokens): false hides a token from a block (padding, another
            document). Without it every block sees all before its anchor.
        """
        rows = torch.arange(blocks.shape[2], device=blocks.device)
        at = anchor_positions[..., None] + rows
        context_angles = self._rotary.angles(context_positions, blocks.dtype)
        angles = self._rotary.angles(at, blocks.dtype)
        visible = (context_positions[:, None] < anchor_positions[..., None])[:, :, None]
        if context_mask is not None:
            visible = visible & context_mask.expand(-1, blocks.shape[1], -1)[:, :, None]
        hidden = blocks
        for index, layer in enumerate(self._draft_layers()):
            window, causal = self.config.window(index), self.config.causal(index)
            seen = visible
            if window is not None:
                seen = seen & (at[..., None] - context_positions[:, None, None] < window)
            own_seen = block_sees(rows[:, None], rows[None], window=window, causal=causal)
            queries, own = layer.before(hidden, angles)
            injected = layer.self_attn.keys_values(context, context_angles)
            hidden = layer.after(hidden, attend_blocks(queries, injected, own, seen, own_seen))
        final: torch.Tensor = self.norm(hidden)
        return final

    def new_cache(self) -> ContextCache:
        """Return an empty cache for one sequence."""
        weight = self.fc.weight
        return ContextCache(self.config, dtype=weight.dtype, device=weight.device)

    @torch.no_grad()
    def extend(
        self,
        caches: Sequence[ContextCache],
        features: Sequence[torch.Tensor],
        first_positions: Sequence[int],
    ) -> None:
        """Take in features of tokens that were committed since the last call. Changes the caches.

        Parameters
        ----------
        caches
            One of each sequence.
        features
            Of each sequence (tokens, feature_size), in order of position. Rows that were rejected, and the new
            anchor, must not be among them.
        first_positions
            Position of each sequence's first token here: as many as its cache holds.

        Raises
        ------
        InputError
            The numbers of sequences differ, or positions do not go on where a cache ends.
        """
        _check_lengths(len(caches), features=len(features), first_positions=len(first_positions))
        for cache, first in zip(caches, first_positions, strict=True):
            if first != cache.num_tokens:
                raise InputError(
                    f"features begin at position {first} but the drafter's cache holds {cache.num_tokens} tokens; "
                    "hand over every committed token once, or truncate the cache"
                )
        counts = [len(rows) for rows in features]
        if not sum(counts):
            return
        device = self.fc.weight.device
        context = self.project(torch.cat([rows.to(device) for rows in features]))
        positions = torch.cat(
            [torch.arange(first, first + count) for first, count in zip(first_positions, counts, strict=True)]
        )
        angles = self._rotary.angles(positions.to(device), context.dtype)
        for cache, count in zip(caches, counts, strict=True):
            cache.reserve(count)
        for index, layer in enumerate(self._draft_layers()):
            keys, values = layer.self_attn.keys_values(context, angles)
            for cache, mine in zip(caches, _slices(counts), strict=True):
                cache.place(index, keys[mine], values[mine])
        for cache, count in zip(caches, counts, strict=True):
            cache.commit(count)

    @torch.no_grad()
    def draft(self, blocks: torch.Tensor, caches: Sequence[ContextCache]) -> torch.Tensor:
        """Return the hidden states of the rows to be drafted, (seqs, rows - 1, hidden); for `logits`.

        The caches keep their tokens; a block's own rows are not among them afterwards.

        Parameters
        ----------
        blocks
            Embedded rows of one block of each sequence, (seqs, rows, hidden), as from `embed_blocks`. A block's
            anchor stands at the position that follows its cache.
        caches
            One of each sequence; they may hold different numbers of tokens, also none.

        Raises
        ------
        InputError
            The numbers of sequences differ, or a block has fewer than 2 or more than `block_size` rows.
        """
        seqs, rows, _ = blocks.shape
        _check_lengths(seqs, caches=len(caches))
        if not 2 <= rows <= self.config.block_size:
            raise InputError(
                f"a block of {rows} rows was to be drafted but the drafter takes 2 to {self.config.block_size}; "
                "change the block size"
            )
        device = blocks.device
        firsts = torch.tensor([cache.num_tokens for cache in caches], dtype=torch.long, device=device)
        angles = self._rotary.angles(firsts[:, None] + torch.arange(rows, device=device), blocks.dtype)
        for cache in caches:
            cache.reserve(rows)
        hidden = blocks
        for index, layer in enumerate(self._draft_layers()):
            window, causal = self.config.window(index), self.config.causal(index)
            queries, (keys, values) = layer.before(hidden, angles)
            gathered = torch.empty_like(queries)
            for seq, cache in enumerate(caches):
                seen = cache.place(index, keys[seq], values[seq])
                gathered[seq] = attend_one(queries[seq], *seen, window=window, causal=causal)
            hidden = layer.after(hidden, gathered)
        final: torch.Tensor = self.norm(hidden[:, 1:])
        return final

    def _draft_layers(self) -> list[DraftLayer]:
        return [layer for layer in self.layers if isinstance(layer, DraftLayer)]

    @torch.no_grad()
    def _draw(self, generator: torch.Generator) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear):
                module.weight.normal_(0.0, 0.02, generator=generator)
                if module.bias is not None:
                    module.bias.zero_()


def _slices(counts: Sequence[int]) -> list[slice]:
    ends = [sum(counts[:end]) for end in range(len(counts) + 1)]
    return [slice(first, end) for first, end in pairwise(ends)]


def _check_lengths(expected: int, **lengths: int) -> None:
    for name, length in lengths.items():
        if length != expected:
            raise InputError(
                f"{name} has {length} members but there are {expected} sequences; give one for each"
            )
