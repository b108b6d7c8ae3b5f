"""E2M1, the 4-bit float of both FP4 formats: code points, rounding, two codes a byte.

A code is sign, two exponent bits (bias 1), one mantissa bit: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives (OCP
Microscaling Formats v1.0, section 5.3.3). There is no infinity and no NaN. Numpy only. The scales that go with the
codes are in `mxfp4.py` and `nvfp4.py`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

VALUES = np.array(
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0], dtype=np.float32
)
"""The value of each code, (16,)."""

LARGEST = 6.0
LARGEST_EXPONENT = 2
"""floor(log2(LARGEST)), called emax of the element format in the OCP rule."""

_MIDPOINTS = (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0)
"""Between code c and c + 1; exactly there, the even one of the two codes is nearer by rule."""


def round_to_codes(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint8]:
    """Return the code nearest to each value, ties to the even code, beyond 6 the largest.

    A value that rounds to zero keeps its sign (code 8 is -0). NaN is the caller's to refuse: it becomes 0.
    """
    magnitudes = np.abs(values)
    codes = np.zeros(values.shape, dtype=np.uint8)
    for code, midpoint in enumerate(_MIDPOINTS):
        above = magnitudes >= midpoint if code % 2 else magnitudes > midpoint
        np.add(codes, above.view(np.uint8), out=codes)
    codes[np.signbit(values)] |= 8
    return codes


def pack_codes(codes: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return two codes a byte along the last axis, the first in the low nibble; its length is even."""
    packed: npt.NDArray[np.uint8] = (codes[..., 0::2] | (codes[..., 1::2] << 4)).astype(np.uint8)
    return packed


def unpack_codes(packed: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the codes of `pack_codes`, the last axis twice as long."""
    codes = np.empty((*packed.shape[:-1], 2 * packed.shape[-1]), dtype=np.uint8)
    codes[..., 0::2] = packed & 15
    codes[..., 1::2] = packed >> 4
    return codes


def unpack_values(packed: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """Return the unscaled values of packed codes, the last axis twice as long."""
    return VALUES[unpack_codes(packed)]
