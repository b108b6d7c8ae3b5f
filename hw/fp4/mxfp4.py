"""MXFP4: E2M1 codes, one power of two per 32 weights along the input features.

The scale is the OCP rule (Microscaling Formats v1.0, section 6.3): 2^(floor(log2(largest magnitude of the block)) -
2), where 2 is the exponent of the largest E2M1 value; weights are divided by it, rounded to nearest even and
saturated at 6. So the largest weight of a block, 4 to 8 after division, loses up to a quarter where it is above 6:
that is the rule's choice, made by gpt-oss and gguf alike. A block of zeros has scale byte 0. Numpy only.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hideaway.hw.fp4.e2m1 import LARGEST_EXPONENT, pack_codes, round_to_codes
from hideaway.hw.fp4.fp4_tensor import Fp4Tensor, blocks_of
from hideaway.hw.fp4.scale_formats import E8M0_BIAS, E8M0_LARGEST


def quantise_mxfp4(weights: npt.ArrayLike) -> Fp4Tensor:
    """Return a matrix (out, in) of finite numbers in MXFP4, its last block of each row padded with zeros.

    Raises
    ------
    InputError
        It is not a matrix, or holds NaN or infinity.
    """
    blocks = blocks_of(weights, "mxfp4")
    largest = np.abs(blocks).max(axis=-1)
    # frexp gives m * 2^e with 0.5 <= m < 1, so floor(log2) is e - 1, exactly; log2 itself may round up.
    exponents = np.frexp(largest)[1] - 1 - LARGEST_EXPONENT
    exponents = np.clip(exponents, -E8M0_BIAS, E8M0_LARGEST - E8M0_BIAS)
    exponents[largest == 0] = -E8M0_BIAS
    codes = round_to_codes(np.ldexp(blocks, -exponents[..., None]))
    matrix = np.asarray(weights)
    return Fp4Tensor(
        packed=pack_codes(codes),
        scales=(exponents + E8M0_BIAS).astype(np.uint8),
        shape=(matrix.shape[0], matrix.shape[1]),
        format="mxfp4",
    )
