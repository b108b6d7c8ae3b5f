"""One expert's weights to and from its bytes, in the layout of `layouts.py`. Numpy only.

`pack_expert` writes them, `unpack_expert` reads them back as exact float32 matrices (the reference for every kernel),
`synthetic_expert` makes bytes of any shape quickly, with values of the size trained weights have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from hideaway.hw.fp4.fp4_tensor import Fp4Tensor, dequantise
from hideaway.hw.fp4.layouts import ExpertLayout
from hideaway.hw.fp4.scale_formats import E8M0_BIAS, round_to_e4m3
from hideaway.sim.errors import InputError

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]

_CODE_RMS = math.sqrt((0.5**2 + 1 + 1.5**2 + 2**2 + 3**2 + 4**2 + 6**2) / 8)
"""Root mean square of an E2M1 code drawn uniformly."""


@dataclass(frozen=True, slots=True, eq=False)
class ExpertWeights:
    """An expert as float32: gate, up (intermediate, hidden), down (hidden, intermediate), biases (zeros if none)."""

    gate: Floats
    up: Floats
    down: Floats
    gate_bias: Floats
    up_bias: Floats
    down_bias: Floats


def pack_expert(
    layout: ExpertLayout,
    *,
    gate_up: Fp4Tensor | tuple[Fp4Tensor, Fp4Tensor],
    down: Fp4Tensor,
    gate_up_bias: npt.NDArray[np.float32 | np.uint16] | None = None,
    down_bias: npt.NDArray[np.float32 | np.uint16] | None = None,
) -> Bytes:
    """Return one expert's bytes, (layout.expert_bytes,) uint8.

    Parameters
    ----------
    layout
        Where the parts go.
    gate_up
        A pair (gate, up), or one tensor whose rows are in the layout's order already (mxfp4 only: in nvfp4 gate and
        up have a float32 each).
    down
        The matrix (hidden, intermediate).
    gate_up_bias, down_bias
        In the layout's order; float32 (rounded to the nearest bfloat16) or uint16 (bits of bfloat16). Given exactly
        where the layout has biases.

    Raises
    ------
    InputError
        A tensor's shape or format is not the layout's, or biases are missing or superfluous.
    """
    if isinstance(gate_up, Fp4Tensor):
        if layout.expert_format == "nvfp4":
            raise InputError("gate_up is one tensor but nvfp4 needs gate and up apart; give a pair")
        gate_up_codes, gate_up_scales = gate_up.packed, gate_up.scales
        _check("gate_up", gate_up, (2 * layout.intermediate_size, layout.hidden_size), layout)
        factors = (1.0, 1.0, down.tensor_scale)
    else:
        gate, up = gate_up
        _check("gate", gate, (layout.intermediate_size, layout.hidden_size), layout)
        _check("up", up, (layout.intermediate_size, layout.hidden_size), layout)
        gate_up_codes = _joined(gate.packed, up.packed, layout)
        gate_up_scales = _joined(gate.scales, up.scales, layout)
        factors = (gate.tensor_scale, up.tensor_scale, down.tensor_scale)
    _check("down", down, (layout.hidden_size, layout.intermediate_size), layout)
    parts: dict[str, npt.NDArray[np.uint8 | np.uint16 | np.float32]] = {
        "gate_up_blocks": gate_up_codes,
        "gate_up_scales": gate_up_scales,
        "down_blocks": down.packed,
        "down_scales": down.scales,
    }
    for name, bias in (("gate_up_bias", gate_up_bias), ("down_bias", down_bias)):
        if (bias is not None) != layout.has_bias:
            raise InputError(f"the layout has {'a' if layout.has_bias else 'no'} {name}; give it accordingly")
        if bias is not None:
            parts[name] = bias if bias.dtype == np.uint16 else _to_bfloat16(bias.astype(np.float32))
    if layout.expert_format == "nvfp4":
        parts["tensor_scales"] = np.array(factors, dtype=np.float32)
    return _joined_parts(layout, parts)


def unpack_expert(layout: ExpertLayout, expert: Bytes) -> ExpertWeights:
    """Return the weights that an expert's bytes mean, exactly as `dequantise` gives them."""
    parts = part_views(layout, expert)
    factors = parts["tensor_scales"] if "tensor_scales" in parts else np.ones(3, dtype=np.float32)
    inner, hidden = layout.intermediate_size, layout.hidden_size

    def matrix(name: str, rows: slice, columns: int, factor: np.float32) -> Floats:
        packed, scales = parts[f"{name}_blocks"][rows], parts[f"{name}_scales"][rows]
        tensor = Fp4Tensor(
            packed=packed,
            scales=scales,
            shape=(packed.shape[0], columns),
            format=layout.expert_format,
            tensor_scale=float(factor),
        )
        return dequantise(tensor)

    def bias(name: str, rows: slice, length: int) -> Floats:
        return _from_bfloat16(parts[name][rows]) if layout.has_bias else np.zeros(length, dtype=np.float32)

    gate, up, whole = slice(0, inner), slice(inner, None), slice(None)
    if layout.interleaved:
        gate, up = slice(0, None, 2), slice(1, None, 2)
    return ExpertWeights(
        gate=matrix("gate_up", gate, hidden, factors[0]),
        up=matrix("gate_up", up, hidden, factors[1]),
        down=matrix("down", whole, inner, factors[2]),
        gate_bias=bias("gate_up_bias", gate, inner),
        up_bias=bias("gate_up_bias", up, inner),
        down_bias=bias("down_bias", whole, hidden),
    )


