"""The two one-byte scale formats: E8M0 (a power of two, in MXFP4) and E4M3 (a small float, in NVFP4).

Both are decoded by table, `E8M0_VALUES[byte]` and `E4M3_VALUES[byte]`, exactly. Numpy only.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

E8M0_BIAS = 127
E8M0_LARGEST = 254
"""The byte of 2^127; 255 is NaN (OCP Microscaling Formats v1.0, section 5.4.1)."""

E4M3_LARGEST = 448.0
_E4M3_LARGEST_BYTE = 0x7E


def _e8m0_values() -> npt.NDArray[np.float32]:
    values = np.full(256, np.nan, dtype=np.float32)
    values[: E8M0_LARGEST + 1] = np.ldexp(1.0, np.arange(E8M0_LARGEST + 1) - E8M0_BIAS)
    return values


def _e4m3_values() -> npt.NDArray[np.float32]:
    """Bias 7, subnormals, no infinities; 0x7f and 0xff are NaN (OCP 8-bit Floating Point v1.0, the FN variant)."""
    byte = np.arange(256)
    exponent, mantissa = (byte >> 3) & 15, byte & 7
    significand = np.where(exponent == 0, mantissa, mantissa + 8).astype(np.float64)
    magnitude = np.ldexp(significand, np.maximum(exponent, 1) - 10)
    magnitude[(byte & 0x7F) == 0x7F] = np.nan
    values: npt.NDArray[np.float32] = np.where(byte >= 128, -magnitude, magnitude).astype(np.float32)
    return values


E8M0_VALUES = _e8m0_values()
E4M3_VALUES = _e4m3_values()


def round_to_e4m3(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint8]:
    """Return the E4M3 byte nearest to each value >= 0, ties to even, beyond 448 the largest finite one."""
    positive = E4M3_VALUES[: _E4M3_LARGEST_BYTE + 1].astype(np.float64)
    wanted = values.astype(np.float64)
    above = np.clip(np.searchsorted(positive, wanted), 1, _E4M3_LARGEST_BYTE)
    below = above - 1
    gap = (wanted - positive[below]) - (positive[above] - wanted)
    rounded = np.where((gap > 0) | ((gap == 0) & (above % 2 == 0)), above, below)
    return rounded.astype(np.uint8)
