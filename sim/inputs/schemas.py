"""The JSON Schemas of the file formats, and the check of a value against one, as one sentence.

The schemas are shipped in `data/schemas/` and described in `docs/formats.md`; other programs can use them as
they are. Loading a model or a profile checks the schema first and the ranges of each value after it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from hideaway.sim.errors import InputError
from hideaway.sim.number_checks import shown

SCHEMA_FOLDER = Path(__file__).resolve().parent / "data" / "schemas"
SCHEMA_NAMES = ("event-log", "measurement", "model", "predictor", "profile", "routing", "rows", "timeline")


@cache
def load_schema(name: str) -> dict[str, Any]:
    """Return one of the shipped schemas.

    Raises
    ------
    InputError
        There is no schema of that name.
    """
    if name not in SCHEMA_NAMES:
        raise InputError(f"there is no schema {name!r}; the schemas are {', '.join(SCHEMA_NAMES)}")
    schema: dict[str, Any] = json.loads((SCHEMA_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return schema


def check_schema(value: object, name: str, what: str) -> None:
    """Check a JSON value against the schema `name`; `what` names the file in the error.

    Raises
    ------
    InputError
        One sentence with the path inside the file, what stands there and what the schema allows.
    """
    import jsonschema

    _refuse_non_finite(value, what)
    validator = jsonschema.Draft202012Validator(load_schema(name))
    try:
        error = min(validator.iter_errors(value), key=_depth_and_place, default=None)
    except (RecursionError, OverflowError) as failure:
        raise InputError(
            f"{what} does not follow the {name} format ({failure}); see docs/formats.md"
        ) from failure
    if error is not None:
        raise InputError(f"{what} does not follow the {name} format: {_sentence(error)}")


def path_text(parts: Sequence[str | int]) -> str:
    """Return a path inside a file as people write it: `stored.experts`, `aliases[0]`."""
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text if len(text) <= 120 else text[:117] + "..."


def _depth_and_place(error: Any) -> tuple[int, str]:  # noqa: ANN401
    return (len(error.absolute_path), path_text(list(error.absolute_path)))


def _sentence(error: Any) -> str:  # noqa: ANN401
    place = path_text(list(error.absolute_path)) or "the top level"
    allowed = error.validator_value
    match error.validator:
        case "required":
            missing = next(key for key in allowed if key not in error.instance)
            return f"{place} lacks the key {missing!r}; add it"
        case "additionalProperties" | "unevaluatedProperties":
            known = error.schema.get("properties", {})
            extra = next((key for key in error.instance if key not in known), "?")
            return f"{place} has the unknown key {shown(extra)}; remove it or correct its name"
        case "type":
            return f"{place} is {shown(error.instance)} but must be of type {_words(allowed)}"
        case "enum":
            return f"{place} is {shown(error.instance)} but must be one of {_words(allowed)}"
        case "const":
            return f"{place} is {shown(error.instance)} but must be {shown(allowed)}"
        case _:
            return f"{place} is {shown(error.instance)} but must obey {error.validator} {shown(allowed)}"


def _words(allowed: object) -> str:
    members = allowed if isinstance(allowed, list) else [allowed]
    return ", ".join(str(member) for member in members)


def _refuse_non_finite(value: object, what: str) -> None:
    """Refuse NaN and infinity, which Python's JSON reader takes and comparisons let through."""
    pending: list[tuple[tuple[str | int, ...], object]] = [((), value)]
    while pending:
        place, item = pending.pop()
        if isinstance(item, float) and not math.isfinite(item):
            raise InputError(
                f"{what} has {item} at {path_text(place) or 'the top level'}; give a finite number"
            )
        if isinstance(item, dict):
            pending.extend(((*place, str(key)), member) for key, member in item.items())
        elif isinstance(item, list):
            pending.extend(((*place, index), member) for index, member in enumerate(item))
