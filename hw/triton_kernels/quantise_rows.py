"""Rows to FP4 on the device, for the FP4 x FP4 variants: the rules of `mxfp4.py` and `nvfp4.py`, bit for bit.

NVFP4's float32 is one a row here, not one a matrix: a row's codes then depend on that row alone, and no second pass
over all rows is needed. One program quantises one row. A block that holds NaN or infinity gets the scale NaN (in
NVFP4 the whole row, by its float32), so that the row's outputs are not numbers either.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def nearest_codes(values: tl.tensor) -> tl.tensor:
    """Return the E2M1 code (int32) nearest to each float32, ties to the even code, beyond 6 the largest."""
    size = tl.abs(values)
    codes = (size > 0.25).to(tl.int32) + (size >= 0.75).to(tl.int32)
    codes += (size > 1.25).to(tl.int32) + (size >= 1.75).to(tl.int32)
    codes += (size > 2.5).to(tl.int32) + (size >= 3.5).to(tl.int32) + (size > 5.0).to(tl.int32)
    return codes | ((values.to(tl.int32, bitcast=True) >> 28) & 8)


@triton.jit
def nearest_e4m3(values: tl.tensor) -> tl.tensor:
    """Return the E4M3 byte (int32) nearest to each float32 >= 0, ties to even, beyond 448 the largest.

    Below 2^-6, adding 2^14 rounds to multiples of 2^-9, float32's own spacing there; above, the mantissa is cut to
    three bits with a carry that may run into the exponent.
    """
    bits = values.to(tl.int32, bitcast=True)
    normal = ((bits + 0x7FFFF + ((bits >> 20) & 1)) >> 20) - (120 << 3)
    small = (values + 16384.0).to(tl.int32, bitcast=True) - 0x46800000
    return tl.minimum(tl.where(values < 0.015625, small, normal), 0x7E)


@triton.jit
def quantise_rows_kernel(
    rows: tl.tensor,
    codes: tl.tensor,
    scales: tl.tensor,
    factors: tl.tensor,
    COLUMNS: tl.constexpr,
    FORMAT: tl.constexpr,
    TILE_COLUMNS: tl.constexpr,
) -> None:
    """Write one row's codes (two a byte), scale bytes and, in NVFP4, float32; `rows` are bfloat16 (n, COLUMNS)."""
    BLOCK: tl.constexpr = 32 if FORMAT == "mxfp4" else 16
    BLOCKS: tl.constexpr = (COLUMNS + BLOCK - 1) // BLOCK
    TILE_BLOCKS: tl.constexpr = TILE_COLUMNS // BLOCK
    row = tl.program_id(0).to(tl.int64)
    rows += row * COLUMNS
    factor = 1.0
    if FORMAT == "nvfp4":
        # Compared as integers, in which NaN and infinity are above every number.
        largest = tl.zeros((TILE_COLUMNS,), tl.int32)
        for first in range(0, COLUMNS, TILE_COLUMNS):
            columns = first + tl.arange(0, TILE_COLUMNS)
            values = tl.load(rows + columns, mask=columns < COLUMNS, other=0.0).to(tl.float32)
            largest = tl.maximum(largest, values.to(tl.int32, bitcast=True) & 0x7FFFFFFF)
        whole = tl.max(largest, axis=0)
        quotient = tl.div_rn(whole.to(tl.float32, bitcast=True), 2688.0)
        smallest_normal = 1.1754943508222875e-38
        factor = tl.where(quotient < smallest_normal, smallest_normal, quotient)
        factor = tl.where(quotient == 0.0, 1.0, factor)
        tl.store(factors + row, tl.where(whole >= 0x7F800000, float("nan"), factor))
    for first in range(0, COLUMNS, TILE_COLUMNS):
        columns = first + tl.arange(0, TILE_COLUMNS)
        values = tl.load(rows + columns, mask=columns < COLUMNS, other=0.0).to(tl.float32)
        blocks = tl.reshape(values, (TILE_BLOCKS, BLOCK))
        largest_bits = tl.max(blocks.to(tl.int32, bitcast=True) & 0x7FFFFFFF, axis=1)
        if FORMAT == "mxfp4":
            # The biased exponent of the block's largest, less 2; dividing is multiplying by 2^(127 - byte), exactly.
            scale = tl.maximum((largest_bits >> 23) - 2, 0)
            scaled = blocks * ((254 - scale) << 23).to(tl.float32, bitcast=True)[:, None]
            scale = tl.where(largest_bits >= 0x7F800000, 255, scale)
        else:
            size = tl.div_rn(largest_bits.to(tl.float32, bitcast=True), 6.0)
            scale = nearest_e4m3(tl.div_rn(size, factor + tl.zeros_like(size)))
            normal = ((scale << 20) + (120 << 23)).to(tl.float32, bitcast=True)
            step = tl.where(scale < 8, scale.to(tl.float32) * 0.001953125, normal) * factor
            step = step[:, None] + tl.zeros_like(blocks)
            scaled = tl.where(step > 0.0, tl.div_rn(blocks, tl.where(step > 0.0, step, 1.0)), 0.0)
        low, high = tl.split(tl.reshape(nearest_codes(scaled), (TILE_COLUMNS // 2, 2)))
        pairs = first // 2 + tl.arange(0, TILE_COLUMNS // 2)
        mask = pairs < BLOCKS * BLOCK // 2
        tl.store(codes + row * (BLOCKS * BLOCK // 2) + pairs, (low | (high << 4)).to(tl.uint8), mask=mask)
        numbers = first // BLOCK + tl.arange(0, TILE_BLOCKS)
        tl.store(scales + row * BLOCKS + numbers, scale.to(tl.uint8), mask=numbers < BLOCKS)
