"""Rows times a matrix, the faster way round for few rows."""

from __future__ import annotations

import torch
from torch.nn.functional import linear

_FEW_ROWS = 256
"""Up to here, on the CPU, weight @ rows.T took a third to two thirds of the time of `linear` (float32, AVX2)."""


def product(rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return (n, out) of rows (n, in) and a weight (out, in), contiguous."""
    if 1 < rows.shape[0] <= _FEW_ROWS and rows.device.type == "cpu":
        return (weight @ rows.T).T.contiguous()
    return linear(rows, weight)
