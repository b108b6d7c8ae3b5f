"""Random checkpoints of every family, as small as they can be, in the formats in which real ones are published."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.torch import save_file

from hideaway.hw.fp4.expert_weights import unpack_expert
from hideaway.hw.fp4.mxfp4 import quantise_mxfp4
from hideaway.hw.store.hf_experts import CheckpointExperts
from hideaway.hw.store.pack import pack_experts
from hideaway.hw.store.reader import ExpertStore

VOCABULARY, HIDDEN, INNER, EXPERTS, TOP_K, LAYERS = 96, 64, 32, 8, 2, 3
COMMON = {
    "vocab_size": VOCABULARY,
    "hidden_size": HIDDEN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "num_experts_per_tok": TOP_K,
    "max_position_embeddings": 512,
    "pad_token_id": None,
    "bos_token_id": None,
    "eos_token_id": None,
    "tie_word_embeddings": False,
}
FAMILIES = {
    "gpt_oss": {
        "num_local_experts": EXPERTS,
        "intermediate_size": INNER,
        "sliding_window": 5,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        "rope_parameters": {
            "rope_type": "yarn", "rope_theta": 150000.0, "factor": 8.0, "beta_fast": 32.0, "beta_slow": 1.0,
            "original_max_position_embeddings": 64, "truncate": False,
        },
    },
    "qwen3_moe": {
        "num_experts": EXPERTS, "moe_intermediate_size": INNER, "intermediate_size": 96, "norm_topk_prob": True,
        "mlp_only_layers": [1],
    },
    "olmoe": {"num_experts": EXPERTS, "intermediate_size": INNER, "norm_topk_prob": False},
    "mixtral": {"num_local_experts": EXPERTS, "intermediate_size": INNER, "sliding_window": 6},
}  # fmt: skip


def random_model(family: str, seed: int = 0, **changes):
    """Return transformers' model of a family, its weights rounded to bfloat16 and spread so that routing varies."""
    config = transformers.AutoConfig.for_model(family, **{**COMMON, **FAMILIES[family], **changes})
    config._attn_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config)
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        wide = (
            0.5
            if "embed" in name or "gate.weight" in name or "router" in name
            else 1.5 / parameter.shape[-1] ** 0.5
        )
        drawn = torch.randn(parameter.shape, generator=generator) * wide
        parameter.data = (1 + 0.1 * drawn if "norm" in name else drawn).to(torch.bfloat16).float()
    return model.eval().requires_grad_(False)


def save_checkpoint(folder: Path, model, shards: str = "5GB") -> Path:
    """Write a model as its family is published: gpt-oss with MXFP4 experts, the others in bfloat16."""
    half = type(model)(model.config).to(torch.bfloat16)
    half.load_state_dict(model.state_dict())
    half.save_pretrained(folder, max_shard_size=shards)
    if model.config.model_type == "gpt_oss":
        tensors = {name: tensor for name, tensor in half.state_dict().items() if ".experts." not in name}
        tensors |= _stored_experts(model)
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        config = json.loads((folder / "config.json").read_text())
        config["quantization_config"] = {
            "quant_method": "mxfp4",
            "modules_to_not_convert": ["model.layers.*.self_attn"],
        }
        (folder / "config.json").write_text(json.dumps(config))
    return folder


def packed(folder: Path, path: Path) -> ExpertStore:
    return pack_experts(CheckpointExperts(folder), path, workers=1)


def with_stored_experts(model, store: ExpertStore):
    """Return a plain model whose experts are the dequantised ones of a store: what the target is held against."""
    model.load_state_dict(model.state_dict())
    blocks = [layer.mlp for layer in model.model.layers if hasattr(layer.mlp, "experts")]
    for number, block in enumerate(blocks):
        for expert in range(store.description.num_experts):
            weights = unpack_expert(store.description.layout, store.read(number, expert))
            gate, up, down = (torch.from_numpy(part) for part in (weights.gate, weights.up, weights.down))
            if model.config.model_type == "gpt_oss":
                block.experts.gate_up_proj.data[expert] = torch.stack([gate, up], dim=1).flatten(0, 1).T
                block.experts.down_proj.data[expert] = down.T
            else:
                block.experts.gate_up_proj.data[expert] = torch.cat([gate, up])
                block.experts.down_proj.data[expert] = down
    return model


def checkpoint_of(family: str, folder: Path, **changes):
    """Return (folder, store, plain model with the store's experts) of a random checkpoint."""
    model = random_model(family, **changes)
    save_checkpoint(folder / "model", model)
    store = packed(folder / "model", folder / "store")
    return folder / "model", store, with_stored_experts(model, store)


def _stored_experts(model) -> dict[str, torch.Tensor]:
    tensors = {}
    for index, layer in enumerate(model.model.layers):
        for name in ("gate_up_proj", "down_proj"):
            stem = f"model.layers.{index}.mlp.experts.{name}"
            whole = getattr(layer.mlp.experts, name)
            fp4 = [quantise_mxfp4(np.ascontiguousarray(matrix.T.numpy())) for matrix in whole]
            tensors[f"{stem}_blocks"] = torch.from_numpy(np.stack([one.packed for one in fp4]))
            tensors[f"{stem}_scales"] = torch.from_numpy(np.stack([one.scales for one in fp4]))
            tensors[f"{stem}_bias"] = getattr(layer.mlp.experts, f"{name}_bias").to(torch.bfloat16)
    return tensors
