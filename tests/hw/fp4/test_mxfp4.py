"""MXFP4 against ml_dtypes arithmetic, gguf both ways, and its own rule for the shared exponent."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hideaway.hw.fp4.e2m1 import pack_codes, unpack_codes
from hideaway.hw.fp4.fp4_tensor import Fp4Tensor, dequantise
from hideaway.hw.fp4.mxfp4 import quantise_mxfp4
from hideaway.sim.errors import InputError

SHAPES = st.tuples(st.integers(1, 4), st.integers(1, 100))
WEIGHTS = hnp.arrays(
    np.float32,
    SHAPES,
    elements=st.floats(-(2.0**100), 2.0**100, width=32, allow_subnormal=True) | st.floats(-8, 8, width=32),
)


def random_tensor(rows: int = 6, columns: int = 96) -> Fp4Tensor:
    rng = np.random.default_rng(1)
    return Fp4Tensor(
        packed=rng.integers(0, 256, (rows, columns // 32, 16), dtype=np.uint8),
        scales=rng.integers(0, 255, (rows, columns // 32), dtype=np.uint8),
        shape=(rows, columns),
        format="mxfp4",
    )


def to_gguf(tensor: Fp4Tensor) -> np.ndarray:
    """gguf's blocks: the scale, then weights j and j + 16 in one byte."""
    codes = unpack_codes(tensor.packed)
    pairs = pack_codes(np.stack([codes[..., :16], codes[..., 16:]], axis=-1).reshape(codes.shape))
    return np.concatenate([tensor.scales[..., None], pairs], axis=-1).reshape(tensor.shape[0], -1)


def test_dequantising_equals_ml_dtypes_bit_for_bit_for_every_scale() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    codes = np.tile(np.arange(16, dtype=np.uint8), (255, 2))
    scales = np.arange(255, dtype=np.uint8)[:, None]
    tensor = Fp4Tensor(
        packed=pack_codes(codes).reshape(255, 1, 16), scales=scales, shape=(255, 32), format="mxfp4"
    )
    values = codes.view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    # As small a scale as 2^-127 is a subnormal float32; the products are exact all the same.
    exact = values.astype(np.float64) * scales.view(ml_dtypes.float8_e8m0fnu).astype(np.float64)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(
            dequantise(tensor).view(np.uint32), exact.astype(np.float32).view(np.uint32)
        )


def test_dequantising_equals_gguf() -> None:
    gguf = pytest.importorskip("gguf")
    tensor = random_tensor()
    theirs = gguf.quants.dequantize(to_gguf(tensor), gguf.GGMLQuantizationType.MXFP4)
    np.testing.assert_array_equal(dequantise(tensor), theirs)


def test_quantising_equals_gguf_where_no_weight_is_halfway() -> None:
    gguf = pytest.importorskip("gguf")
    weights = np.random.default_rng(3).standard_normal((64, 320)).astype(np.float32)
    ours = quantise_mxfp4(weights)
    theirs = gguf.quants.quantize(weights, gguf.GGMLQuantizationType.MXFP4)
    again = gguf.quants.dequantize(theirs, gguf.GGMLQuantizationType.MXFP4)
    np.testing.assert_array_equal(theirs.reshape(64, 10, 17)[..., 0], ours.scales)
    np.testing.assert_array_equal(dequantise(ours), again)


def test_gpt_oss_blocks_mean_what_transformers_takes_them_for() -> None:
    mxfp4 = pytest.importorskip("transformers.integrations.mxfp4")
    torch = pytest.importorskip("torch")
    tensor = random_tensor()
    blocks = torch.from_numpy(tensor.packed)[None]
    scales = torch.from_numpy(np.clip(tensor.scales, 100, 150))[None]
    theirs = mxfp4.convert_moe_packed_tensors(blocks, scales, dtype=torch.float32)
    ours = Fp4Tensor(packed=tensor.packed, scales=scales[0].numpy(), shape=tensor.shape, format="mxfp4")
    np.testing.assert_array_equal(dequantise(ours), theirs[0].T.numpy())


@given(WEIGHTS)
def test_the_shared_exponent_puts_the_largest_weight_between_four_and_eight(weights: np.ndarray) -> None:
    tensor = quantise_mxfp4(weights)
    columns = weights.shape[1]
    padded = np.pad(weights, ((0, 0), (0, -columns % 32))).reshape(weights.shape[0], -1, 32)
    largest = np.abs(padded).max(axis=-1).astype(np.float64)
    scaled = largest / np.exp2(tensor.scales.astype(np.float64) - 127)
    in_range = tensor.scales > 0  # 2^-127 is the smallest scale there is
    assert np.all((scaled[in_range] >= 4) & (scaled[in_range] < 8))
    assert np.all(scaled[~in_range] < 8)


@given(WEIGHTS)
def test_quantising_a_quantised_matrix_changes_nothing(weights: np.ndarray) -> None:
    once = dequantise(quantise_mxfp4(weights))
    np.testing.assert_array_equal(dequantise(quantise_mxfp4(once)), once)


@given(WEIGHTS)
def test_no_weight_moves_by_more_than_half_a_step_unless_it_saturates(weights: np.ndarray) -> None:
    tensor = quantise_mxfp4(weights)
    columns = weights.shape[1]
    scales = np.exp2(np.repeat(tensor.scales.astype(np.float64) - 127, 32, axis=1)[:, :columns])
    scaled = np.abs(weights.astype(np.float64)) / scales
    step = np.where(scaled < 2, 0.5, np.where(scaled < 4, 1, 2))
    moved = np.abs(dequantise(tensor).astype(np.float64) - weights) / scales
    assert np.all(moved <= np.where(scaled > 6, scaled - 6, step / 2))


def test_a_short_last_block_is_padded_with_zeros() -> None:
    tensor = quantise_mxfp4(np.full((2, 40), 3.0, dtype=np.float32))
    assert tensor.packed.shape == (2, 2, 16)
    assert not unpack_codes(tensor.packed)[:, 1, 8:].any()
    np.testing.assert_array_equal(dequantise(tensor), np.full((2, 40), 3.0))


def test_zeros_have_scale_byte_zero_and_stay_zeros() -> None:
    tensor = quantise_mxfp4(np.zeros((1, 32), dtype=np.float32))
    assert tensor.scales.tolist() == [[0]]
    assert not dequantise(tensor).any()


def test_a_scale_byte_of_255_is_not_a_number() -> None:
    tensor = random_tensor(1, 32)
    nan = Fp4Tensor(
        packed=tensor.packed, scales=np.full((1, 1), 255, np.uint8), shape=(1, 32), format="mxfp4"
    )
    assert np.isnan(dequantise(nan)).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_weights_that_fp4_cannot_store_are_refused(bad: float) -> None:
    with pytest.raises(InputError, match="NaN or infinity"):
        quantise_mxfp4(np.array([[1.0, bad]], dtype=np.float32))


def test_what_is_no_matrix_is_refused() -> None:
    with pytest.raises(InputError, match=r"shape \(3,\) but must be a matrix"):
        quantise_mxfp4(np.zeros(3, dtype=np.float32))
    with pytest.raises(InputError, match="packed is uint8 of shape"):
        Fp4Tensor(
            packed=np.zeros((1, 1, 8), np.uint8),
            scales=np.zeros((1, 1), np.uint8),
            shape=(1, 32),
            format="mxfp4",
        )
