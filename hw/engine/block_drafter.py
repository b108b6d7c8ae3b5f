"""What the engine asks of a drafter, and the DFlash drafter behind it.

Features of committed rows are handed over as they come (`observe`) and go through the drafter's projections when it
next drafts, so that all of its compute is the draft's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from hideaway.hw.acceptance.sampling import SamplingRule, draw_rows
from hideaway.hw.draft.cache import ContextCache
from hideaway.hw.draft.drafter import DFlashDrafter
from hideaway.hw.engine.token_book import TokenBook
from hideaway.hw.engine.work import Seat
from hideaway.hw.target.model import Target
from hideaway.sim.errors import InputError


@dataclass(frozen=True, slots=True)
class Drafts:
    """Drafted tokens.

    Parameters
    ----------
    tokens : torch.Tensor
        Whole numbers, (seqs, rows - 1).
    probabilities : torch.Tensor or None
        What they were drawn from, (seqs, rows - 1, vocabulary); None where nothing was drawn.
    """

    tokens: torch.Tensor
    probabilities: torch.Tensor | None = None


class BlockDrafter(Protocol):
    """Proposes the rest of a block after each sequence's anchor."""

    def observe(self, seq_id: int, first_position: int, features: torch.Tensor) -> None:
        """Take in features (tokens, width) of committed rows, each once and in order. Changes state."""

    def draft(self, seats: Sequence[Seat], tokens: TokenBook, rule: SamplingRule) -> Drafts:
        """Return the drafts of blocks of equally many rows. Changes state."""

    def forget(self, seq_id: int) -> None:
        """Give back what a sequence holds; one that is not known is no fault. Changes state."""


class DFlashBlocks:
    """Drafts blocks with a DFlash drafter through the target's embedding and head."""

    def __init__(self, drafter: DFlashDrafter, target: Target) -> None:
        _check_fits(drafter, target)
        self._drafter = drafter
        self._target = target
        self._caches: dict[int, ContextCache] = {}
        self._pending: dict[int, list[torch.Tensor]] = {}

    def observe(self, seq_id: int, first_position: int, features: torch.Tensor) -> None:
        """Keep the features until the next draft. Changes state."""
        if first_position == 0:
            self.forget(seq_id)
        self._pending.setdefault(seq_id, []).append(features)

    def draft(self, seats: Sequence[Seat], tokens: TokenBook, rule: SamplingRule) -> Drafts:
        """Return the drafts of one forward of the drafter over all blocks. Changes state."""
        caches = [self._caches.setdefault(seat.seq_id, self._drafter.new_cache()) for seat in seats]
        pending = [self._pending.pop(seat.seq_id, None) for seat in seats]
        new = [(cache, torch.cat(pieces)) for cache, pieces in zip(caches, pending, strict=True) if pieces]
        if new:
            grown = [cache for cache, _ in new]
            firsts = [cache.num_tokens for cache in grown]
            self._drafter.extend(grown, [features for _, features in new], firsts)
        anchors = torch.tensor([tokens.anchor(seat.seq_id) for seat in seats], device=self._target.device)
        blocks = self._drafter.embed_blocks(anchors, self._target.embedding, seats[0].num_rows)
        hidden = self._drafter.draft(blocks, caches)
        logits = self._drafter.logits(hidden, lambda rows: self._target.logits(rows))
        if rule.temperature == 0:
            return Drafts(logits.argmax(dim=-1))
        probabilities = rule.probabilities(logits)
        drawn = draw_rows(probabilities, [tokens.generator(seat.seq_id) for seat in seats])
        return Drafts(drawn, probabilities)

    def forget(self, seq_id: int) -> None:
        """Drop a sequence's cache and features. Changes state."""
        self._caches.pop(seq_id, None)
        self._pending.pop(seq_id, None)


def _check_fits(drafter: DFlashDrafter, target: Target) -> None:
    config = drafter.config
    vocabulary, hidden = target.embedding.shape
    for name, mine, theirs in (
        ("hidden_size", config.hidden_size, hidden),
        ("vocab_size", config.vocab_size, vocabulary),
        ("num_target_layers", config.num_target_layers or target.num_layers, target.num_layers),
    ):
        if mine != theirs:
            raise InputError(
                f"the drafter's {name} is {mine} but the target has {theirs}; take the drafter that was trained for it"
            )
