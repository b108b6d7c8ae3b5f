"""How many drafts the target accepts, measured on texts that are already written.

Speculative sampling (Leviathan et al. 2022, arXiv 2211.17192, section 2.3) draws y from the drafter's q, keeps it with
probability min(1, p(y) / q(y)) and otherwise draws from what is left of the target's p. So token v is committed and
was accepted with probability min(p(v), q(v)), committed at all with p(v): given that the text has v there, it was
accepted with probability min(1, q(v) / p(v)). A block drafter's q of a row does not depend on the rows before it.
Walking along a text that the target sampled, with that probability at every row, therefore has exactly the
distribution of speculative sampling, and needs one forward of each model over the text. Greedily, p and q are 1 at
their largest logit and 0 elsewhere, and the same rule says: accepted if the drafter's first choice is the text's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from transformers import Qwen3MoeForCausalLM

from hideaway.hw.draft.drafter import DFlashDrafter
from hideaway.hw.training.draft_loss import draft_logits, target_view

Probabilities = npt.NDArray[np.float64]
_TEXTS_AT_ONCE = 4


@dataclass(frozen=True, slots=True, eq=False)
class Acceptance:
    """What was accepted in the rounds of all texts.

    Parameters
    ----------
    rounds
        How many rounds kept exactly 0, 1, … B - 1 drafts, (B,).
    """

    rounds: npt.NDArray[np.int64]

    @property
    def mean(self) -> float:
        """Drafts accepted a round."""
        return float(self.rounds @ np.arange(len(self.rounds)) / self.rounds.sum())

    @property
    def conditional(self) -> tuple[float, ...]:
        """Of the rounds that kept all earlier drafts, the share that kept this one too, (B - 1,)."""
        reached = self.rounds[::-1].cumsum()[::-1]
        return tuple(float(rate) for rate in reached[1:] / np.maximum(reached[:-1], 1))


def measured_acceptance(
    drafter: DFlashDrafter,
    model: Qwen3MoeForCausalLM,
    texts: torch.Tensor,
    *,
    first: int,
    temperature: float,
    generator: np.random.Generator,
) -> Acceptance:
    """Return the acceptance of rounds over texts, (texts, tokens), whose tokens from `first` on are the target's.

    The target wrote them at this temperature. Other texts (a teacher's) give the share of first choices that are the
    text's tokens, at temperature 0.
    """
    block = drafter.config.block_size
    counts = np.zeros(block, dtype=np.int64)
    for at in range(0, len(texts), _TEXTS_AT_ONCE):
        chosen = texts[at : at + _TEXTS_AT_ONCE]
        for rates in acceptance_rates(drafter, model, chosen, first=first, temperature=temperature):
            counts += walked(rates, generator)
    return Acceptance(counts)


@torch.no_grad()
def acceptance_rates(
    drafter: DFlashDrafter,
    model: Qwen3MoeForCausalLM,
    texts: torch.Tensor,
    *,
    first: int,
    temperature: float,
) -> Probabilities:
    """Return min(1, q / p) of the text's tokens for an anchor at every position, (texts, anchors, B - 1).

    The first anchor is the token at `first - 1`, the last one leaves a whole block before the text's end.
    """
    num_drafts = drafter.config.block_size - 1
    view = target_view(model, texts, drafter.config.target_layer_ids)
    anchors = torch.arange(first - 1, texts.shape[1] - num_drafts - 1).expand(len(texts), -1)
    logits = draft_logits(drafter, model, texts, view.features, anchors)
    rows = anchors[..., None] + torch.arange(num_drafts)
    seqs = torch.arange(len(texts))[:, None, None]
    tokens = texts[seqs, rows + 1]
    if temperature == 0:
        return (logits.argmax(-1) == tokens).double().numpy()
    own = (logits / temperature).double().log_softmax(-1).gather(-1, tokens[..., None])[..., 0]
    target = (view.logits / temperature).double().log_softmax(-1)[seqs, rows, tokens]
    return (own - target).clamp(max=0.0).exp().numpy()


def walked(rates: Probabilities, generator: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return how many rounds along one text kept 0, 1, … B - 1 drafts, from its rates (anchors, B - 1).

    A round that keeps k drafts commits k + 1 tokens, the last of which is the next anchor.
    """
    num_drafts = rates.shape[1]
    counts = np.zeros(num_drafts + 1, dtype=np.int64)
    anchor = 0
    while anchor < len(rates):
        kept = generator.random(num_drafts) < rates[anchor]
        accepted = num_drafts if kept.all() else int(kept.argmin())
        counts[accepted] += 1
        anchor += accepted + 1
    return counts
