"""One draft layer: a Qwen3 decoder layer whose keys and values also come from the target's features.

The block's rows pass through norm, attention, norm and SwiGLU with residuals. The projected features pass through no
layer: each layer's own key and value projections read them directly (z-lab/dflash, `Qwen3DFlashAttention`). Keys of
both kinds are normalised per head and rotated by their absolute positions. `drafter.py` stacks the layers.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import silu

from hideaway.hw.draft.config import DrafterConfig
from hideaway.hw.draft.rope import RopeParameters, inverse_frequencies

Angles = tuple[torch.Tensor, torch.Tensor]
"""Cosines and sines of positions, each (..., 1, head_dim / 2): the same for every head."""


class RmsNorm(nn.Module):
    """Root mean square norm, computed in float32 at least (Zhang and Sennrich, arXiv 1910.07467, equation 4)."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self._eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x over the root of its mean square, times the weight; (..., width)."""
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        scaled = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self._eps)
        return self.weight * scaled.to(x.dtype)


class Rotary:
    """Angles of positions. Not a module, so that casting the drafter leaves its frequencies in float32."""

    def __init__(self, parameters: RopeParameters, head_dim: int) -> None:
        self._frequencies = torch.from_numpy(inverse_frequencies(parameters, head_dim))
        self._factor = parameters.cosine_factor

    def angles(self, positions: torch.Tensor, dtype: torch.dtype) -> Angles:
        """Return cosines and sines of whole positions (...), each (..., 1, head_dim / 2) of the dtype."""
        if self._frequencies.device != positions.device:
            self._frequencies = self._frequencies.to(positions.device)
        turned = positions.to(torch.float32)[..., None, None] * self._frequencies
        return (turned.cos() * self._factor).to(dtype), (turned.sin() * self._factor).to(dtype)


def rotate(x: torch.Tensor, angles: Angles) -> torch.Tensor:
    """Return heads (..., heads, head_dim) with channel i and i + head_dim / 2 turned as a pair."""
    cosine, sine = angles
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)


class DraftAttention(nn.Module):
    """The projections of one layer; names of the parameters are those of the published tensors."""

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        self._width = config.head_dim
        hidden, bias = config.hidden_size, config.attention_bias
        queries, keys = config.num_attention_heads * self._width, config.num_key_value_heads * self._width
        self.q_proj = linear(hidden, queries, bias=bias)
        self.k_proj = linear(hidden, keys, bias=bias)
        self.v_proj = linear(hidden, keys, bias=bias)
        self.o_proj = linear(queries, hidden, bias=bias)
        self.q_norm = RmsNorm(self._width, config.rms_norm_eps)
        self.k_norm = RmsNorm(self._width, config.rms_norm_eps)

    def queries(self, rows: torch.Tensor, angles: Angles) -> torch.Tensor:
        """Return the queries of (..., hidden), (..., heads, head_dim)."""
        return rotate(self.q_norm(self._heads(self.q_proj(rows))), angles)

    def keys_values(self, rows: torch.Tensor, angles: Angles) -> tuple[torch.Tensor, torch.Tensor]:
        """Return keys and values of normed rows or of projected features, each (..., kv_heads, head_dim)."""
        keys = rotate(self.k_norm(self._heads(self.k_proj(rows))), angles)
        return keys, self._heads(self.v_proj(rows))

    def output(self, gathered: torch.Tensor) -> torch.Tensor:
        """Return (..., hidden) from gathered values (..., heads, head_dim)."""
        projected: torch.Tensor = self.o_proj(gathered.flatten(-2))
        return projected

    def _heads(self, projected: torch.Tensor) -> torch.Tensor:
        return projected.view(*projected.shape[:-1], projected.shape[-1] // self._width, self._width)


class DraftMlp(nn.Module):
    """SwiGLU without biases (Shazeer, arXiv 2002.05202)."""

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        self.gate_proj = linear(config.hidden_size, config.intermediate_size)
        self.up_proj = linear(config.hidden_size, config.intermediate_size)
        self.down_proj = linear(config.intermediate_size, config.hidden_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (..., hidden)."""
        product: torch.Tensor = self.down_proj(silu(self.gate_proj(x)) * self.up_proj(x))
        return product


class DraftLayer(nn.Module):
    """One layer; how its rows attend is the caller's, between `before` and `after`."""

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        self.input_layernorm = RmsNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = DraftAttention(config)
        self.post_attention_layernorm = RmsNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = DraftMlp(config)

    def before(
        self, x: torch.Tensor, angles: Angles
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        """Return the queries and the keys and values of the rows (..., hidden)."""
        rows = self.input_layernorm(x)
        return self.self_attn.queries(rows, angles), self.self_attn.keys_values(rows, angles)

    def after(self, x: torch.Tensor, gathered: torch.Tensor) -> torch.Tensor:
        """Return the rows after the layer, from those before it and what attention gathered."""
        x = x + self.self_attn.output(gathered)
        grown: torch.Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return grown


def linear(inputs: int, outputs: int, *, bias: bool = False) -> nn.Linear:
    """Return a matrix whose weights are not set, without drawing from torch's global generator."""
    return nn.Linear(inputs, outputs, bias=bias, device="meta").to_empty(device="cpu")
