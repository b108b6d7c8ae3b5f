"""Sampled acceptance: what is emitted follows the target's distribution exactly, whatever the drafter proposed.

Draft x, drawn from q, is kept with probability min(1, p(x) / q(x)); at the first that is not, a token is drawn from
the residual max(p - q, 0) over its sum; if all are kept, the last row of the target adds a token from its p
(Leviathan, Kalman and Matias, "Fast inference from transformers via speculative decoding", arXiv 2211.17192,
section 2.3 and appendix A.1; Chen et al., "Accelerating large language model decoding with speculative sampling",
arXiv 2302.01318, algorithm 2). Why it is exact, in one row: a token x is emitted with probability
q(x) min(1, p(x) / q(x)) + (1 - beta) max(p(x) - q(x), 0) / (1 - beta) = min(p, q) + max(p - q, 0) = p(x), with
beta = sum of min(p, q) the chance that the draft is kept, and 1 - beta = sum of max(p - q, 0).

A block drafter draws all rows at once, row i from a q_i that knows none of the other drafts. The argument needs no
more: given the tokens kept before it, q_i is a fixed distribution, and p_i is the target's after just those tokens.
"""

from __future__ import annotations

import torch

from hideaway.hw.acceptance.outcome import Outcome, check_rows, leading
from hideaway.hw.acceptance.sampling import draw, uniforms_of
from hideaway.sim.errors import InputError


def accept_sampled(
    drafts: torch.Tensor,
    draft_probabilities: torch.Tensor,
    target_probabilities: torch.Tensor,
    generators: list[torch.Generator],
    num_drafts: torch.Tensor | None = None,
) -> Outcome:
    """Return which drafts are kept, and the target's own tokens. Changes the generators.

    Parameters
    ----------
    drafts
        Drafted tokens, whole numbers (seqs, drafts).
    draft_probabilities
        The q that each was drawn from, (seqs, drafts, vocab).
    target_probabilities
        The target's p in every verified row, (seqs, drafts + 1, vocab); row 0 is the anchor's.
    generators
        One on the CPU for each sequence: the result does not depend on what is batched together. Each gives
        drafts + 1 numbers.
    num_drafts
        Drafts of each sequence where they differ, (seqs,); what comes after is padding.

    Raises
    ------
    InputError
        Shapes do not fit, or a draft has probability 0 in its q.
    """
    if len(generators) != drafts.shape[0]:
        raise InputError(
            f"there are {len(generators)} generators for {drafts.shape[0]} sequences; give one for each"
        )
    if num_drafts is None:
        counts = [drafts.shape[1]] * len(generators)
    else:
        counts = [int(count) for count in num_drafts.tolist()]
    # A sequence draws as many numbers as it has drafts, and one: not as many as the widest beside it.
    uniforms = torch.zeros(len(generators), drafts.shape[1] + 1, dtype=torch.float64)
    for row, (generator, count) in enumerate(zip(generators, counts, strict=True)):
        drawn = uniforms_of([generator], count + 1)[0]
        uniforms[row, :count] = drawn[:count]
        uniforms[row, -1] = drawn[count]
    return decide(drafts, draft_probabilities, target_probabilities, uniforms.to(drafts.device), num_drafts)


def decide(
    drafts: torch.Tensor,
    draft_probabilities: torch.Tensor,
    target_probabilities: torch.Tensor,
    uniforms: torch.Tensor,
    num_drafts: torch.Tensor | None = None,
) -> Outcome:
    """Return the outcome for given random numbers; otherwise as `accept_sampled`.

    Parameters
    ----------
    drafts, draft_probabilities, target_probabilities, num_drafts
        As there.
    uniforms
        In [0, 1), (seqs, drafts + 1): one for each draft, and in the last column one for the token drawn at the end.
    """
    check_rows(drafts, target_probabilities.shape[1])
    seqs, count = drafts.shape
    q, p = draft_probabilities.double(), target_probabilities.double()
    if q.shape != (seqs, count, p.shape[2]):
        raise InputError(
            f"q has the shape {list(q.shape)} for {seqs} sequences of {count} drafts and {p.shape[2]} tokens; "
            "give q for every draft over the target's vocabulary"
        )
    real = torch.full((seqs,), count, device=drafts.device) if num_drafts is None else num_drafts
    mine = q.gather(2, drafts[..., None])[..., 0]
    is_draft = torch.arange(count, device=drafts.device) < real[:, None]
    if bool(((mine <= 0) & is_draft).any()):
        raise InputError("a draft has probability 0 in the q it was drawn from; hand over the q that drew it")
    kept = uniforms[:, :count] * mine < p[:, :-1].gather(2, drafts[..., None])[..., 0]
    accepted = leading(kept, num_drafts)
    at = accepted[:, None, None].expand(-1, 1, p.shape[2])
    final = p.gather(1, at)[:, 0]
    if count:
        refused = q.gather(1, at.clamp(max=count - 1))[:, 0]
        left = residual(final, refused)
        final = torch.where((accepted < real)[:, None], left, final)
    return Outcome(accepted, draw(final, uniforms[:, -1]))


def residual(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """Return the weights from which a token is drawn after a rejection, max(p - q, 0), (..., vocab), not normalised.

    Where nothing is left, p and q are equal up to rounding and a rejection was rounding too: p itself.
    """
    left = (p - q).clamp(min=0)
    return torch.where(left.sum(dim=-1, keepdim=True) > 0, left, p)
