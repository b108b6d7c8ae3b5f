"""Figures against cases whose answer is plain."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from hideaway.hw.training.measures import (
    mean_loss,
    repeated_share,
    routing,
    routing_figures,
    spread_windows,
)
from hideaway.hw.training.target_model import TargetShape, new_target
from hideaway.sim.inputs.routing.trace import RoutingTrace


def test_a_text_without_repetition_has_none_and_a_loop_nearly_only() -> None:
    assert repeated_share(torch.arange(100)[None]) == 0
    loop = torch.arange(5).repeat(21)[None]
    assert repeated_share(loop) == pytest.approx((105 - 7 - 5) / (105 - 7))


def test_windows_reach_from_the_first_token_to_the_last() -> None:
    found = spread_windows(np.arange(1000, dtype=np.int16), count=4, length=10)
    assert found[:, 0].tolist() == [0, 330, 660, 990]


def test_loss_of_an_even_head_is_the_logarithm_of_the_vocabulary() -> None:
    model = new_target(TargetShape(hidden_size=32, num_layers=1, num_heads=1, num_kv_heads=1), 0).eval()
    with torch.no_grad():
        model.lm_head.weight.zero_()
    texts = torch.randint(0, 256, (3, 20), generator=torch.Generator().manual_seed(0))
    assert mean_loss(model, texts) == pytest.approx(math.log(260), rel=1e-6)
    assert routing(model, texts).expert_ids.shape == (60, 1, 2)


def trace(experts: np.ndarray, num_experts: int) -> RoutingTrace:
    """A trace of (texts, tokens, layers, top_k)."""
    texts, tokens, _, top_k = experts.shape
    rows = experts.reshape(-1, *experts.shape[2:]).astype(np.int16)
    return RoutingTrace("made up", rows, num_experts, top_k, np.full(texts, tokens), "a test")


def test_routing_that_never_changes() -> None:
    figures = routing_figures(trace(np.tile(np.array([1, 6]), (2, 16, 1, 1)), 8))
    assert figures["top_quarter_share"] == [1.0]
    assert figures["least_used_share"] == [0.0]
    assert figures["next_token_overlap"] == figures["overlap_by_chance"] == [1.0]
    assert figures["experts_of_8_tokens"] == [2.0]


def test_routing_without_pattern_is_what_chance_says() -> None:
    rng = np.random.default_rng(0)
    figures = routing_figures(trace(rng.random((4, 4096, 1, 16)).argsort(axis=-1)[..., :2], 16))
    assert figures["overlap_by_chance"] == [pytest.approx(2 / 16, abs=0.001)]
    assert figures["next_token_overlap"] == [pytest.approx(2 / 16, abs=0.01)]  # z = 5 of 16,384 pairs
    expected = 16 * (1 - (14 / 16) ** 8)
    assert figures["experts_of_8_tokens"] == [pytest.approx(expected, abs=0.12)]  # z = 5 of 4,096 unions
