"""From a checkpoint's folder to a `Target`: transformers' model without experts, dense weights in float32.

Nothing is downloaded and no code of the folder runs. Memory for the experts is never taken: the model is built without
storage, its experts are replaced, and only what is left is loaded. The experts come from a store
(`hideaway.hw.engine.store_cache`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hideaway.hw.store.checkpoint import Checkpoint
from hideaway.hw.target.attention import ATTENTION
from hideaway.hw.target.families import Family, empty_model, family_of
from hideaway.hw.target.model import RoutedExperts, Target
from hideaway.sim.errors import InputError
from hideaway.sim.files import read_json
from hideaway.sim.inputs.bounded import json_object

CONFIG_NAME = "config.json"
_HEAD, _EMBEDDING = "lm_head.weight", "model.embed_tokens.weight"


def load_target(
    folder: str | os.PathLike[str],
    *,
    feature_layers: Sequence[int] = (),
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> Target:
    """Return the model of a folder, its routed experts left out.

    Parameters
    ----------
    feature_layers : sequence of int
        Layers whose outputs a drafter reads.

    Raises
    ------
    InputError
        The folder is not a checkpoint of a family that is served here, or a tensor is missing or of another shape.
    """
    folder = Path(folder)
    config = config_of(folder)
    family = family_of(config, str(folder))
    model = empty_model(family, config, ATTENTION, str(folder))
    _replace_experts(model, family, str(folder))
    _load_dense(model, family, Checkpoint(folder), device=device, dtype=dtype)
    trunk: Any = model.model
    with torch.device(device):  # its angles are computed, not stored
        trunk.rotary_emb = type(trunk.rotary_emb)(config=model.config)
    return Target(model, family, feature_layers)


def _replace_experts(model: nn.Module, family: Family, where: str) -> None:
    """Put `RoutedExperts` where the model's experts are. Changes the model."""
    import transformers

    blocks: list[Any] = [module for module in model.modules() if hasattr(module, "experts")]
    if not blocks:
        raise InputError(f"{where} has no layer with routed experts; take a mixture-of-experts model")
    if not all(hasattr(block, family.router) for block in blocks):
        raise InputError(
            f"transformers {transformers.__version__} builds {family.name} with its router elsewhere than this program "
            "looks for it; install version 5.24"
        )
    for number, block in enumerate(blocks):
        block.experts = RoutedExperts(number)


def _load_dense(
    model: nn.Module,
    family: Family,
    checkpoint: Checkpoint,
    *,
    device: torch.device | str,
    dtype: torch.dtype,
) -> None:
    """Load every parameter that the model still has. Changes the model."""
    wanted = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    names = {name: family.stored_name(name, checkpoint.files) for name in wanted}
    config: Any = model.config
    shared = bool(config.tie_word_embeddings) and names[_HEAD] not in checkpoint.files
    loaded = {
        name: _tensor(checkpoint, names[name], shape).to(device=device, dtype=dtype)
        for name, shape in wanted.items()
        if not (shared and name == _HEAD)
    }
    if shared:
        loaded[_HEAD] = loaded[_EMBEDDING]
    model.load_state_dict(loaded, assign=True)
    model.requires_grad_(False)


def _tensor(checkpoint: Checkpoint, name: str, shape: tuple[int, ...]) -> torch.Tensor:
    found = checkpoint.shape(name)
    if found != shape:
        raise InputError(
            f"{name} in {checkpoint.folder} has the shape {list(found)} but its config calls for {list(shape)}; "
            "download it again"
        )
    return torch.from_numpy(checkpoint.floats(name))


def config_of(folder: str | os.PathLike[str]) -> Mapping[str, Any]:
    """Return the config of a checkpoint as it stands in the folder."""
    path = Path(folder) / CONFIG_NAME
    return json_object(str(path), read_json(path, "model file"))
