"""A target so small that a drafter for it trains in seconds."""

from __future__ import annotations

from hideaway.hw.training.target_model import TargetShape

SHAPE = TargetShape(
    hidden_size=32,
    num_layers=2,
    num_heads=1,
    num_kv_heads=1,
    head_dim=32,
    num_experts=4,
    expert_intermediate_size=32,
)
