"""Profiles by name or path; a built-in name wins over a file of that name, so write `./NAME` for the file."""

from __future__ import annotations

import difflib
import os
from functools import cache
from pathlib import Path

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.plain_numbers import read_json_value
from hideaway.sim.inputs.profiles.profile_file import PROFILE_FORMAT, Profile
from hideaway.sim.inputs.schemas import check_schema

PROFILE_FOLDER = Path(__file__).resolve().parent.parent / "data" / "profiles"


def builtin_profile_names() -> tuple[str, ...]:
    """Return the names of the profiles that are shipped."""
    return tuple(sorted(path.stem for path in PROFILE_FOLDER.glob("*.json")))


@cache
def _shipped(name: str) -> Profile:
    path = PROFILE_FOLDER / f"{name}.json"
    return Profile.from_dict(read_json_value(path, "profile"), f"profile {path.name!r}")


def load_profile(name_or_path: str) -> Profile:
    """Return a hardware profile by built-in name (any case) or from a file.

    Raises
    ------
    InputError
        The name is unknown, or the file is not a profile.
    """
    name = name_or_path.strip().lower()
    names = builtin_profile_names()
    if name in names:
        return _shipped(name)
    if not os.path.exists(name_or_path):
        close = difflib.get_close_matches(name[:200], names, n=1)
        hint = f"did you mean {close[0]}?" if close else f"built in are {', '.join(names)}"
        raise InputError(
            f"there is no profile or file {name_or_path[:200]!r}; {hint} (or give the path of a profile)"
        )
    what = f"profile {name_or_path!r}"
    value = read_json_value(name_or_path, "profile")
    if isinstance(value, dict) and value.get("format") == PROFILE_FORMAT:
        check_schema(value, "profile", what)
    return Profile.from_dict(value, what)
