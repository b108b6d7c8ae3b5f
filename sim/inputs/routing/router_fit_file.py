"""Files of fitted routers: JSON, checked on reading; and the fits that come with the package.

Not here: what the parameters mean (`generative.py`) and how they are found (`hideaway.calibrate.router_fit`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from hideaway.sim.errors import InputError
from hideaway.sim.files import write_json_atomically
from hideaway.sim.inputs.plain_numbers import number, read_json_value, whole_number
from hideaway.sim.inputs.routing.router_parameters import LayerLocality, RouterFit

DATA_FOLDER = Path(__file__).parent.parent / "data" / "routing"
FORMAT = "hideaway-router-fit"
VERSION = 1
_KEYS = ("format", "version", "name", "origin", "sequence_lengths", "layers")
_LONGEST_SEQUENCE = 10_000_000
_SIGNIFICANT_DIGITS = 5


def fitted_router_names() -> tuple[str, ...]:
    """Return the names that `fitted:` knows."""
    return tuple(sorted(path.stem for path in DATA_FOLDER.glob("*.json")))


def load_router_fit(name_or_path: str) -> RouterFit:
    """Return a shipped fit by name, or the fit in a JSON file.

    Raises
    ------
    InputError
        No fit has that name, or the file is not one.
    """
    names = fitted_router_names()
    if name_or_path in names:
        return read_router_fit(DATA_FOLDER / f"{name_or_path}.json")
    if name_or_path.endswith(".json"):
        return read_router_fit(name_or_path)
    raise InputError(
        f"router fit {name_or_path!r} is not shipped; fitted: knows {', '.join(names)} and paths ending in .json"
    )


def read_router_fit(path: str | os.PathLike[str]) -> RouterFit:
    """Return the fit in a JSON file.

    Raises
    ------
    InputError
        The file cannot be read, or a key is missing, unknown or out of range.
    """
    what = f"router fit {os.fspath(path)!r}"
    value = _object(read_json_value(path, "router fit"), _KEYS, what)
    if value["format"] != FORMAT or value["version"] != VERSION:
        raise InputError(
            f"{what} has format {value['format']!r} and version {value['version']!r}; this program reads {FORMAT}"
            f" version {VERSION}"
        )
    texts = [value[key] for key in ("name", "origin")]
    if not all(isinstance(text, str) for text in texts):
        raise InputError(f"name and origin of {what} must be text; correct them")
    lengths = tuple(
        whole_number(length, f"sequence_lengths of {what}", _LONGEST_SEQUENCE)
        for length in _list(value["sequence_lengths"], f"sequence_lengths of {what}")
    )
    layers = tuple(
        _layer(layer, f"layer {index} of {what}")
        for index, layer in enumerate(_list(value["layers"], f"layers of {what}"))
    )
    return RouterFit(str(texts[0]), layers, lengths, str(texts[1]))


def save_router_fit(path: str | os.PathLike[str], fit: RouterFit) -> None:
    """Write a fit as JSON, parameters to five significant digits (fits are known to two or three)."""
    layers = [
        {
            field.name: [_rounded(knot) for knot in layer.base_quantiles]
            if field.name == "base_quantiles"
            else _rounded(getattr(layer, field.name))
            for field in fields(layer)
        }
        for layer in fit.layers
    ]
    value = {
        "format": FORMAT,
        "version": VERSION,
        "name": fit.name,
        "origin": fit.origin,
        "sequence_lengths": list(fit.sequence_lengths),
        "layers": layers,
    }
    write_json_atomically(path, value)


def _layer(value: object, what: str) -> LayerLocality:
    names = tuple(field.name for field in fields(LayerLocality))
    found = _object(value, names, what)
    knots = tuple(number(knot, f"base_quantiles of {what}") for knot in _list(found["base_quantiles"], what))
    scalars = {name: number(found[name], f"{name} of {what}") for name in names if name != "base_quantiles"}
    return LayerLocality(base_quantiles=knots, **scalars)


def _object(value: object, keys: tuple[str, ...], what: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise InputError(f"{what} is not a JSON object; it needs the keys {', '.join(keys)}")
    missing = [key for key in keys if key not in value]
    unknown = [key for key in value if key not in keys]
    if missing or unknown:
        wrong = f"no {', '.join(missing)}" if missing else f"an unknown key {str(unknown[0])[:40]!r}"
        raise InputError(f"{what} has {wrong}; it needs exactly the keys {', '.join(keys)}")
    return value


def _list(value: object, what: str) -> list[object]:
    if not isinstance(value, list):
        raise InputError(f"{what} is not a list; give a JSON list")
    return value


def _rounded(value: float) -> float:
    return float(f"{value:.{_SIGNIFICANT_DIGITS}g}")
