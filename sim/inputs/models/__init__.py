"""Models: shapes, bytes and operations, by built-in name, model file or Hugging Face config.

`load_model` is the way in; `ModelSpec` is what the rest of the program reads.
"""

from __future__ import annotations

from hideaway.sim.inputs.models.architecture import Architecture
from hideaway.sim.inputs.models.architecture_file import save_architecture
from hideaway.sim.inputs.models.load import builtin_model_names, load_architecture, load_model
from hideaway.sim.inputs.models.spec import ModelSpec, spec_from
from hideaway.sim.inputs.models.weight_formats import WEIGHT_FORMATS

__all__ = [
    "WEIGHT_FORMATS",
    "Architecture",
    "ModelSpec",
    "builtin_model_names",
    "load_architecture",
    "load_model",
    "save_architecture",
    "spec_from",
]
