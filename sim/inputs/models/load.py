"""Models by name or path: built-in names and aliases, model files, Hugging Face configs.

A built-in name wins over a file of the same name; write `./NAME` for the file.
"""

from __future__ import annotations

import difflib
import os
from functools import cache
from pathlib import Path

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.bounded import one_of
from hideaway.sim.inputs.models.architecture import Architecture
from hideaway.sim.inputs.models.architecture_file import MODEL_FORMAT, architecture_from
from hideaway.sim.inputs.models.hf_config import architecture_from_config
from hideaway.sim.inputs.models.spec import ModelSpec, spec_from
from hideaway.sim.inputs.models.weight_formats import WEIGHT_FORMATS
from hideaway.sim.inputs.plain_numbers import read_json_value
from hideaway.sim.inputs.schemas import check_schema

MODEL_FOLDER = Path(__file__).resolve().parent.parent / "data" / "models"
CONFIG_NAME = "config.json"
QUANTIZATION_NAME = "hf_quant_config.json"


@cache
def _shipped() -> dict[str, Architecture]:
    """Return the shipped models by Hugging Face id, in the order of their file names."""
    paths = sorted(MODEL_FOLDER.glob("*.json"))
    models = [
        architecture_from(read_json_value(path, "model file"), f"model file {path.name!r}") for path in paths
    ]
    return {model.name: model for model in models}


@cache
def _names() -> dict[str, str]:
    """Return the Hugging Face id of every name and alias, in lower case."""
    return {
        name.lower(): model.name
        for model in _shipped().values()
        for name in (model.name, model.name.split("/")[-1], *model.aliases)
    }


def builtin_model_names() -> tuple[str, ...]:
    """Return the Hugging Face ids of the models that are shipped."""
    return tuple(_shipped())


def load_model(name_or_path: str, *, expert_format: str | None = None) -> ModelSpec:
    """Return the bytes and operations of a model.

    Parameters
    ----------
    name_or_path
        A built-in name or alias (any case), a model file, a Hugging Face `config.json` or its folder.
    expert_format
        One of mxfp4, nvfp4, fp8, bf16, in place of what the checkpoint has for its routed experts; what is
        always on the device stays as it is.

    Raises
    ------
    InputError
        The name is unknown, or the file does not describe a mixture-of-experts model.
    """
    return spec_from(load_architecture(name_or_path, expert_format=expert_format), expert_format)


def load_architecture(name_or_path: str, *, expert_format: str | None = None) -> Architecture:
    """Return the shapes of a model; arguments and errors as `load_model`."""
    if expert_format is not None:
        one_of("expert format", expert_format, WEIGHT_FORMATS)
    known = _names().get(name_or_path.strip().lower())
    if known is not None:
        return _shipped()[known]
    if not os.path.exists(name_or_path):
        raise InputError(_unknown_name(name_or_path))
    return _from_path(name_or_path, expert_format)


def _from_path(path: str, expert_format: str | None) -> Architecture:
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    file = os.path.join(path, CONFIG_NAME) if os.path.isdir(path) else path
    what = f"model file {file!r}"
    value = read_json_value(file, "model file")
    if isinstance(value, dict) and value.get("format") is not None:
        if value["format"] == MODEL_FORMAT:
            check_schema(value, "model", what)
        return architecture_from(value, what)
    beside = os.path.join(folder, QUANTIZATION_NAME)
    quantization = None
    if os.path.basename(file) == CONFIG_NAME and os.path.isfile(beside):
        quantization = read_json_value(beside, "quantization file")
    fallback = os.path.basename(os.path.abspath(folder if os.path.basename(file) == CONFIG_NAME else file))
    try:
        return architecture_from_config(
            value,
            name=fallback or "model",
            source=file,
            quantization=quantization,
            expert_format=expert_format,
        )
    except InputError as error:
        raise InputError(f"{what}: {error}") from error


def _unknown_name(name: str) -> str:
    close = difflib.get_close_matches(name.lower()[:200], list(_names()), n=1)
    hint = f"did you mean {close[0]}?" if close else f"built in are {', '.join(builtin_model_names())}"
    return (
        f"there is no model or file {name[:200]!r}; {hint} "
        "(or give the path of a Hugging Face config.json or a model file)"
    )