def part_views(layout: ExpertLayout, expert: Bytes) -> Mapping[str, npt.NDArray[Any]]:
    """Return each part as a view of the expert's bytes; bfloat16 as uint16 bits.

    Raises
    ------
    InputError
        The bytes are too few, or not uint8.
    """
    if expert.dtype != np.uint8 or expert.ndim != 1 or expert.size < layout.expert_bytes:
        raise InputError(
            f"an expert of this layout is {layout.expert_bytes} uint8 but {expert.dtype} of shape {expert.shape} was "
            "given; pass the expert's own bytes"
        )
    numpy_dtypes: dict[str, np.dtype[Any]] = {
        "uint8": np.dtype(np.uint8),
        "bfloat16": np.dtype("<u2"),
        "float32": np.dtype("<f4"),
    }
    return MappingProxyType(
        {
            name: expert[part.span].view(numpy_dtypes[part.dtype]).reshape(part.shape)
            for name, part in layout.parts.items()
        }
    )


def synthetic_expert(layout: ExpertLayout, rng: np.random.Generator) -> Bytes:
    """Return the bytes of a random expert: uniform codes, scales that give weights about 1 / sqrt(features in).

    Weights of that size keep a row's magnitude from layer to layer, as trained ones do.
    """
    parts: dict[str, npt.NDArray[np.uint8 | np.uint16 | np.float32]] = {}
    for name, part in layout.parts.items():
        size = math.prod(part.shape)
        columns = layout.hidden_size if name.startswith("gate_up") else layout.intermediate_size
        step = 1 / math.sqrt(columns) / _CODE_RMS
        if name.endswith("_blocks"):
            parts[name] = np.frombuffer(rng.bytes(size), dtype=np.uint8)
        elif name.endswith("_scales") and layout.expert_format == "mxfp4":
            nearest = round(math.log2(step)) + E8M0_BIAS
            parts[name] = (nearest - 1 + rng.integers(0, 3, size)).astype(np.uint8)
        elif name.endswith("_bias"):
            parts[name] = _to_bfloat16((0.02 * rng.standard_normal(size)).astype(np.float32))
        elif name == "tensor_scales":
            parts[name] = np.full(3, 2.0**-10, dtype=np.float32)
        else:
            spread = rng.uniform(0.5, 1.5, size).astype(np.float32)
            parts[name] = round_to_e4m3(spread * np.float32(step * 2.0**10))
    return _joined_parts(layout, parts)


def _check(name: str, tensor: Fp4Tensor, shape: tuple[int, int], layout: ExpertLayout) -> None:
    if tensor.shape != shape or tensor.format != layout.expert_format:
        raise InputError(
            f"{name} is {tensor.format} of shape {tensor.shape} but the layout wants {layout.expert_format} of shape "
            f"{shape}; quantise the right matrix in the layout's format"
        )


def _joined(gate: Bytes, up: Bytes, layout: ExpertLayout) -> Bytes:
    if not layout.interleaved:
        return np.concatenate([gate, up])
    return np.stack([gate, up], axis=1).reshape(2 * gate.shape[0], *gate.shape[1:])


def _joined_parts(
    layout: ExpertLayout, parts: Mapping[str, npt.NDArray[np.uint8 | np.uint16 | np.float32]]
) -> Bytes:
    expert = np.empty(layout.expert_bytes, dtype=np.uint8)
    for name, part in layout.parts.items():
        array = parts[name]
        if array.nbytes != part.num_bytes:
            raise InputError(
                f"{name} has {array.nbytes} bytes but {part.num_bytes} belong there; check its shape"
            )
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        expert[part.span] = np.ascontiguousarray(little).reshape(-1).view(np.uint8)
    return expert


def _to_bfloat16(values: Floats) -> npt.NDArray[np.uint16]:
    """Return the bits of the nearest bfloat16, ties to even; the values are finite."""
    bits = values.view(np.uint32)
    rounded: npt.NDArray[np.uint16] = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return rounded


def _from_bfloat16(bits: npt.NDArray[np.uint16]) -> Floats:
    return (bits.astype(np.uint32) << 16).view(np.float32)
