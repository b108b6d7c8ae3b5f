"""A hardware profile: what each operation costs on a machine, how sure that is and where it comes from.

Read from and written to the profile format of `docs/formats.md`; overrides make a new profile in which they
are marked as assumed. Not here: names of shipped profiles (`load.py`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from hideaway.sim.errors import InputError
from hideaway.sim.files import write_json_atomically
from hideaway.sim.inputs.bounded import check_header, dataclass_from, json_object, nonempty_text, one_of
from hideaway.sim.inputs.profiles.noise import OperationNoise
from hideaway.sim.inputs.profiles.parameters import ALL_PARAMETERS, PARAMETERS
from hideaway.sim.number_checks import finite_number, shown

PROFILE_FORMAT = "hideaway-profile"
PROFILE_VERSION = 1
ORIGINS = ("measured", "published", "assumed")
SET_BY_USER = "set by the user"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value with its unit, its standard error (None where unknown), its origin and its source."""

    value: float
    unit: str
    standard_error: float | None
    origin: str
    source: str


@dataclass(frozen=True, slots=True)
class Profile:
    """The parameters of one machine, every one of `PARAMETERS` and any of `OPTIONAL_PARAMETERS`.

    Parameters
    ----------
    noise : mapping
        How the time of an operation varies, by operation; empty where that was not measured.
    calibration : mapping
        How a measured profile came about (`hideaway calibrate`); empty for others.

    Raises
    ------
    InputError
        A parameter is missing, unknown, in another unit or out of range; the sentence says what to do.
    """

    name: str
    device: str
    parameters: Mapping[str, Parameter]
    noise: Mapping[str, OperationNoise] = field(default_factory=dict)
    calibration: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        nonempty_text("name", self.name, 200)
        nonempty_text("device", self.device)
        for name in self.parameters:
            _known(name)
        for name in PARAMETERS:
            if name not in self.parameters:
                kind = PARAMETERS[name]
                raise InputError(f"parameter {name} is missing; add it ({kind.meaning}, in {kind.unit})")
        ordered = {
            name: _checked(name, self.parameters[name]) for name in ALL_PARAMETERS if name in self.parameters
        }
        object.__setattr__(self, "parameters", ordered)
        if self.value("memory.reserved_bytes") >= self.value("memory.device_bytes"):
            raise InputError(
                "memory.reserved_bytes is not below memory.device_bytes; nothing would be left, lower it"
            )

    def value(self, name: str) -> float:
        """Return the value of a parameter.

        Raises
        ------
        InputError
            There is no such parameter.
        """
        found = self.parameters.get(name)
        if found is None:
            _known(name)
            raise InputError(f"profile {self.name} has no parameter {name}; add it")
        return found.value

    def optional_value(self, name: str) -> float | None:
        """Return the value of an optional parameter, None where the profile has none."""
        found = self.parameters.get(_known(name))
        return None if found is None else found.value

    def with_values(self, values: Mapping[str, float]) -> Profile:
        """Return this profile with some values replaced; they are marked as assumed and set by the user."""
        changed = dict(self.parameters)
        for name, value in values.items():
            unit = ALL_PARAMETERS[_known(name)].unit
            changed[name] = Parameter(value, unit, None, "assumed", SET_BY_USER)
        return replace(self, parameters=changed)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of a profile file."""
        parameters = {
            name: {
                "value": parameter.value,
                "unit": parameter.unit,
                "standard_error": parameter.standard_error,
                "origin": parameter.origin,
                "source": parameter.source,
            }
            for name, parameter in self.parameters.items()
        }
        value: dict[str, Any] = {
            "format": PROFILE_FORMAT,
            "version": PROFILE_VERSION,
            "name": self.name,
            "device": self.device,
            "parameters": parameters,
        }
        if self.noise:
            value["noise"] = {name: asdict(noise) for name, noise in self.noise.items()}
        if self.calibration:
            value["calibration"] = dict(self.calibration)
        return value

    @classmethod
    def from_dict(cls, value: object, what: str = "profile") -> Profile:
        """Return the profile that a JSON object describes; `what` names the file in errors."""
        given = check_header(what, value, PROFILE_FORMAT, PROFILE_VERSION)
        try:
            if "parameters" in given:
                entries = json_object("parameters", given["parameters"])
                given["parameters"] = {
                    name: dataclass_from(Parameter, f"parameters.{name}", entry)
                    for name, entry in entries.items()
                }
            if "noise" in given:
                entries = json_object("noise", given["noise"])
                given["noise"] = {
                    name: dataclass_from(OperationNoise, f"noise.{name}", entry)
                    for name, entry in entries.items()
                }
            if "calibration" in given:
                json_object("calibration", given["calibration"])
            return dataclass_from(cls, "the top level", given)
        except InputError as error:
            raise InputError(f"{what}: {error}") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a profile file."""
        write_json_atomically(path, self.to_dict())


def _known(name: str) -> str:
    if name not in ALL_PARAMETERS:
        raise InputError(
            f"there is no parameter {shown(name)}; `hideaway profile show rtx-pro-6000` lists them all"
        )
    return name


def _checked(name: str, parameter: Parameter) -> Parameter:
    kind = ALL_PARAMETERS[name]
    if parameter.unit != kind.unit:
        raise InputError(f"{name} has unit {shown(parameter.unit)}; give its value in {kind.unit}")
    value = finite_number(name, parameter.value, minimum=kind.minimum, maximum=kind.maximum)
    error = parameter.standard_error
    if error is not None:
        error = finite_number(f"the standard_error of {name}", error, maximum=kind.maximum)
    one_of(f"the origin of {name}", parameter.origin, ORIGINS)
    nonempty_text(f"the source of {name}", parameter.source)
    return Parameter(value, kind.unit, error, parameter.origin, parameter.source)
