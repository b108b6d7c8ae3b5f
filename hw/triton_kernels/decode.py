"""What the expert kernels share: FP4 codes and scales to floats in registers, and one step of a product.

Everything is `triton.jit` code called from `expert_kernels.py`. Scales of NVFP4 are decoded with integers, because
sm_80 has no E4M3 and Triton's interpreter takes such scales of `dot_scaled` for E8M0 without a word.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def e2m1_values(codes: tl.tensor) -> tl.tensor:
    """Return the float32 value of each code: 2^(e - 1) (1 + m / 2), or m / 2 where e is 0, the bits built directly.

    A code's three low bits are float32's exponent, less 126, and its first bit of mantissa.
    """
    magnitude = codes.to(tl.int32) & 7
    bits = (magnitude << 22) + (126 << 23)
    bits = tl.where(magnitude == 0, 0, tl.where(magnitude == 1, 126 << 23, bits))
    return (bits | ((codes.to(tl.int32) & 8) << 28)).to(tl.float32, bitcast=True)


@triton.jit
def e4m3_values(scales: tl.tensor) -> tl.tensor:
    """Return the float32 value of each E4M3 byte (bias 7, subnormals of 2^-9, 0x7f and 0xff not a number)."""
    magnitude = scales.to(tl.int32) & 127
    normal = ((magnitude << 20) + (120 << 23)).to(tl.float32, bitcast=True)
    value = tl.where(magnitude < 8, magnitude.to(tl.float32) * 0.001953125, normal)
    value = tl.where(magnitude == 127, float("nan"), value)
    return tl.where(scales.to(tl.int32) > 127, -value, value)


@triton.jit
def e8m0_values(scales: tl.tensor) -> tl.tensor:
    """Return the float32 value of each E8M0 byte: 2^(byte - 127), 255 not a number."""
    exponent = scales.to(tl.int32)
    bits = tl.where(exponent == 0, 1 << 22, exponent << 23)
    return tl.where(exponent == 255, float("nan"), bits.to(tl.float32, bitcast=True))


@triton.jit
def decoded(codes: tl.tensor, scales: tl.tensor, FORMAT: tl.constexpr) -> tl.tensor:
    """Return (rows, columns) bfloat16 from (rows, columns / 2) bytes and (rows, columns / block) scale bytes.

    Exact but for extreme scales of MXFP4: a code has two significant bits and an E4M3 scale four, bfloat16 has eight.
    The product is taken in float32 because the interpreter multiplies bfloat16 as if it were integers.
    """
    ROWS: tl.constexpr = codes.shape[0]
    COLUMNS: tl.constexpr = 2 * codes.shape[1]
    BLOCKS: tl.constexpr = scales.shape[1]
    pairs = tl.join(e2m1_values(codes & 15), e2m1_values(codes >> 4))
    steps = e4m3_values(scales) if FORMAT == "nvfp4" else e8m0_values(scales)
    blocks = tl.reshape(pairs, (ROWS, BLOCKS, COLUMNS // BLOCKS))
    return tl.reshape(blocks * steps[:, :, None], (ROWS, COLUMNS)).to(tl.bfloat16)


@triton.jit
def multiply_add(
    sums: tl.tensor,
    codes: tl.tensor,
    scales: tl.tensor,
    inputs: tl.tensor,
    input_scales: tl.tensor,
    FORMAT: tl.constexpr,
    INPUTS: tl.constexpr,
) -> tl.tensor:
    """Return sums (out, rows) + weights (out, columns) times inputs (columns, rows), accumulated in float32.

    Weights stand on the left: the matrix instruction is 16 or 64 wide there and 8 on the right, and rows are few.
    """
    if INPUTS == "bfloat16":
        if FORMAT == "mxfp4":
            sums = tl.dot_scaled(codes, scales, "e2m1", inputs, None, "bf16", sums)
        else:
            sums = tl.dot_scaled(decoded(codes, scales, FORMAT), None, "bf16", inputs, None, "bf16", sums)
    elif INPUTS == "fp4-decoded":
        values = tl.trans(decoded(tl.trans(inputs), input_scales, FORMAT))
        sums = tl.dot_scaled(decoded(codes, scales, FORMAT), None, "bf16", values, None, "bf16", sums)
    elif FORMAT == "mxfp4":
        sums = tl.dot_scaled(codes, scales, "e2m1", inputs, input_scales, "e2m1", sums)
    else:
        left = scales.to(tl.float8e4nv, bitcast=True)
        right = input_scales.to(tl.float8e4nv, bitcast=True)
        sums = tl.dot_scaled(codes, left, "e2m1", inputs, right, "e2m1", sums)
    return sums


@triton.jit
def bfloat16_at(pointers: tl.tensor, mask: tl.tensor) -> tl.tensor:
    """Return float32 from bfloat16 stored at any byte address."""
    low = tl.load(pointers, mask=mask, other=0).to(tl.int32)
    high = tl.load(pointers + 1, mask=mask, other=0).to(tl.int32)
    return ((high << 24) | (low << 16)).to(tl.float32, bitcast=True)


@triton.jit
def float32_at(pointer: tl.tensor) -> tl.tensor:
    """Return one float32 stored at any byte address."""
    bits = tl.load(pointer).to(tl.int32)
    bits |= tl.load(pointer + 1).to(tl.int32) << 8
    bits |= tl.load(pointer + 2).to(tl.int32) << 16
    bits |= tl.load(pointer + 3).to(tl.int32) << 24
    return bits.to(tl.float32, bitcast=True)
