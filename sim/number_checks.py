"""Numbers from outside: turned into plain float and int, or refused with a sentence that names the argument.

Used by the contract, the gates, admission and route-ahead. Nothing here knows what a number means; the caller
gives its name and its range. `plain_value` does the same for whole JSON-like values, `printable_text` for
text.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import SupportsFloat, SupportsIndex

from hideaway.sim.errors import InputError

_SHOWN_CHARACTERS = 80
_MAX_DEPTH = 64


def shown(value: object) -> str:
    """Return a short representation of any value for an error, also of ones whose `repr` fails or is long."""
    try:
        text = repr(value)
    except Exception:
        text = f"a {type(value).__name__}"  # an int of more than 4300 digits has no repr
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"


def finite_number(
    name: str,
    value: object,
    *,
    minimum: float = 0.0,
    maximum: float = math.inf,
    above_minimum: bool = False,
) -> float:
    """Return `value` as a float in [minimum, maximum], or in (minimum, maximum] if `above_minimum`.

    Any real number type is taken (NumPy scalars too); booleans, text, arrays, NaN and infinity are not.

    Raises
    ------
    InputError
        Naming `name`, what was given and the range.
    """
    number = _as_float(value)
    low_enough = number is not None and number <= maximum
    high_enough = number is not None and (number > minimum if above_minimum else number >= minimum)
    if number is None or not math.isfinite(number) or not low_enough or not high_enough:
        allowed = _range(minimum, maximum, above_minimum)
        raise InputError(
            f"{name} is {shown(value)} but must be a finite number {allowed}; give such a number"
        )
    return number


def whole_number(name: str, value: object, *, minimum: int | None = 0, maximum: int | None = None) -> int:
    """Return `value` as an int in [minimum, maximum] (None: no bound); booleans and fractions are refused.

    Raises
    ------
    InputError
        Naming `name`, what was given and the bound it breaks.
    """
    number = value if type(value) is int else _as_int(value)
    if number is not None and maximum is not None and number > maximum:
        raise InputError(f"{name} is {shown(value)} but must be at most {maximum}; give a smaller number")
    if number is None or (minimum is not None and number < minimum):
        allowed = "a whole number" if minimum is None else f"a whole number >= {minimum}"
        raise InputError(f"{name} is {shown(value)} but must be {allowed}; give {name} such a number")
    return number


def printable_text(name: str, value: object) -> str:
    """Return `value` if it is text that can be written as UTF-8; InputError names `name` otherwise."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InputError(
                f"{name} is {shown(value)}, which is not valid text; write it as UTF-8"
            ) from None
        return value
    raise InputError(f"{name} is {shown(value)} but must be text; write it as a string")


def plain_value(name: str, value: object, _depth: int = 0) -> object:
    """Return `value` with NumPy values and tuples made plain, so that it can be written as JSON.

    Raises
    ------
    InputError
        Naming the key that holds something else: NaN, infinity, an object, a key that is not text, deep
        nesting.
    """
    if _depth > _MAX_DEPTH:
        raise InputError(f"{name} is nested more than {_MAX_DEPTH} levels deep; flatten it")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return printable_text(name, value)
    if isinstance(value, Mapping):
        return {
            _text_key(name, key): plain_value(f"{name}.{key}", item, _depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [plain_value(f"{name}[{index}]", item, _depth + 1) for index, item in enumerate(value)]
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return plain_value(name, value.tolist(), _depth + 1)
    return _plain_number(name, value)


def _plain_number(name: str, value: object) -> int | float:
    whole = _as_int(value)
    if whole is not None:
        finite_number(name, whole, minimum=-math.inf)
        return whole
    return finite_number(name, value, minimum=-math.inf)


def _text_key(name: str, key: object) -> str:
    if not isinstance(key, str):
        raise InputError(f"{name} has the key {shown(key)} but keys must be text; write it as a string")
    return printable_text(f"a key of {name}", key)


def _as_float(value: object) -> float | None:
    if type(value) is float:
        return value
    if _is_boolean(value) or getattr(value, "ndim", 0) != 0 or not isinstance(value, SupportsFloat):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _as_int(value: object) -> int | None:
    if _is_boolean(value) or getattr(value, "ndim", 0) != 0 or not isinstance(value, SupportsIndex):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def _is_boolean(value: object) -> bool:
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    return isinstance(value, bool) or kind == "b"


def _range(minimum: float, maximum: float, above_minimum: bool) -> str:
    if minimum == -math.inf and maximum == math.inf:
        return "of either sign"
    if maximum == math.inf:
        return f"{'>' if above_minimum else '>='} {minimum:g}"
    return f"in {'(' if above_minimum else '['}{minimum:g}, {maximum:g}]"
