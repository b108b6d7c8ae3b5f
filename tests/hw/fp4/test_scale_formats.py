"""E8M0 and E4M3 against ml_dtypes, every byte and every neighbourhood of a midpoint."""

from __future__ import annotations

import numpy as np
import pytest

from hideaway.hw.fp4.scale_formats import E4M3_VALUES, E8M0_VALUES, round_to_e4m3

ml_dtypes = pytest.importorskip("ml_dtypes")

BYTES = np.arange(256, dtype=np.uint8)


def test_every_e8m0_byte_has_the_value_ml_dtypes_gives_it() -> None:
    theirs = BYTES.view(ml_dtypes.float8_e8m0fnu).astype(np.float64)
    np.testing.assert_array_equal(E8M0_VALUES.astype(np.float64), theirs)


def test_every_e4m3_byte_has_the_value_ml_dtypes_gives_it() -> None:
    theirs = BYTES.view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    np.testing.assert_array_equal(E4M3_VALUES, theirs)
    np.testing.assert_array_equal(np.signbit(E4M3_VALUES), np.signbit(theirs))


def test_rounding_to_e4m3_equals_ml_dtypes_on_values_and_around_midpoints() -> None:
    finite = E4M3_VALUES[:127]
    midpoints = ((finite[1:].astype(np.float64) + finite[:-1]) / 2).astype(np.float32)
    zero, much = np.float32(0), np.float32(500)
    tried = np.concatenate(
        [finite, midpoints, np.nextafter(midpoints, zero), np.nextafter(midpoints, much), [np.float32(448)]]
    ).astype(np.float32)
    theirs = tried.astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
    np.testing.assert_array_equal(round_to_e4m3(tried), theirs)


def test_rounding_to_e4m3_saturates() -> None:
    assert E4M3_VALUES[round_to_e4m3(np.array([449, 1e30], dtype=np.float32))].tolist() == [448.0, 448.0]
