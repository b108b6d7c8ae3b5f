"""Model files: the shapes of a model as JSON, read with errors that help and written whole.

The format is described in `docs/formats.md` and by the schema `model`. Not here: Hugging Face configs
(`hf_config.py`) and names (`load.py`).
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from hideaway.sim.errors import InputError
from hideaway.sim.files import write_json_atomically
from hideaway.sim.inputs.bounded import check_header, dataclass_from
from hideaway.sim.inputs.models.architecture import Architecture, DenseLayers, RoutedExperts, SharedExperts
from hideaway.sim.inputs.models.attention import GroupedAttention, LatentAttention, LinearAttention
from hideaway.sim.inputs.models.weight_formats import StoredFormats

MODEL_FORMAT = "hideaway-model"
MODEL_VERSION = 1
_PARTS: dict[str, type] = {
    "experts": RoutedExperts,
    "stored": StoredFormats,
    "grouped_attention": GroupedAttention,
    "latent_attention": LatentAttention,
    "linear_attention": LinearAttention,
    "shared_experts": SharedExperts,
    "dense_layers": DenseLayers,
}
_NEVER_NULL = ("experts", "stored")


def architecture_from(value: object, what: str) -> Architecture:
    """Return the architecture that a model file's JSON object describes; `what` names the file in errors.

    Raises
    ------
    InputError
        The object is not a model file of this version, or a key is missing, unknown or out of range.
    """
    given = check_header(what, value, MODEL_FORMAT, MODEL_VERSION)
    try:
        for key, part in _PARTS.items():
            if key in given and (given[key] is not None or key in _NEVER_NULL):
                given[key] = dataclass_from(part, key, given[key])
        return dataclass_from(Architecture, "the top level", given)
    except InputError as error:
        raise InputError(f"{what}: {error}") from error


def architecture_to_dict(architecture: Architecture) -> dict[str, Any]:
    """Return the JSON object of a model file; parts that the model lacks are left out."""
    values = dataclasses.asdict(architecture)
    header = {"format": MODEL_FORMAT, "version": MODEL_VERSION, "name": values.pop("name")}
    return {**header, **_without_empty(values)}


def save_architecture(path: str | os.PathLike[str], architecture: Architecture) -> None:
    """Write a model file."""
    write_json_atomically(path, architecture_to_dict(architecture))


def _without_empty(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, Mapping):
        return {key: _without_empty(item) for key, item in value.items() if item is not None}
    if isinstance(value, tuple):
        return list(value)
    return value
