"""Figures of a trained target: its loss, whether its text repeats itself, where it routes."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional
from transformers import Qwen3MoeForCausalLM

from hideaway.hw.training.corpus import Tokens
from hideaway.sim.inputs.routing.locality import lag_overlap, membership, window_union
from hideaway.sim.inputs.routing.trace import RoutingTrace

_GRAM = 8
_WINDOWS_AT_ONCE = 8


def spread_windows(tokens: Tokens, *, count: int, length: int) -> torch.Tensor:
    """Return windows at equal distances over the whole text, (count, length)."""
    starts = np.linspace(0, len(tokens) - length, count).astype(np.int64)
    return torch.from_numpy(tokens[starts[:, None] + np.arange(length)].astype(np.int64))


@torch.no_grad()
def mean_loss(model: Qwen3MoeForCausalLM, texts: torch.Tensor) -> float:
    """Return nats per token of texts (texts, tokens), each but its first token given all before it."""
    losses = []
    for batch in torch.split(texts, _WINDOWS_AT_ONCE):
        logits = model(input_ids=batch[:, :-1], use_cache=False).logits
        losses.append(
            functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten(), reduction="none")
        )
    return float(torch.cat(losses).double().mean())


def repeated_share(texts: torch.Tensor) -> float:
    """Return the share of runs of 8 tokens in texts (texts, tokens) that their text has had before."""
    repeated = total = 0
    for text in texts.tolist():
        seen: set[tuple[int, ...]] = set()
        for start in range(len(text) - _GRAM + 1):
            gram = tuple(text[start : start + _GRAM])
            repeated += gram in seen
            seen.add(gram)
            total += 1
    return repeated / total


@torch.no_grad()
def routing(model: Qwen3MoeForCausalLM, texts: torch.Tensor) -> RoutingTrace:
    """Return the experts of every token of texts (texts, tokens)."""
    config, parts = model.config, []
    for batch in torch.split(texts, _WINDOWS_AT_ONCE):
        out = model.model(input_ids=batch, use_cache=False, output_router_logits=True)
        chosen = [logits.topk(config.num_experts_per_tok, dim=-1).indices for logits in out.router_logits]
        parts.append(torch.stack(chosen, dim=1))
    return RoutingTrace(
        "held-out text",
        torch.cat(parts).numpy().astype(np.int16),
        config.num_experts,
        config.num_experts_per_tok,
        np.full(len(texts), texts.shape[1]),
        "the target's own router on text that it was not trained on",
    )


def routing_figures(trace: RoutingTrace) -> dict[str, list[float]]:
    """Return how uneven and how persistent routing is, by layer.

    `top_quarter_share`: of all routed rows, the share at the busiest quarter of the experts. `least_used_share`: that
    of the least used expert. `next_token_overlap`: of a token's experts, the share that the token before had too;
    `overlap_by_chance` would be that of independent tokens with the same use of experts. `experts_of_8_tokens`:
    different experts of 8 successive tokens.
    """
    use = membership(trace).mean(axis=0)
    busiest = np.sort(use, axis=-1)[:, -(trace.num_experts // 4) :].sum(axis=-1) / trace.top_k
    figures = {
        "top_quarter_share": busiest,
        "least_used_share": use.min(axis=-1) / trace.top_k,
        "next_token_overlap": lag_overlap(trace, 1),
        "overlap_by_chance": np.square(use).sum(axis=-1) / trace.top_k,
        "experts_of_8_tokens": window_union(trace, 8),
    }
    return {name: [round(float(value), 4) for value in values] for name, values in figures.items()}
