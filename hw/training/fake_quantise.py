"""MXFP4 as torch sees it in training: values rounded as they will be stored, gradients as if they were not.

The rounding is that of `hideaway.hw.fp4.mxfp4`, written for tensors; a test holds the two to the same bits.
"""

from __future__ import annotations

import torch

from hideaway.hw.fp4.e2m1 import LARGEST, LARGEST_EXPONENT
from hideaway.sim.inputs.models.weight_formats import MXFP4_BLOCK


def rounded_to_mxfp4(weights: torch.Tensor) -> torch.Tensor:
    """Return the weights (..., in) as their MXFP4 stores them, float32; `in` is a multiple of the block."""
    blocks = weights.detach().reshape(*weights.shape[:-1], -1, MXFP4_BLOCK)
    largest = blocks.abs().amax(dim=-1, keepdim=True)
    exponents = (torch.frexp(largest).exponent - 1 - LARGEST_EXPONENT).clamp(min=-126)
    scales = torch.ldexp(torch.ones_like(largest), exponents)
    values = blocks / scales
    magnitudes = values.abs()
    # Steps of E2M1: 0.5 below 2, 1 from 2 to 4, 2 above; torch rounds halves to even, which is the even code.
    steps = torch.where(magnitudes < 2, 0.5, torch.where(magnitudes < 4, 1.0, 2.0))
    rounded = (torch.round(values / steps) * steps).clamp(-LARGEST, LARGEST) * scales
    return rounded.flatten(-2)


def straight_through(weights: torch.Tensor) -> torch.Tensor:
    """Return the rounded weights, whose gradient reaches `weights` unchanged (Bengio et al. 2013, section 4)."""
    return weights + (rounded_to_mxfp4(weights) - weights).detach()
