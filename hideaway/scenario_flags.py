"""Command-line flags of a scenario: one flag a field, on top of an optional TOML file."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection
from dataclasses import MISSING, fields
from typing import Any

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.plain_numbers import number_from_text
from hideaway.sim.inputs.scenario.fields import Scenario
from hideaway.sim.inputs.scenario.toml_file import field_types, read_scenario_mapping, scenario_from_mapping
from hideaway.sim.number_checks import shown


def add_scenario_flags(parser: argparse.ArgumentParser, *, without: Collection[str] = ()) -> None:
    """Add `--scenario FILE` and a flag for every scenario field that is not in `without`."""
    group = parser.add_argument_group("scenario", "flags win over the keys of --scenario FILE")
    group.add_argument("--scenario", metavar="FILE", help="TOML file whose keys are the names below")
    group.add_argument(
        "--set",
        dest="parameters",
        action="append",
        metavar="NAME=VALUE",
        help="override a profile parameter, such as link.latency_seconds=1e-5 (repeatable)",
    )
    kinds = field_types()
    for spec in fields(Scenario):
        if spec.name == "parameters" or spec.name in without:
            continue
        flag = "--" + spec.name.replace("_", "-")
        text = str(spec.metadata["help"])
        if spec.metadata["choices"]:
            text += f": {', '.join(spec.metadata['choices'])}"
        if spec.default is not MISSING and spec.default not in (None, False):
            default = f"{spec.default:g}" if isinstance(spec.default, float) else spec.default
            text += f" (default {default})"
        if spec.metadata["within"] is not None:
            kind = "whole number, " if kinds[spec.name] is int else ""
            text += " [{}{:g} to {:g}]".format(kind, *spec.metadata["within"])
        if kinds[spec.name] is bool:
            group.add_argument(flag, action=argparse.BooleanOptionalAction, default=None, help=text)
        else:
            group.add_argument(
                flag,
                type=_reader(kinds[spec.name]),
                metavar=spec.name.rsplit("_", 1)[-1].upper(),
                help=text.replace("%", "%%"),
            )


def scenario_from_flags(arguments: argparse.Namespace) -> Scenario:
    """Return the scenario of parsed flags.

    Raises
    ------
    InputError
        The file or a flag is wrong.
    """
    mapping = {} if arguments.scenario is None else read_scenario_mapping(arguments.scenario)
    for spec in fields(Scenario):
        value = getattr(arguments, spec.name, None)
        if spec.name == "parameters":
            mapping["parameters"] = {**mapping.get("parameters", {}), **_overrides(value or [])}
        elif value is not None:
            mapping[spec.name] = value
    return scenario_from_mapping(mapping)


def _reader(kind: type) -> Callable[[str], Any]:
    def read(text: str) -> Any:  # noqa: ANN401
        try:
            return kind(text)
        except (ValueError, OverflowError) as error:
            wanted = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"{shown(text)} is not {wanted}") from error

    return read


def _overrides(pairs: list[str]) -> dict[str, float]:
    overrides: dict[str, float] = {}
    for pair in pairs:
        name, equals, number = pair.partition("=")
        if not equals:
            raise InputError(f"--set is {shown(pair)}; give NAME=NUMBER, such as link.latency_seconds=1e-5")
        overrides[name] = number_from_text(number, f"--set {shown(name)}")
    return overrides
