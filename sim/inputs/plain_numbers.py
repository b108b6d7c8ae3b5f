"""Numbers in the text files that users hand in: strict, and refused with a sentence that says where.

Python's own `int` and `float` also take underscores, other scripts' digits, "nan" and "infinity".
"""

from __future__ import annotations

import math
import os
import re

from hideaway.sim.errors import InputError
from hideaway.sim.files import json_value, read_text

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)


def number_from_text(text: str, what: str) -> float:
    """Return the finite number that `text` spells in plain decimal or exponent form; `what` names it in the error."""
    if len(text) <= 100 and _NUMBER.fullmatch(text.strip()):
        value = float(text)
        if math.isfinite(value):
            return value
    raise InputError(f"{what} is {_shown(text)}; give a finite number")


def whole_number_from_text(text: str, what: str, highest: int) -> int:
    """Return the whole number from 0 to `highest` that `text` spells; 12.0 counts as whole."""
    return whole_number(number_from_text(text, what), what, highest)


def number(value: object, what: str) -> float:
    """Return a finite number found in JSON; `what` names it in the error."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300:
        return float(value)
    raise InputError(f"{what} is {_shown(value)}; give a finite number")


def whole_number(value: object, what: str, highest: int) -> int:
    """Return a whole number from 0 to `highest` found in JSON or text; `what` names it in the error."""
    found = number(value, what)
    if found != int(found) or not 0 <= found <= highest:
        raise InputError(f"{what} is {_shown(value)}; give a whole number from 0 to {highest}")
    return int(found)


def json_from_text(text: str, what: str) -> object:
    """Return the value that JSON text holds; `what` names the file in the error."""
    try:
        return json_value(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{what} is not JSON: {error}; repair the file") from error


def read_json_value(path: str | os.PathLike[str], what: str) -> object:
    """Return the value in a JSON file; `what` names the kind of file in the error."""
    return json_from_text(read_text(path, what), f"{what} {os.fspath(path)!r}")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
