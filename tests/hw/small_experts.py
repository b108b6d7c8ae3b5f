"""Layouts, experts and rows that the tests of FP4 experts share."""

from __future__ import annotations

import numpy as np
import torch

from hideaway.hw.fp4.expert_weights import synthetic_expert
from hideaway.hw.fp4.layouts import ExpertLayout

# Widths beside multiples of a block (16 or 32), of what the look-ups take (64) and of a loop step (256).
WIDTHS = ((64, 64), (256, 96), (33, 17), (352, 304))
KINDS = tuple(
    (expert_format, swiglu) for expert_format in ("mxfp4", "nvfp4") for swiglu in ("plain", "gpt-oss")
)


def layout_of(hidden: int, inner: int, expert_format: str = "mxfp4", swiglu: str = "plain") -> ExpertLayout:
    return ExpertLayout(
        hidden_size=hidden, intermediate_size=inner, expert_format=expert_format, swiglu=swiglu
    )


def expert_of(layout: ExpertLayout, seed: int = 0) -> np.ndarray:
    return synthetic_expert(layout, np.random.default_rng(seed))


def rows_of(layout: ExpertLayout, count: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(count, layout.hidden_size, generator=torch.Generator().manual_seed(seed))
