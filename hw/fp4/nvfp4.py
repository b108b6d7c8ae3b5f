"""NVFP4: E2M1 codes, one E4M3 scale per 16 weights along the input features, one float32 per matrix.

Two levels (NVIDIA, "Introducing NVFP4", and TensorRT Model Optimizer): the matrix's float32 is its largest magnitude
/ (6 * 448), so that the block scales fill E4M3; a block's scale is its own largest magnitude / 6 / that float32,
rounded to the nearest E4M3; weights are divided by scale * float32, rounded to nearest even and saturated at 6. A
block whose scale rounds to zero is stored as zeros. Numpy only.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hideaway.hw.fp4.e2m1 import LARGEST, pack_codes, round_to_codes
from hideaway.hw.fp4.fp4_tensor import Fp4Tensor, blocks_of
from hideaway.hw.fp4.scale_formats import E4M3_LARGEST, E4M3_VALUES, round_to_e4m3

_SMALLEST_NORMAL = np.finfo(np.float32).tiny


def quantise_nvfp4(weights: npt.ArrayLike, *, tensor_scale: float | None = None) -> Fp4Tensor:
    """Return a matrix (out, in) of finite numbers in NVFP4, its last block of each row padded with zeros.

    Parameters
    ----------
    weights
        The matrix.
    tensor_scale
        The matrix's float32 where another matrix shares it; else from this matrix (1 for zeros).

    Raises
    ------
    InputError
        It is not a matrix, or holds NaN or infinity.
    """
    blocks = blocks_of(weights, "nvfp4")
    largest = np.abs(blocks).max(axis=-1)
    if tensor_scale is None:
        whole = np.float32(largest.max()) / np.float32(LARGEST * E4M3_LARGEST)
        tensor_scale = float(max(whole, _SMALLEST_NORMAL)) if whole > 0 else 1.0
    factor = np.float32(tensor_scale)
    scales = round_to_e4m3(largest / np.float32(LARGEST) / factor)
    steps = (E4M3_VALUES[scales] * factor)[..., None]
    scaled = np.divide(blocks, steps, out=np.zeros_like(blocks), where=steps > 0)
    matrix = np.asarray(weights)
    return Fp4Tensor(
        packed=pack_codes(round_to_codes(scaled)),
        scales=scales,
        shape=(matrix.shape[0], matrix.shape[1]),
        format="nvfp4",
        tensor_scale=float(factor),
    )
