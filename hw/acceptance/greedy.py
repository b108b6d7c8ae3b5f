"""Greedy acceptance: the longest run of drafts that the target would have chosen itself, then its own choice.

What is emitted equals plain greedy decoding token for token, because every kept token is the argmax after tokens that
are themselves kept (Stern et al., "Blockwise parallel decoding", arXiv 1811.03115, section 3). The rule for sampled
decoding is in `sampled.py`.
"""

from __future__ import annotations

import torch

from hideaway.hw.acceptance.outcome import Outcome, check_rows, leading


def accept_greedy(
    drafts: torch.Tensor, choices: torch.Tensor, num_drafts: torch.Tensor | None = None
) -> Outcome:
    """Return which drafts are kept.

    Parameters
    ----------
    drafts
        Drafted tokens, whole numbers (seqs, drafts).
    choices
        The target's argmax in every verified row, (seqs, drafts + 1): row 0, the anchor's, says what should stand
        where draft 0 is.
    num_drafts
        Drafts of each sequence where they differ, (seqs,); what comes after is padding.

    Raises
    ------
    InputError
        `choices` has not one row more than `drafts`.
    """
    check_rows(drafts, choices.shape[1])
    accepted = leading(drafts == choices[:, :-1], num_drafts)
    return Outcome(accepted, choices.gather(1, accepted[:, None])[:, 0])
