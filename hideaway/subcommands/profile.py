"""Show what operations cost: every parameter of a hardware profile with its error, origin and source.

`list` names the profiles that are built in; `show` prints one, by name or from a file. --set replaces values,
which are then marked as assumed; -o writes the result as a profile file.

example:
  hideaway profile show rtx-pro-6000 --set link.h2d_bytes_per_second=51.5e9 -o mine.json
"""

from __future__ import annotations

import argparse
from collections import Counter

from hideaway.console import note, print_json, print_table
from hideaway.options import add_json_option, add_out_option
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.plain_numbers import number_from_text
from hideaway.sim.inputs.profiles import ALL_PARAMETERS, ORIGINS, Profile, builtin_profile_names, load_profile


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `hideaway profile`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|show")
    listing = actions.add_parser(
        "list",
        help="name the built-in profiles",
        epilog="example: hideaway profile list",
        allow_abbrev=False,
    )
    add_json_option(listing)
    showing = actions.add_parser(
        "show",
        help="print every parameter of a profile",
        epilog="example: hideaway profile show rtx-pro-6000 --set link.h2d_bytes_per_second=51.5e9 -o mine.json",
        allow_abbrev=False,
    )
    showing.add_argument("profile", metavar="NAME", help="built-in name or path of a profile file")
    showing.add_argument(
        "--set",
        dest="values",
        metavar="PARAMETER=VALUE",
        action="append",
        default=[],
        help="replace a value, in the parameter's unit; may be repeated",
    )
    add_json_option(showing)
    add_out_option(showing, "write the profile, with the values set, as a profile file")


def run(arguments: argparse.Namespace) -> int:
    """Print the list, or one profile."""
    if arguments.action == "list":
        return _list(arguments.json)
    profile = load_profile(arguments.profile)
    if arguments.values:
        profile = profile.with_values(dict(_assignment(text) for text in arguments.values))
    if arguments.out is not None:
        profile.save(arguments.out)
        note(f"wrote {arguments.out}")
    if arguments.json:
        print_json(profile.to_dict())
    else:
        _show(profile)
    return 0


def _list(as_json: bool) -> int:
    profiles = [load_profile(name) for name in builtin_profile_names()]
    if as_json:
        print_json(
            {
                "profiles": [
                    {"name": each.name, "device": each.device, "origins": _origins(each)} for each in profiles
                ]
            }
        )
        return 0
    rows = [(each.name, each.device, *(_origins(each)[origin] for origin in ORIGINS)) for each in profiles]
    print_table(("profile", "device", *ORIGINS), rows)
    return 0


def _origins(profile: Profile) -> dict[str, int]:
    counts = Counter(parameter.origin for parameter in profile.parameters.values())
    return {origin: counts[origin] for origin in ORIGINS}


def _assignment(text: str) -> tuple[str, float]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise InputError(
            f"--set {text[:80]!r} is not PARAMETER=VALUE; write for example link.latency_seconds=5e-6"
        )
    return name.strip(), number_from_text(value, f"the value of {name.strip()[:80]}")


def _show(profile: Profile) -> None:
    rows = []
    for name, parameter in profile.parameters.items():
        error = "unknown" if parameter.standard_error is None else f"{parameter.standard_error:.3g}"
        meaning = ALL_PARAMETERS[name].meaning
        rows.append((name, f"{parameter.value:.6g}", parameter.unit, error, parameter.origin, meaning))
    columns = ("parameter", "value", "unit", "standard error", "origin", "meaning")
    print_table(columns, rows, title=f"{profile.name}: {profile.device}")
    print("\nsources")
    for name, parameter in profile.parameters.items():
        print(f"{name} ({parameter.origin}): {parameter.source}")
    counts = _origins(profile)
    note(
        f"{len(profile.parameters)} parameters: "
        + ", ".join(f"{number} {origin}" for origin, number in counts.items())
    )
