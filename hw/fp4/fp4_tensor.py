"""One matrix in FP4 as it is stored: codes in blocks, one scale byte a block, in NVFP4 one float32 a matrix.

`mxfp4.py` and `nvfp4.py` make it; `dequantise` here reads either. Numpy only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hideaway.hw.fp4.e2m1 import unpack_values
from hideaway.hw.fp4.scale_formats import E4M3_VALUES, E8M0_VALUES
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.models.weight_formats import MXFP4_BLOCK, NVFP4_BLOCK

BLOCK_OF = {"mxfp4": MXFP4_BLOCK, "nvfp4": NVFP4_BLOCK}
"""Weights that share a scale, by format."""


@dataclass(frozen=True, slots=True, eq=False)
class Fp4Tensor:
    """A matrix of E2M1 codes and their scales.

    Parameters
    ----------
    packed
        (out, blocks, block / 2) uint8, two codes a byte along the input features, the first in the low nibble; the
        last block is padded with zeros. The layout of `*_blocks` in gpt-oss checkpoints.
    scales
        (out, blocks) uint8: E8M0 (mxfp4) or E4M3 (nvfp4).
    shape
        (out, in), without padding.
    format
        "mxfp4" or "nvfp4".
    tensor_scale
        The float32 that multiplies every block scale; 1 in mxfp4.
    """

    packed: npt.NDArray[np.uint8]
    scales: npt.NDArray[np.uint8]
    shape: tuple[int, int]
    format: str
    tensor_scale: float = 1.0

    def __post_init__(self) -> None:
        block = block_of(self.format)
        out, columns = self.shape
        blocks = -(-columns // block)
        for name, array, wanted in (
            ("packed", self.packed, (out, blocks, block // 2)),
            ("scales", self.scales, (out, blocks)),
        ):
            if array.dtype != np.uint8 or array.shape != wanted:
                raise InputError(
                    f"{name} is {array.dtype} of shape {array.shape} but a {self.format} matrix of {out} by "
                    f"{columns} has uint8 of shape {wanted}; check the shape and the format"
                )
        if not np.isfinite(self.tensor_scale) or self.tensor_scale <= 0:
            raise InputError(f"tensor_scale is {self.tensor_scale} but must be a positive number; correct it")
        if self.format == "mxfp4" and self.tensor_scale != 1.0:
            raise InputError(f"tensor_scale is {self.tensor_scale} but mxfp4 has none; leave it at 1")


def block_of(weight_format: str) -> int:
    """Return how many weights share a scale.

    Raises
    ------
    InputError
        The format is not an FP4 format.
    """
    if weight_format not in BLOCK_OF:
        raise InputError(
            f"weight format is {weight_format!r} but FP4 is one of {', '.join(BLOCK_OF)}; "
            "pack the experts in one of these"
        )
    return BLOCK_OF[weight_format]


def dequantise(tensor: Fp4Tensor) -> npt.NDArray[np.float32]:
    """Return the matrix, (out, in) float32: value * (scale * tensor_scale), the product in parentheses rounded first.

    In mxfp4 every product is exact (a power of two), down to the subnormals of float32.
    """
    table = E8M0_VALUES if tensor.format == "mxfp4" else E4M3_VALUES
    scales = table[tensor.scales] * np.float32(tensor.tensor_scale)
    with np.errstate(over="ignore"):  # 6 * 2^127 is infinity in float32, as it is to everyone
        values = unpack_values(tensor.packed) * scales[..., None]
    out, columns = tensor.shape
    return np.ascontiguousarray(values.reshape(out, -1)[:, :columns])


def blocks_of(weights: npt.ArrayLike, weight_format: str) -> npt.NDArray[np.float32]:
    """Return a matrix as (out, blocks, block) float32, the last block padded with zeros.

    Raises
    ------
    InputError
        It is not a matrix of finite numbers.
    """
    block = block_of(weight_format)
    matrix = np.asarray(weights, dtype=np.float32)
    if matrix.ndim != 2 or matrix.size == 0:
        raise InputError(f"weights have shape {matrix.shape} but must be a matrix (out, in); reshape them")
    if not np.isfinite(matrix).all():
        raise InputError(
            "the weights hold NaN or infinity, which FP4 cannot store; check the checkpoint they came from"
        )
    padding = -matrix.shape[1] % block
    if padding:
        matrix = np.pad(matrix, ((0, 0), (0, padding)))
    return matrix.reshape(matrix.shape[0], -1, block)
