"""The size of rounding errors in an expert's outputs, for each way of computing it: a standard deviation.

Rounding errors are taken as independent and uniform within half a unit, so variances add; u = 2^-24 is float32's half
unit relative to 1, and an error uniform within h has variance h^2 / 3. One product y = sum(w x) of K columns has

* few: sum w^2 (X_b / 65024)^2 / 3, rows as 16-bit integers, X_b the largest |x| of a block; plus the float32 sums of
  K / 8 terms (w + 6 s_b) x and their correction, s_b the block's scale, as below;
* panel: float32 sums of eight lanes. A partial sum after j of n terms is a random walk of variance j times the mean
  square term, so the n roundings have (u^2 / 3) (n / 2) sum (w x)^2 with n = K / 8;
* dense-float32, also the look-up: the same with the order unknown, at most n = K;
* dense-bfloat16: rows and result rounded to 8 bits, (2^-9)^2 / 3 of sum (w x)^2 and of y^2, more.

Errors of gate and up pass through the activation by its derivatives (that of z sigmoid(a z) is at most 1.1) and, with
the roundings of the second product, through down. The true error exceeds six of these deviations about never; tests
hold the kernels to that from both sides. It says when two greedy choices are a numeric tie. Numpy only.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hideaway.hw.fp4.expert_weights import Bytes, part_views, unpack_expert
from hideaway.hw.fp4.layouts import ExpertLayout
from hideaway.hw.fp4.scale_formats import E4M3_VALUES, E8M0_VALUES
from hideaway.hw.fp4.swiglu import GPT_OSS_LIMIT, activate
from hideaway.sim.errors import InputError

Doubles = npt.NDArray[np.float64]

WAYS = ("few", "panel", "dense-float32", "dense-bfloat16")
_UNIT = 2.0**-24
_BFLOAT16_UNIT = 2.0**-8
_SLOPE = 1.1
_LANES = 8


def output_error_deviation(layout: ExpertLayout, expert: Bytes, rows: npt.ArrayLike, way: str) -> Doubles:
    """Return the standard deviation of output - exact, (rows, hidden), for finite rows.

    Parameters
    ----------
    layout, expert
        The expert's layout and bytes.
    rows
        (rows, hidden), as the kernel gets them.
    way
        One of `WAYS`.

    Raises
    ------
    InputError
        The way is not one of `WAYS`.
    """
    if way not in WAYS:
        raise InputError(f"way is {way!r} but must be one of {', '.join(WAYS)}; choose one")
    weights = unpack_expert(layout, expert)
    gate_scales, up_scales, down_scales = _scales(layout, expert)
    x = np.asarray(rows, dtype=np.float64)
    block = layout.block
    gate, gate_variance = _product(weights.gate, gate_scales, x, weights.gate_bias, way, block)
    up, up_variance = _product(weights.up, up_scales, x, weights.up_bias, way, block)
    act = activate(gate, up, layout.swiglu)
    if layout.swiglu == "gpt-oss":
        gate, up = np.minimum(gate, GPT_OSS_LIMIT), np.clip(up, -GPT_OSS_LIMIT, GPT_OSS_LIMIT) + 1
    act_variance = (up * _SLOPE) ** 2 * gate_variance + gate**2 * up_variance
    _, variance = _product(weights.down, down_scales, act, weights.down_bias, way, block)
    down = weights.down.T.astype(np.float64)
    deviation: Doubles = np.sqrt(variance + act_variance @ down**2)
    return deviation


def _scales(layout: ExpertLayout, expert: Bytes) -> tuple[Doubles, Doubles, Doubles]:
    """Return the block scales of gate, up and down, (out, blocks), with their tensor's factor."""
    parts = part_views(layout, expert)
    table = (E8M0_VALUES if layout.expert_format == "mxfp4" else E4M3_VALUES).astype(np.float64)
    factors = parts["tensor_scales"] if "tensor_scales" in parts else np.ones(3)
    gate_up = table[parts["gate_up_scales"].astype(np.intp)]
    inner = layout.intermediate_size
    gate, up = (gate_up[0::2], gate_up[1::2]) if layout.interleaved else (gate_up[:inner], gate_up[inner:])
    down = table[parts["down_scales"].astype(np.intp)]
    return gate * float(factors[0]), up * float(factors[1]), down * float(factors[2])


def _product(
    matrix: npt.NDArray[np.float32],
    scales: Doubles,
    x: Doubles,
    bias: npt.NDArray[np.float32],
    way: str,
    block: int,
) -> tuple[Doubles, Doubles]:
    """Return the exact products of rows and the variance of their error, both (rows, out)."""
    weights = matrix.T.astype(np.float64)
    columns = weights.shape[0]
    exact = x @ weights + bias
    terms = x**2 @ weights**2
    variance = exact**2 * _UNIT**2 / 3
    if way == "few":
        squares = np.pad(x**2, ((0, 0), (0, -columns % block))).reshape(x.shape[0], -1, block)
        largest = np.repeat(squares.max(axis=-1), block, axis=1)[:, :columns]
        variance += largest @ weights**2 / 65024**2 / 3
        terms = terms + 36 * squares.sum(axis=-1) @ (scales**2).T
    length = columns if way.startswith("dense") else columns / _LANES
    variance += _UNIT**2 / 3 * length / 2 * terms
    if way == "dense-bfloat16":
        variance += _BFLOAT16_UNIT**2 / 3 * (terms + exact**2)
    return exact, variance
