"""The target as transformers builds it: `Qwen3MoeForCausalLM`, the experts by `experts.py`.

Its shape was chosen for what two cores can train well within an hour. `target.py` trains it, `export.py` stores it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

from hideaway.hw.training.corpus import BOS, EOS, VOCABULARY
from hideaway.hw.training.experts import IMPLEMENTATION, QUANTISED_IMPLEMENTATION

ROPE_THETA = 10000.0
"""Base of the rotary angles, of target and drafter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetShape:
    """What of the architecture is free."""

    hidden_size: int = 192
    num_layers: int = 4
    num_heads: int = 6
    num_kv_heads: int = 2
    head_dim: int = 32
    num_experts: int = 16
    top_k: int = 2
    expert_intermediate_size: int = 128

    def config(self) -> Qwen3MoeConfig:
        """Return the model's config."""
        values: dict[str, Any] = dict(
            vocab_size=VOCABULARY,
            hidden_size=self.hidden_size,
            intermediate_size=4 * self.hidden_size,
            num_hidden_layers=self.num_layers,
            num_attention_heads=self.num_heads,
            num_key_value_heads=self.num_kv_heads,
            head_dim=self.head_dim,
            max_position_embeddings=4096,
            initializer_range=0.05,
            rope_parameters={"rope_theta": ROPE_THETA, "rope_type": "default"},
            decoder_sparse_step=1,
            mlp_only_layers=[],
            moe_intermediate_size=self.expert_intermediate_size,
            num_experts=self.num_experts,
            num_experts_per_tok=self.top_k,
            norm_topk_prob=True,
            tie_word_embeddings=False,
            bos_token_id=BOS,
            eos_token_id=EOS,
        )
        return Qwen3MoeConfig(**values)


def new_target(shape: TargetShape, seed: int) -> Qwen3MoeForCausalLM:
    """Return a target with random weights, ready to train."""
    torch.manual_seed(seed)
    config = shape.config()
    config._attn_implementation = "sdpa"
    config._experts_implementation = IMPLEMENTATION
    return Qwen3MoeForCausalLM(config)


def quantise_experts_in_forward(model: Qwen3MoeForCausalLM, quantised: bool) -> None:
    """Let the model compute with its experts rounded to MXFP4, or with its own weights."""
    model.config._experts_implementation = QUANTISED_IMPLEMENTATION if quantised else IMPLEMENTATION


def balance_loss(router_logits: tuple[torch.Tensor, ...], top_k: int) -> torch.Tensor:
    """Return how unevenly experts are used: num_experts sum_e f_e P_e, mean over layers, 1 if evenly.

    f_e is the share of the routed rows that go to expert e, P_e the router's mean probability of it (Fedus et al. 2021,
    arXiv 2101.03961, equations 4 to 6).
    """
    losses = []
    for logits in router_logits:
        num_experts = logits.shape[-1]
        chosen = logits.topk(top_k, dim=-1).indices
        shares = torch.bincount(chosen.flatten(), minlength=num_experts) / chosen.numel()
        losses.append(num_experts * (shares * logits.softmax(dim=-1).mean(dim=0)).sum())
    return torch.stack(losses).mean()
