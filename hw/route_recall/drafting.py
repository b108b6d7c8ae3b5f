"""Where a block's drafts come from, and what is kept of them: a DFlash drafter, or the text with tokens spoilt.

A drafter's text is the target's own, as in service. Without one the text is given: a draft is the token that stands
there, or with a stated chance another token drawn from the text's own, and the first spoilt one is the rejection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from hideaway.hw.acceptance.greedy import accept_greedy
from hideaway.hw.acceptance.sampled import accept_sampled
from hideaway.hw.acceptance.sampling import SamplingRule
from hideaway.hw.draft.drafter import DFlashDrafter
from hideaway.hw.engine.block_drafter import DFlashBlocks
from hideaway.hw.engine.token_book import TokenBook
from hideaway.hw.engine.work import Seat
from hideaway.hw.target.model import Target


@dataclass(frozen=True, slots=True, eq=False)
class Drafted:
    """Drafts of one block.

    Parameters
    ----------
    tokens : list of int
        One fewer than the block has rows.
    hidden : Tensor or None
        The drafter's final hidden states of these rows, (rows, hidden).
    probabilities : Tensor or None
        What they were drawn from, (rows, vocabulary); None where nothing was drawn.
    """

    tokens: list[int]
    hidden: torch.Tensor | None = None
    probabilities: torch.Tensor | None = None


class Drafts(Protocol):
    """Proposes blocks and judges them."""

    def observe(self, sequence: int, position: int, features: torch.Tensor) -> None:
        """Take in the target's features of a text's committed rows from `position` on. Changes state."""

    def draft(self, seat: Seat, book: TokenBook) -> Drafted:
        """Return the drafts of a block. Changes state."""

    def judge(self, seat: Seat, drafted: Drafted, logits: torch.Tensor, book: TokenBook) -> tuple[int, int]:
        """Return how many drafts are kept and the token after them. Changes state.

        Parameters
        ----------
        seat : Seat
            The rows of the block, the first of which is the anchor's; of a prompt, its last row.
        logits : torch.Tensor
            Of these rows, (rows, vocabulary).
        """


class DrafterDrafts:
    """Drafts of a DFlash drafter, kept as in service: greedily, or so that the target's distribution is preserved."""

    def __init__(self, drafter: DFlashDrafter, target: Target, rule: SamplingRule) -> None:
        self._blocks = DFlashBlocks(drafter, target)
        self._rule = rule
        self._hidden = torch.empty(0)
        drafter.norm.register_forward_hook(self._keep)

    def observe(self, sequence: int, position: int, features: torch.Tensor) -> None:
        """Hand the features over. Changes state."""
        self._blocks.observe(sequence, position, features)

    def draft(self, seat: Seat, book: TokenBook) -> Drafted:
        """Return the drafts of one forward of the drafter. Changes state."""
        drafts = self._blocks.draft((seat,), book, self._rule)
        drawn_from = None if drafts.probabilities is None else drafts.probabilities[0]
        return Drafted(drafts.tokens[0].tolist(), self._hidden[0], drawn_from)

    def judge(self, seat: Seat, drafted: Drafted, logits: torch.Tensor, book: TokenBook) -> tuple[int, int]:
        """Return what the target keeps and adds. Changes the text's generator."""
        drafts = torch.tensor([drafted.tokens], dtype=torch.long, device=logits.device)
        if self._rule.temperature == 0:
            outcome = accept_greedy(drafts, logits.argmax(dim=-1)[None])
        else:
            target = self._rule.probabilities(logits)[None]
            q = target[:, :0] if drafted.probabilities is None else drafted.probabilities[None]
            outcome = accept_sampled(drafts, q, target, [book.generator(seat.seq_id)])
        return int(outcome.accepted[0]), int(outcome.own[0])

    def _keep(self, _: torch.nn.Module, __: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        self._hidden = output


class SpoiltText:
    """Drafts that are the given text, some of them spoilt.

    Parameters
    ----------
    texts : sequence of sequence of int
        Prompts and what truly follows them.
    spoilt_share : float
        Chance that a draft is replaced by a token drawn from `texts` (which may be the same again).
    generator : numpy.random.Generator
        Draws which are spoilt, and with what.
    """

    def __init__(
        self, texts: Sequence[Sequence[int]], spoilt_share: float, generator: np.random.Generator
    ) -> None:
        self._texts = texts
        self._share = spoilt_share
        self._generator = generator
        self._tokens: npt.NDArray[np.int64] = np.concatenate([np.asarray(text) for text in texts])

    def observe(self, sequence: int, position: int, features: torch.Tensor) -> None:
        """There is no drafter to tell."""

    def draft(self, seat: Seat, book: TokenBook) -> Drafted:
        """Return the next tokens of the text, some spoilt. Changes the generator."""
        first = seat.tokens_before + 1
        true = np.array(self._texts[seat.seq_id][first : first + seat.num_rows - 1])
        others = self._generator.choice(self._tokens, size=len(true))
        spoilt = self._generator.random(len(true)) < self._share
        return Drafted(np.where(spoilt, others, true).tolist())

    def judge(self, seat: Seat, drafted: Drafted, logits: torch.Tensor, book: TokenBook) -> tuple[int, int]:
        """Return how far the drafts are the text's, and the text's token after them."""
        first = seat.tokens_before + 1
        text = self._texts[seat.seq_id]
        kept = 0
        while kept < len(drafted.tokens) and drafted.tokens[kept] == text[first + kept]:
            kept += 1
        return kept, text[first + kept]
