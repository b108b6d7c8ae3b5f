"""The two kernels of a SwiGLU expert over a pool of slots: rows to gated activations, activations to outputs.

A launch covers any number of experts. Axis 0 of the grid is a list of row tiles, each (slot, first row, end row) with
the rows of one expert next to one another; axis 1 is a tile of output features. Weights are read where the transfer
left them: codes, scales and biases at the offsets of `layouts.py` within the slot, packed along the summed features.
Everything of the layout is a compile-time constant, so that aligned shapes load 16 bytes at a time.

Inputs are bfloat16, or FP4 in the weights' own format with one float32 a row beside (NVFP4 only); see
`quantise_rows.py`. Each output is one sum over the features in fixed order, whatever else is in the launch.
`decode.py` has the arithmetic, `variants.py` the constants and the compiler's view of the arguments.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import triton
import triton.language as tl

from hideaway.hw.triton_kernels.decode import bfloat16_at, float32_at, multiply_add


@triton.jit
def byte_tile(
    base: tl.tensor,
    rows: tl.tensor,
    num_rows: tl.tensor,
    first: tl.tensor,
    COLUMNS: tl.constexpr,
    WIDTH: tl.constexpr,
) -> tl.tensor:
    """Return (rows, WIDTH) bytes from column `first` on of a matrix with rows of `COLUMNS`, zeros beyond it."""
    columns = first + tl.arange(0, WIDTH)
    mask = (rows < num_rows)[:, None] & (columns < COLUMNS)[None, :]
    return tl.load(base + rows[:, None] * COLUMNS + columns[None, :], mask=mask, other=0)


@triton.jit
def input_tile(
    base: tl.tensor,
    rows: tl.tensor,
    num_rows: tl.tensor,
    first: tl.tensor,
    COLUMNS: tl.constexpr,
    WIDTH: tl.constexpr,
) -> tl.tensor:
    """Return the same transposed, (WIDTH, rows), of any type."""
    columns = first + tl.arange(0, WIDTH)
    mask = (columns < COLUMNS)[:, None] & (rows < num_rows)[None, :]
    return tl.load(base + rows[None, :] * COLUMNS + columns[:, None], mask=mask, other=0.0)


@triton.jit
def inputs_at(
    inputs: tl.tensor,
    input_scales: tl.tensor,
    rows: tl.tensor,
    num_rows: tl.tensor,
    first: tl.tensor,
    COLUMNS: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCKS: tl.constexpr,
    INPUTS: tl.constexpr,
    TILE_COLUMNS: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor]:
    """Return a tile of inputs, (columns, rows), and of their scales, (rows, blocks); bfloat16 has none, so itself."""
    if INPUTS == "bfloat16":
        values = input_tile(inputs, rows, num_rows, first, COLUMNS, TILE_COLUMNS)
        scales = values
    else:
        values = input_tile(inputs, rows, num_rows, first // 2, BLOCKS * BLOCK // 2, TILE_COLUMNS // 2)
        scales = byte_tile(input_scales, rows, num_rows, first // BLOCK, BLOCKS, TILE_COLUMNS // BLOCK)
    return values, scales


@triton.jit
def activated(gate: tl.tensor, up: tl.tensor, SWIGLU: tl.constexpr) -> tl.tensor:
    """Return the activation of `swiglu.py`; what is not a number stays so, which minimum and maximum would hide."""
    if SWIGLU == "gpt-oss":
        gate = tl.where(gate > 7.0, 7.0, gate)
        up = tl.where(up > 7.0, 7.0, tl.where(up < -7.0, -7.0, up))
        return (up + 1.0) * (gate * tl.sigmoid(1.702 * gate))
    return gate * tl.sigmoid(gate) * up


@triton.jit
def gate_up_kernel(
    inputs: tl.tensor,
    input_scales: tl.tensor,
    input_factors: tl.tensor,
    slots: tl.tensor,
    slot_bytes: tl.tensor,
    tiles: tl.tensor,
    outputs: tl.tensor,
    COLUMNS: tl.constexpr,
    FEATURES: tl.constexpr,
    CODES: tl.constexpr,
    SCALES: tl.constexpr,
    BIAS: tl.constexpr,
    FACTORS: tl.constexpr,
    FORMAT: tl.constexpr,
    SWIGLU: tl.constexpr,
    INPUTS: tl.constexpr,
    TILE_FEATURES: tl.constexpr,
    TILE_ROWS: tl.constexpr,
    TILE_COLUMNS: tl.constexpr,
) -> None:
    """Write bfloat16 activations (rows, FEATURES): gate and up of the same feature are computed by one program."""
    BLOCK: tl.constexpr = 32 if FORMAT == "mxfp4" else 16
    BLOCKS: tl.constexpr = (COLUMNS + BLOCK - 1) // BLOCK
    ROW_BYTES: tl.constexpr = BLOCKS * BLOCK // 2
    tile = tiles + 3 * tl.program_id(0)
    expert = slots + tl.load(tile) * slot_bytes
    first_row = tl.load(tile + 1)
    num_rows = (tl.load(tile + 2) - first_row).to(tl.int32)
    WIDTH: tl.constexpr = COLUMNS if INPUTS == "bfloat16" else ROW_BYTES
    inputs += first_row * WIDTH
    rows = tl.arange(0, TILE_ROWS)
    features = tl.program_id(1) * TILE_FEATURES + tl.arange(0, TILE_FEATURES)
    if SWIGLU == "gpt-oss":
        gates, ups = 2 * features, 2 * features + 1
    else:
        gates, ups = features, features + FEATURES
    # Beyond FEATURES a plain gate would read an up; it is not stored, and stays within the expert's bytes.
    END: tl.constexpr = 2 * FEATURES
    gate = tl.zeros((TILE_FEATURES, TILE_ROWS), tl.float32)
    up = tl.zeros((TILE_FEATURES, TILE_ROWS), tl.float32)
    if INPUTS != "bfloat16":
        input_scales += first_row * BLOCKS
    for first in range(0, COLUMNS, TILE_COLUMNS):
        x, x_scales = inputs_at(
            inputs, input_scales, rows, num_rows, first, COLUMNS, BLOCK, BLOCKS, INPUTS, TILE_COLUMNS
        )
        codes = byte_tile(expert + CODES, gates, END, first // 2, ROW_BYTES, TILE_COLUMNS // 2)
        scales = byte_tile(expert + SCALES, gates, END, first // BLOCK, BLOCKS, TILE_COLUMNS // BLOCK)
        gate = multiply_add(gate, codes, scales, x, x_scales, FORMAT, INPUTS)
        codes = byte_tile(expert + CODES, ups, END, first // 2, ROW_BYTES, TILE_COLUMNS // 2)
        scales = byte_tile(expert + SCALES, ups, END, first // BLOCK, BLOCKS, TILE_COLUMNS // BLOCK)
        up = multiply_add(up, codes, scales, x, x_scales, FORMAT, INPUTS)
    if FORMAT == "nvfp4":
        gate *= float32_at(expert + FACTORS)
        up *= float32_at(expert + FACTORS + 4)
        if INPUTS != "bfloat16":
            factors = tl.load(input_factors + first_row + rows, mask=rows < num_rows, other=0.0)[None, :]
            gate *= factors
            up *= factors
    if SWIGLU == "gpt-oss":
        gate += bfloat16_at(expert + BIAS + 2 * gates, gates < END)[:, None]
        up += bfloat16_at(expert + BIAS + 2 * ups, ups < END)[:, None]
    mask = (features < FEATURES)[:, None] & (rows < num_rows)[None, :]
    places = outputs + first_row * FEATURES + rows[None, :] * FEATURES + features[:, None]
    tl.store(places, activated(gate, up, SWIGLU).to(tl.bfloat16), mask=mask)


@triton.jit
def down_kernel(
    inputs: tl.tensor,
    input_scales: tl.tensor,
    input_factors: tl.tensor,
    slots: tl.tensor,
    slot_bytes: tl.tensor,
    tiles: tl.tensor,
    outputs: tl.tensor,
    COLUMNS: tl.constexpr,
    FEATURES: tl.constexpr,
    CODES: tl.constexpr,
    SCALES: tl.constexpr,
    BIAS: tl.constexpr,
    FACTORS: tl.constexpr,
    FORMAT: tl.constexpr,
    SWIGLU: tl.constexpr,
    INPUTS: tl.constexpr,
    TILE_FEATURES: tl.constexpr,
    TILE_ROWS: tl.constexpr,
    TILE_COLUMNS: tl.constexpr,
) -> None:
    """Write float32 outputs (rows, FEATURES) from activations (rows, COLUMNS)."""
    BLOCK: tl.constexpr = 32 if FORMAT == "mxfp4" else 16
    BLOCKS: tl.constexpr = (COLUMNS + BLOCK - 1) // BLOCK
    ROW_BYTES: tl.constexpr = BLOCKS * BLOCK // 2
    tile = tiles + 3 * tl.program_id(0)
    expert = slots + tl.load(tile) * slot_bytes
    first_row = tl.load(tile + 1)
    num_rows = (tl.load(tile + 2) - first_row).to(tl.int32)
    WIDTH: tl.constexpr = COLUMNS if INPUTS == "bfloat16" else ROW_BYTES
    inputs += first_row * WIDTH
    rows = tl.arange(0, TILE_ROWS)
    features = tl.program_id(1) * TILE_FEATURES + tl.arange(0, TILE_FEATURES)
    sums = tl.zeros((TILE_FEATURES, TILE_ROWS), tl.float32)
    if INPUTS != "bfloat16":
        input_scales += first_row * BLOCKS
    for first in range(0, COLUMNS, TILE_COLUMNS):
        x, x_scales = inputs_at(
            inputs, input_scales, rows, num_rows, first, COLUMNS, BLOCK, BLOCKS, INPUTS, TILE_COLUMNS
        )
        codes = byte_tile(expert + CODES, features, FEATURES, first // 2, ROW_BYTES, TILE_COLUMNS // 2)
        scales = byte_tile(expert + SCALES, features, FEATURES, first // BLOCK, BLOCKS, TILE_COLUMNS // BLOCK)
        sums = multiply_add(sums, codes, scales, x, x_scales, FORMAT, INPUTS)
    if FORMAT == "nvfp4":
        sums *= float32_at(expert + FACTORS + 8)
        if INPUTS != "bfloat16":
            sums *= tl.load(input_factors + first_row + rows, mask=rows < num_rows, other=0.0)[None, :]
    if SWIGLU == "gpt-oss":
        sums += bfloat16_at(expert + BIAS + 2 * features, features < FEATURES)[:, None]
    mask = (features < FEATURES)[:, None] & (rows < num_rows)[None, :]
    places = outputs + first_row * FEATURES + rows[None, :] * FEATURES + features[:, None]
    tl.store(places, sums, mask=mask)
