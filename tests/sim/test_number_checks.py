"""What counts as a number from outside, and what is refused, naming the argument."""

import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.errors import InputError
from hideaway.sim.number_checks import finite_number, plain_value, printable_text, shown, whole_number

NOT_NUMBERS = [
    None,
    True,
    np.bool_(True),
    "1",
    b"1",
    [1],
    np.array([1.0]),
    math.nan,
    math.inf,
    -math.inf,
    1j,
    10**400,
]


@pytest.mark.parametrize(
    "value", [1, 1.0, np.float32(1), np.int64(1), Fraction(1), Decimal(1), np.array(1.0)]
)
def test_every_real_number_type_becomes_a_plain_float(value):
    number = finite_number("x", value)
    assert type(number) is float
    assert number == 1.0


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=shown)
def test_what_is_no_finite_number_is_refused_by_name(value):
    with pytest.raises(InputError, match=r"^draft_seconds is .* but must be a finite number >= 0"):
        finite_number("draft_seconds", value)


def test_bounds_are_inclusive_unless_above_minimum():
    assert finite_number("r", 0, maximum=1) == 0
    assert finite_number("r", 1, maximum=1) == 1
    with pytest.raises(InputError, match=r"r is 0 but must be a finite number > 0"):
        finite_number("r", 0, above_minimum=True)
    with pytest.raises(InputError, match=r"in \[0, 1\]"):
        finite_number("r", np.nextafter(1, 2), maximum=1)


@pytest.mark.parametrize("value", [3, np.int16(3), np.uint64(3)])
def test_every_integer_type_becomes_a_plain_int(value):
    assert type(whole_number("n", value)) is int


@pytest.mark.parametrize("value", [None, True, np.bool_(False), 3.0, "3", -1, np.array([3])], ids=shown)
def test_what_is_no_whole_number_is_refused_by_name(value):
    with pytest.raises(InputError, match=r"^tokens is .* but must be a whole number >= 0"):
        whole_number("tokens", value)


def test_whole_number_bounds():
    assert whole_number("n", -5, minimum=None) == -5
    with pytest.raises(InputError, match="must be at most 10"):
        whole_number("n", 10**5000, maximum=10)


def test_a_number_too_long_to_print_is_still_named():
    assert shown(10**5000) == "a int"
    assert len(shown("x" * 1000)) < 100


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON_VALUES)
def test_plain_values_stay_as_they_are(value):
    assert plain_value("row", value) == value


def test_numpy_values_become_writable():
    value = {"a": np.float64(0.5), "b": np.int64(7), "c": np.arange(3), "d": (1, np.bool_(True))}
    assert json.loads(json.dumps(plain_value("row", value))) == {
        "a": 0.5,
        "b": 7,
        "c": [0, 1, 2],
        "d": [1, True],
    }


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({"cost_terms": {"x": math.nan}}, r"row\.cost_terms\.x"),
        ({"list": [0.0, math.inf]}, r"row\.list\[1\]"),
        ({1: "one"}, "row has the key 1"),
        ({"x": object()}, r"row\.x"),
        ({"x": "\ud800"}, r"row\.x .* not valid text"),
        ({"\ud800": 1}, "a key of row"),
        ({"x": b"bytes"}, r"row\.x"),
    ],
)
def test_what_cannot_be_written_is_refused_by_key(value, named):
    with pytest.raises(InputError, match=named):
        plain_value("row", value)


def test_nesting_is_bounded():
    value: list = []
    for _ in range(200):
        value = [value]
    with pytest.raises(InputError, match="nested more than 64 levels"):
        plain_value("row", value)


def test_text_must_be_text():
    with pytest.raises(InputError, match="name is 3 but must be text"):
        printable_text("name", 3)
