"""E2M1 against ml_dtypes' own float4, and packing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hideaway.hw.fp4.e2m1 import VALUES, pack_codes, round_to_codes, unpack_codes, unpack_values

ml_dtypes = pytest.importorskip("ml_dtypes")

FLOAT4 = ml_dtypes.float4_e2m1fn


def test_every_code_has_the_value_ml_dtypes_gives_it() -> None:
    theirs = np.arange(16, dtype=np.uint8).view(FLOAT4).astype(np.float32)
    np.testing.assert_array_equal(VALUES.view(np.uint32), theirs.view(np.uint32))


def test_midpoints_round_to_the_even_code_and_neighbours_to_the_nearer() -> None:
    midpoints = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0], dtype=np.float32)
    just_below, just_above = np.nextafter(midpoints, np.float32(0)), np.nextafter(midpoints, np.float32(9))
    assert round_to_codes(midpoints).tolist() == [0, 2, 2, 4, 4, 6, 6]
    assert round_to_codes(just_below).tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert round_to_codes(just_above).tolist() == [1, 2, 3, 4, 5, 6, 7]


def test_values_beyond_six_saturate_and_zero_keeps_its_sign() -> None:
    values = np.array([6.5, 1e30, -1e30, -0.1, 0.1, -0.0], dtype=np.float32)
    assert round_to_codes(values).tolist() == [7, 7, 15, 8, 0, 8]


@given(hnp.arrays(np.float32, st.integers(1, 64), elements=st.floats(-8, 8, width=32)))
def test_rounding_equals_ml_dtypes(values: np.ndarray) -> None:
    theirs = np.clip(values, -6, 6).astype(FLOAT4).view(np.uint8) & 15
    np.testing.assert_array_equal(round_to_codes(values), theirs)


def test_the_first_code_of_a_pair_is_in_the_low_nibble() -> None:
    assert pack_codes(np.array([[1, 2, 15, 0]], dtype=np.uint8)).tolist() == [[0x21, 0x0F]]


@given(hnp.arrays(np.uint8, st.tuples(st.integers(1, 4), st.integers(1, 16))))
def test_packing_undoes_unpacking(packed: np.ndarray) -> None:
    np.testing.assert_array_equal(pack_codes(unpack_codes(packed)), packed)
    np.testing.assert_array_equal(unpack_values(packed), VALUES[unpack_codes(packed)])
