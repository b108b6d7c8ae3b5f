"""The two SwiGLU experts in numpy, in any float type: the reference that kernels are held against.

gpt-oss (its reference implementation, `gpt_oss/torch/model.py`): gate = min(gate, 7), up = clamp(up, -7, 7), then
(up + 1) · gate · sigmoid(1.702 · gate), with biases on all three matrices. Qwen3-MoE, OLMoE, Mixtral: silu(gate) · up
without biases. Here gate and up are apart already; how they lie in storage is in `layouts.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hideaway.hw.fp4.expert_weights import ExpertWeights

Floats = npt.NDArray[Any]
"""Any float type; results have that of the arguments."""

GPT_OSS_LIMIT = 7.0
GPT_OSS_ALPHA = 1.702


def activate(gate: Floats, up: Floats, swiglu: str) -> Floats:
    """Return the activation of gate and up in their own float type; `swiglu` as in `layouts.SWIGLU_KINDS`."""
    if swiglu == "gpt-oss":
        gate = np.minimum(gate, gate.dtype.type(GPT_OSS_LIMIT))
        up = np.clip(up, -GPT_OSS_LIMIT, GPT_OSS_LIMIT)
        clamped: Floats = (up + 1) * (gate * _sigmoid(GPT_OSS_ALPHA * gate))
        return clamped
    plain: Floats = gate * _sigmoid(gate) * up
    return plain


def swiglu_expert(
    weights: ExpertWeights, rows: npt.ArrayLike, swiglu: str, dtype: type[np.floating[Any]] = np.float64
) -> Floats:
    """Return one expert's outputs, (rows, hidden), computed in `dtype` throughout.

    Parameters
    ----------
    weights
        The expert.
    rows
        (rows, hidden).
    swiglu
        One of `layouts.SWIGLU_KINDS`.
    dtype
        float64 for a reference, float32 to see what rounding does.
    """
    x = np.asarray(rows, dtype=dtype)
    gate = x @ weights.gate.T.astype(dtype) + weights.gate_bias.astype(dtype)
    up = x @ weights.up.T.astype(dtype) + weights.up_bias.astype(dtype)
    inner = activate(gate, up, swiglu)
    outputs: Floats = inner @ weights.down.T.astype(dtype) + weights.down_bias.astype(dtype)
    return outputs


def _sigmoid(z: Floats) -> Floats:
    small: Floats = np.exp(-np.abs(z))  # at most 1, so nothing overflows
    sigmoid: Floats = np.where(z >= 0, np.ones_like(small), small) / (1 + small)
    return sigmoid
