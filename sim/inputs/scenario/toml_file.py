"""A scenario file: flat TOML keys named like the flags, and one table `[parameters]` of profile overrides."""

from __future__ import annotations

import os
import tomllib
import types
import typing
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from hideaway.sim.errors import InputError
from hideaway.sim.files import read_text
from hideaway.sim.inputs.scenario.fields import Scenario
from hideaway.sim.number_checks import shown


def load_scenario(path: str | os.PathLike[str]) -> Scenario:
    """Return the scenario in a TOML file.

    Raises
    ------
    InputError
        The file cannot be read, is not TOML, or a key is unknown or of the wrong type.
    """
    return scenario_from_mapping(read_scenario_mapping(path))


def read_scenario_mapping(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the keys of a scenario file, checked for name and type only, so that flags may override them."""
    text = read_text(path, "scenario file")
    try:
        mapping = tomllib.loads(text)
    except (
        ValueError,
        RecursionError,
    ) as error:  # ValueError: not TOML, or an integer of thousands of digits
        raise InputError(
            f"scenario file {os.fspath(path)!r} is not TOML: {error}; repair the file"
        ) from error
    return checked_mapping(mapping)


def scenario_from_mapping(mapping: Mapping[str, Any]) -> Scenario:
    """Return the scenario with the given fields, the rest at their defaults.

    Raises
    ------
    InputError
        A key is unknown, a value of the wrong type or out of range.
    """
    return Scenario(**checked_mapping(mapping))


def checked_mapping(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mapping with whole numbers turned to floats where a float is due.

    Raises
    ------
    InputError
        A key is unknown or a value of the wrong type.
    """
    allowed = field_types()
    checked: dict[str, Any] = {}
    for key, value in mapping.items():
        if key == "parameters":
            checked[key] = _parameters(value)
        elif key in allowed:
            checked[key] = _typed(key, value, allowed[key])
        else:
            raise InputError(
                f"{shown(key)} is not a scenario key; the keys are {', '.join(allowed)} and parameters"
            )
    return checked


def field_types() -> dict[str, type]:
    """Return the plain type of each scenario field, `None` stripped."""
    hints = typing.get_type_hints(Scenario)
    return {spec.name: _plain(hints[spec.name]) for spec in fields(Scenario) if spec.name != "parameters"}


def _plain(hint: Any) -> type:  # noqa: ANN401
    if isinstance(hint, types.UnionType):
        (hint,) = [option for option in typing.get_args(hint) if option is not types.NoneType]
    kind: type = hint
    return kind


def _typed(key: str, value: object, wanted: type) -> object:
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return _as_float(key, value)
    if not isinstance(value, wanted) or (wanted is not bool and isinstance(value, bool)):
        names = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
        raise InputError(f"{key} is {shown(value)}; it must be {names[wanted]}")
    return value


def _as_float(key: str, value: int) -> float:
    try:
        return float(value)
    except OverflowError as error:
        raise InputError(f"{key} is too large a number; give one of sensible size") from error


def _parameters(value: object) -> dict[str, float]:
    if not isinstance(value, dict):
        raise InputError('parameters must be a table of name = number, such as "link.latency_seconds" = 1e-5')
    flat: dict[str, float] = {}
    for name, number in value.items():
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise InputError(
                f"parameter {shown(name)} is {shown(number)}; give a number and quote the dotted name"
            )
        flat[name] = _as_float(shown(name), number) if isinstance(number, int) else number
    return flat
