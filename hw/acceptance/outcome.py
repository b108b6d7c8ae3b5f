"""What a rule decided in one round: how many drafts are kept, and the target's own token after them.

Both rules return it: `greedy.py` and `sampled.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hideaway.sim.errors import InputError


@dataclass(frozen=True, slots=True)
class Outcome:
    """Decisions for several sequences.

    Attributes
    ----------
    accepted : Tensor
        Drafts kept of each sequence, from the first on without a gap; whole numbers (seqs,).
    own : Tensor
        The token that the target adds behind them; whole numbers (seqs,).
    """

    accepted: torch.Tensor
    own: torch.Tensor

    def acceptance_lengths(self) -> list[int]:
        """Return the tokens committed of each sequence, a = accepted + 1."""
        return [count + 1 for count in self.accepted.tolist()]

    def committed(self, drafts: torch.Tensor) -> list[list[int]]:
        """Return the committed tokens of each sequence, of the drafts (seqs, drafts) the decision was about."""
        return [
            [*row[:count], own]
            for row, count, own in zip(
                drafts.tolist(), self.accepted.tolist(), self.own.tolist(), strict=True
            )
        ]


def leading(kept: torch.Tensor, num_drafts: torch.Tensor | None) -> torch.Tensor:
    """Return how many drafts come before the first that is not kept, (seqs,).

    Parameters
    ----------
    kept
        Booleans, (seqs, drafts).
    num_drafts
        Drafts of each sequence where they differ, (seqs,); later columns are padding.
    """
    if num_drafts is not None:
        kept = kept & (torch.arange(kept.shape[1], device=kept.device) < num_drafts[:, None])
    return kept.long().cumprod(dim=1).sum(dim=1)


def check_rows(drafts: torch.Tensor, num_rows: int) -> None:
    """Refuse a verify pass that is not of the anchor's row and one row for each draft.

    Raises
    ------
    InputError
        The target has another number of rows.
    """
    if num_rows != drafts.shape[1] + 1:
        raise InputError(
            f"the target verified {num_rows} rows for {drafts.shape[1]} drafts; "
            "it needs one row for the anchor and one for each draft"
        )
