"""What a drafter is trained on: blocks at random anchors, judged by the target's own distributions.

For text x and an anchor at position n, row k of the block (1 to B - 1) should give the target's distribution of
x_{n+k}, of which the target's forward over x has the logits at position n + k - 1. Rows weigh exp(-(k - 1) / gamma),
gamma 4 for blocks of 8: a wrong early row costs all later ones (Chen et al., "DFlash", arXiv 2602.06036, whose labels
are the text's tokens; distributions say more per anchor).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional
from transformers import Qwen3MoeForCausalLM

from hideaway.hw.draft.drafter import DFlashDrafter

GAMMA = 4.0


@dataclass(frozen=True, slots=True, eq=False)
class TargetView:
    """What the target makes of texts: `features` (texts, tokens, feature_size) and `logits` (texts, tokens, vocab)."""

    features: torch.Tensor
    logits: torch.Tensor


@torch.no_grad()
def target_view(
    model: Qwen3MoeForCausalLM, text: torch.Tensor, target_layer_ids: tuple[int, ...]
) -> TargetView:
    """Return features and logits of texts (texts, tokens)."""
    out = model.model(input_ids=text, use_cache=False, output_hidden_states=True)
    features = torch.cat([out.hidden_states[layer + 1] for layer in target_layer_ids], dim=-1)
    return TargetView(features, model.lm_head(out.last_hidden_state))


def draft_logits(
    drafter: DFlashDrafter,
    model: Qwen3MoeForCausalLM,
    text: torch.Tensor,
    features: torch.Tensor,
    anchors: torch.Tensor,
) -> torch.Tensor:
    """Return logits of the drafted rows of blocks at anchors (texts, blocks), (texts, blocks, B - 1, vocab)."""
    embedding = model.model.embed_tokens.weight
    blocks = drafter.embed_blocks(torch.gather(text, 1, anchors), embedding, drafter.config.block_size)
    positions = torch.arange(text.shape[1]).expand(text.shape)
    hidden = drafter(blocks, drafter.project(features), anchor_positions=anchors, context_positions=positions)
    return drafter.logits(hidden[:, :, 1:], model.lm_head)


def draft_loss(
    drafter: DFlashDrafter, model: Qwen3MoeForCausalLM, text: torch.Tensor, anchors: torch.Tensor
) -> torch.Tensor:
    """Return the weighted mean cross-entropy, in nats, from the target's distributions to the drafter's."""
    view = target_view(model, text, drafter.config.target_layer_ids)
    logits = draft_logits(drafter, model, text, view.features, anchors)
    rows = torch.arange(logits.shape[2])
    seqs = torch.arange(len(text))[:, None, None]
    truth = view.logits[seqs, anchors[..., None] + rows].softmax(dim=-1)
    entropies = functional.cross_entropy(logits.flatten(0, 2), truth.flatten(0, 2), reduction="none")
    weights = torch.exp(-rows / GAMMA)
    weighted = entropies.view(logits.shape[:3]) * weights
    return torch.sum(weighted, dim=-1).mean() / weights.sum()
