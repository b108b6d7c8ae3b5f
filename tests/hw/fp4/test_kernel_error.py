"""The rounding units that errors are predicted from are those of the formats."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from hideaway.hw.fp4 import kernel_error


def test_units_are_half_the_spacing_at_one() -> None:
    assert kernel_error._UNIT == np.finfo(np.float32).eps / 2
    assert kernel_error._BFLOAT16_UNIT == float(ml_dtypes.finfo(ml_dtypes.bfloat16).eps) / 2
