"""A target with MXFP4 experts as transformers' own model in float32: the oracle for whatever runs it otherwise.

Every weight is what its stored bytes mean, exactly: E2M1 times a power of two, and bfloat16, are float32 values.
transformers itself reads such experts for gpt-oss only, so they are decoded here.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch
from torch import nn
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

from hideaway.hw.fp4.fp4_tensor import Fp4Tensor, dequantise
from hideaway.hw.store.checkpoint import Checkpoint
from hideaway.sim.errors import InputError
from hideaway.sim.files import read_json
from hideaway.sim.inputs.bounded import json_object
from hideaway.sim.inputs.models.weight_formats import MXFP4_BLOCK

_BLOCKS, _SCALES = "_blocks", "_scales"


def reference_state(folder: str | os.PathLike[str]) -> dict[str, torch.Tensor]:
    """Return every tensor of a checkpoint in float32, `NAME_blocks` and `NAME_scales` as one decoded `NAME`.

    Raises
    ------
    InputError
        The folder is no checkpoint, or a tensor in it has another type than expected.
    """
    checkpoint = Checkpoint(folder)
    state = {}
    for name in checkpoint.files:
        if name.endswith(_BLOCKS):
            plain = name.removesuffix(_BLOCKS)
            state[plain] = torch.from_numpy(_decoded(checkpoint, plain))
        elif not name.endswith(_SCALES):
            state[name] = torch.from_numpy(checkpoint.floats(name))
    return state


def load_reference_model(
    folder: str | os.PathLike[str], *, attention: str = "sdpa", experts: str = "eager"
) -> Qwen3MoeForCausalLM:
    """Return a Qwen3-MoE checkpoint as transformers' float32 model, ready to compute without gradients.

    Parameters
    ----------
    folder
        Holds `config.json` and safetensors files; experts are MXFP4 or fused floats.
    attention, experts
        transformers' names of implementations.

    Raises
    ------
    InputError
        The folder is no such checkpoint, or lacks a tensor or has one too many.
    """
    path = Path(folder) / "config.json"
    values = dict(json_object("the config", read_json(path, "model config")))
    if values.get("model_type") != "qwen3_moe":
        raise InputError(
            f"{path} is of model type {values.get('model_type')!r}; give the folder of a qwen3_moe model"
        )
    values.pop("quantization_config", None)
    config = Qwen3MoeConfig.from_dict(values | {"dtype": "float32"})
    config._attn_implementation = attention
    config._experts_implementation = experts
    with torch.random.fork_rng(devices=[]):
        model = Qwen3MoeForCausalLM(config)
    nn.Module.train(model, False)
    try:
        model.load_state_dict(reference_state(folder))
    except RuntimeError as error:
        raise InputError(f"the tensors in {folder} are not those of its config: {error}") from error
    return model.requires_grad_(False)


def _decoded(checkpoint: Checkpoint, plain: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    experts, rows, blocks, _ = checkpoint.shape(plain + _BLOCKS)
    matrices = [
        dequantise(
            Fp4Tensor(
                packed=checkpoint.bytes(plain + _BLOCKS, expert),
                scales=checkpoint.bytes(plain + _SCALES, expert),
                shape=(rows, blocks * MXFP4_BLOCK),
                format="mxfp4",
            )
        )
        for expert in range(experts)
    ]
    return np.stack(matrices)
