"""NVFP4 against the same arithmetic done by ml_dtypes, and its two-level scales."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hideaway.hw.fp4.e2m1 import pack_codes, unpack_codes
from hideaway.hw.fp4.fp4_tensor import Fp4Tensor, dequantise
from hideaway.hw.fp4.nvfp4 import quantise_nvfp4
from hideaway.sim.errors import InputError

ml_dtypes = pytest.importorskip("ml_dtypes")

WEIGHTS = hnp.arrays(
    np.float32, st.tuples(st.integers(1, 4), st.integers(1, 50)), elements=st.floats(-1000, 1000, width=32)
)


def by_ml_dtypes(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.float32]:
    """Scales, codes and the float32 of a matrix whose columns are a multiple of 16, by ml_dtypes' conversions."""
    blocks = weights.reshape(weights.shape[0], -1, 16)
    largest = np.abs(blocks).max(axis=-1)
    factor = np.float32(largest.max()) / np.float32(6 * 448)
    scales = np.minimum(largest / np.float32(6) / factor, np.float32(448)).astype(ml_dtypes.float8_e4m3fn)
    steps = scales.astype(np.float32) * factor
    scaled = np.clip(blocks / steps[..., None], -6, 6)
    return scales.view(np.uint8), scaled.astype(ml_dtypes.float4_e2m1fn).view(np.uint8) & 15, factor


def test_quantising_equals_the_same_steps_by_ml_dtypes() -> None:
    weights = np.random.default_rng(0).standard_normal((16, 64)).astype(np.float32)
    ours = quantise_nvfp4(weights)
    scales, codes, factor = by_ml_dtypes(weights)
    np.testing.assert_array_equal(ours.scales, scales)
    np.testing.assert_array_equal(unpack_codes(ours.packed), codes)
    assert ours.tensor_scale == float(factor)


def test_dequantising_equals_ml_dtypes_bit_for_bit_for_every_positive_scale() -> None:
    codes = np.tile(np.arange(16, dtype=np.uint8), (127, 1))
    scales = np.arange(127, dtype=np.uint8)[:, None]
    factor = np.float32(0.0123)
    tensor = Fp4Tensor(
        packed=pack_codes(codes).reshape(127, 1, 8),
        scales=scales,
        shape=(127, 16),
        format="nvfp4",
        tensor_scale=float(factor),
    )
    steps = scales.view(ml_dtypes.float8_e4m3fn).astype(np.float32) * factor
    theirs = codes.view(ml_dtypes.float4_e2m1fn).astype(np.float32) * steps
    np.testing.assert_array_equal(dequantise(tensor).view(np.uint32), theirs.view(np.uint32))


def test_dequantising_equals_gguf() -> None:
    gguf = pytest.importorskip("gguf")
    nvfp4 = getattr(gguf.GGMLQuantizationType, "NVFP4", None)
    if nvfp4 is None:
        pytest.skip("this gguf does not know NVFP4")
    tensor = quantise_nvfp4(np.random.default_rng(2).standard_normal((8, 128)).astype(np.float32))
    codes = unpack_codes(tensor.packed).reshape(8, 2, 4, 16)
    pairs = pack_codes(np.stack([codes[..., :8], codes[..., 8:]], axis=-1).reshape(codes.shape))
    blocks = np.concatenate([tensor.scales.reshape(8, 2, 4), pairs.reshape(8, 2, 32)], axis=-1).reshape(8, -1)
    plain = Fp4Tensor(packed=tensor.packed, scales=tensor.scales, shape=(8, 128), format="nvfp4")
    np.testing.assert_array_equal(gguf.quants.dequantize(blocks, nvfp4), dequantise(plain))


@given(WEIGHTS)
def test_block_scales_fill_e4m3_and_nothing_moves_too_far(weights: np.ndarray) -> None:
    tensor = quantise_nvfp4(weights)
    if not weights.any():
        assert not dequantise(tensor).any()
        assert tensor.tensor_scale == 1.0
        return
    assert tensor.scales.max() == 0x7E
    columns = weights.shape[1]
    steps = tensor.scales.view(ml_dtypes.float8_e4m3fn).astype(np.float64) * tensor.tensor_scale
    steps = np.repeat(steps, 16, axis=1)[:, :columns]
    # Codes are at most 2 apart, and a scale rounded down by up to 1/17 pushes the largest weight beyond 6 by 6/17;
    # a block whose scale is subnormal or zero is only as good as the smallest scale, 2^-9.
    moved = np.abs(dequantise(tensor).astype(np.float64) - weights)
    smallest = 2.0**-9 * tensor.tensor_scale
    assert np.all(moved <= np.maximum(steps * 1.0001, 6 * smallest))


def test_a_given_tensor_scale_is_used() -> None:
    tensor = quantise_nvfp4(np.full((1, 16), 3.0, dtype=np.float32), tensor_scale=0.5)
    assert tensor.tensor_scale == 0.5
    np.testing.assert_array_equal(dequantise(tensor), np.full((1, 16), 3.0))


def test_a_tensor_scale_that_is_not_positive_is_refused() -> None:
    with pytest.raises(InputError, match="must be a positive number"):
        quantise_nvfp4(np.ones((1, 16), dtype=np.float32), tensor_scale=-1.0)
