"""Rounding in training is rounding in storage."""

from __future__ import annotations

import numpy as np
import torch

from hideaway.hw.fp4.fp4_tensor import dequantise
from hideaway.hw.fp4.mxfp4 import quantise_mxfp4
from hideaway.hw.training.fake_quantise import rounded_to_mxfp4, straight_through


def test_values_are_those_of_the_stored_tensor_to_the_bit() -> None:
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(256, 320, generator=generator) * torch.logspace(-8, 8, 256)[:, None]
    halves = torch.randint(-12, 13, (64, 320), generator=generator) / 4  # every midpoint between codes
    for matrix in (weights, halves.float(), torch.zeros(3, 64)):
        stored = torch.from_numpy(dequantise(quantise_mxfp4(matrix.numpy())))
        assert np.array_equal(rounded_to_mxfp4(matrix).numpy(), stored.numpy())


def test_stacks_of_matrices_are_rounded_each_by_itself() -> None:
    stack = torch.randn(5, 8, 64, generator=torch.Generator().manual_seed(1))
    assert torch.equal(rounded_to_mxfp4(stack)[3], rounded_to_mxfp4(stack[3]))


def test_gradients_pass_as_if_nothing_had_been_rounded() -> None:
    weights = torch.randn(4, 32, generator=torch.Generator().manual_seed(2), requires_grad=True)
    slopes = torch.randn(4, 32, generator=torch.Generator().manual_seed(3))
    (straight_through(weights) * slopes).sum().backward()
    assert weights.grad is not None
    assert torch.equal(weights.grad, slopes)
