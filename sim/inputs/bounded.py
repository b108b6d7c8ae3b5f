"""JSON objects from outside turned into checked dataclasses: types, ranges, missing and unknown keys.

Models and profiles are read with these. Not here: what the numbers mean, and the JSON Schemas (`schemas.py`),
which say the same to other programs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from hideaway.sim.errors import InputError
from hideaway.sim.number_checks import shown

T = TypeVar("T")


def bounded_whole(name: str, value: object, minimum: int, maximum: int) -> int:
    """Return `value` if it is an int in [minimum, maximum] (booleans and 1.0 are not ints here)."""
    if type(value) is not int or not minimum <= value <= maximum:
        raise InputError(
            f"{name} is {shown(value)} but must be a whole number from {minimum} to {maximum}; correct {name}"
        )
    return value


def flag(name: str, value: object) -> bool:
    """Return `value` if it is true or false."""
    if not isinstance(value, bool):
        raise InputError(f"{name} is {shown(value)} but must be true or false; correct {name}")
    return value


def nonempty_text(name: str, value: object, maximum: int = 4000) -> str:
    """Return `value` if it is text of 1 to `maximum` characters without control characters."""
    if not isinstance(value, str) or not 0 < len(value) <= maximum or not value.isprintable():
        raise InputError(
            f"{name} is {shown(value)} but must be printable text of 1 to {maximum} "
            f"characters; correct {name}"
        )
    return value


def one_of(name: str, value: object, allowed: tuple[str, ...]) -> str:
    """Return `value` if it is one of the allowed words."""
    if not isinstance(value, str) or value not in allowed:
        raise InputError(f"{name} is {shown(value)} but must be one of {', '.join(allowed)}; correct {name}")
    return value


def json_object(name: str, value: object) -> Mapping[str, Any]:
    """Return `value` if it is a JSON object."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InputError(f"{name} is {shown(value)} but must be a JSON object; write it as {{...}}")
    return value


def json_list(name: str, value: object) -> tuple[Any, ...]:
    """Return the members of `value` if it is a JSON list."""
    if not isinstance(value, (list, tuple)):
        raise InputError(f"{name} is {shown(value)} but must be a list; write it as [...]")
    return tuple(value)


def dataclass_from(cls: type[T], name: str, value: object) -> T:
    """Return the dataclass `cls` made from a JSON object whose keys are its fields; lists become tuples.

    Raises
    ------
    InputError
        Naming the key that is missing or unknown, or what the dataclass itself refuses.
    """
    given = json_object(name, value)
    fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for key in given:
        if key not in fields:
            raise InputError(f"{name} has the unknown key {shown(key)}; allowed are {', '.join(fields)}")
    for key, field in fields.items():
        optional = (
            field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        )
        if key not in given and not optional:
            raise InputError(f"{name} lacks the key {key!r}; add it")
    return cls(**{key: tuple(item) if isinstance(item, list) else item for key, item in given.items()})


def check_header(name: str, value: object, file_format: str, version: int) -> dict[str, Any]:
    """Return a JSON object without its `format` and `version`, which must be those given."""
    given = dict(json_object(name, value))
    if given.pop("format", None) != file_format:
        raise InputError(
            f"{name} does not say that it is a {file_format} file; set format to {file_format!r}"
        )
    found = given.pop("version", None)
    if type(found) is not int or found != version:
        raise InputError(f"{name} has version {shown(found)}; this program reads version {version}")
    return given
