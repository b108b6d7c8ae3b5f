"""One expert in plain torch: weights by table look-up, then `linear`; also the activation on torch tensors.

The portable fallback, tens of times slower than the compiled kernel for one row; `cpu_expert.py` warns when it is
used. The `linear` part also follows the compiled dequantisation when there are many rows.
"""

from __future__ import annotations

import numpy as np
import torch
from torch.nn.functional import linear, silu

from hideaway.hw.fp4.e2m1 import VALUES
from hideaway.hw.fp4.layouts import ExpertLayout
from hideaway.hw.fp4.scale_formats import E4M3_VALUES, E8M0_VALUES
from hideaway.hw.fp4.swiglu import GPT_OSS_ALPHA, GPT_OSS_LIMIT

_PAIRS = torch.from_numpy(np.stack([VALUES[np.arange(256) & 15], VALUES[np.arange(256) >> 4]], axis=1))
"""(256, 2): the two values of each byte, low nibble first."""
_SCALES = {"mxfp4": torch.from_numpy(E8M0_VALUES), "nvfp4": torch.from_numpy(E4M3_VALUES)}


def lookup_weights(layout: ExpertLayout, expert: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (2 · intermediate, hidden), gate rows before up rows, and (hidden, intermediate), float32 and exact."""
    inner = layout.intermediate_size
    factors = torch.ones(3)
    if layout.expert_format == "nvfp4":
        factors = _part(layout, expert, "tensor_scales")
    gate_up = _values(
        layout,
        _gate_first(layout, _part(layout, expert, "gate_up_blocks")),
        _gate_first(layout, _part(layout, expert, "gate_up_scales")),
        factors[:2].repeat_interleave(inner),
    )
    down = _values(
        layout,
        _part(layout, expert, "down_blocks"),
        _part(layout, expert, "down_scales"),
        factors[2:].expand(layout.hidden_size),
    )
    return gate_up[:, : layout.hidden_size], down[:, :inner]


def linear_expert(
    layout: ExpertLayout, expert: torch.Tensor, gate_up: torch.Tensor, down: torch.Tensor, rows: torch.Tensor
) -> torch.Tensor:
    """Return one expert's outputs, float32 (rows, hidden), from its dequantised weights.

    Products are in the weights' dtype (bfloat16 rounds rows and activations), biases and activation in float32.

    Parameters
    ----------
    layout, expert
        The layout, and the expert's bytes for their biases.
    gate_up, down
        As `lookup_weights` gives them, float32 or bfloat16.
    rows
        (rows, hidden) float32.
    """
    products = linear(rows.to(gate_up.dtype), gate_up).float()
    if layout.has_bias:
        products += _gate_first(layout, _part(layout, expert, "gate_up_bias")).float()
    gate, up = products.chunk(2, dim=1)
    outputs = linear(activate(gate, up, layout.swiglu).to(down.dtype), down).float()
    if layout.has_bias:
        outputs += _part(layout, expert, "down_bias").float()
    return outputs


def activate(gate: torch.Tensor, up: torch.Tensor, swiglu: str) -> torch.Tensor:
    """Return the activation of `swiglu.py` on tensors."""
    if swiglu == "gpt-oss":
        gate = gate.clamp(max=GPT_OSS_LIMIT)
        up = up.clamp(-GPT_OSS_LIMIT, GPT_OSS_LIMIT)
        return (up + 1) * (gate * torch.sigmoid(GPT_OSS_ALPHA * gate))
    return silu(gate) * up


def _part(layout: ExpertLayout, expert: torch.Tensor, name: str) -> torch.Tensor:
    part = layout.parts[name]
    view = expert[part.span]
    if part.dtype != "uint8":
        # A small part; the copy is aligned whatever the offset, which torch demands of a view.
        view = view.clone().view(getattr(torch, part.dtype))
    return view.reshape(part.shape)


def _gate_first(layout: ExpertLayout, stored: torch.Tensor) -> torch.Tensor:
    return torch.cat([stored[0::2], stored[1::2]]) if layout.interleaved else stored


def _values(
    layout: ExpertLayout, codes: torch.Tensor, scales: torch.Tensor, factors: torch.Tensor
) -> torch.Tensor:
    table = _SCALES[layout.expert_format]
    steps = table.index_select(0, scales.reshape(-1).int()).reshape(scales.shape) * factors[:, None]
    values = _PAIRS.index_select(0, codes.reshape(-1).int()).reshape(*scales.shape, layout.block)
    values *= steps[..., None]
    return values.reshape(scales.shape[0], -1)
