"""Small drafters with random weights, features and blocks, the same on every machine and version of the libraries.

Numbers come from numpy's `RandomState`, whose streams are frozen: a fixture needs to store only what came out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

HIDDEN, FEATURE_LAYERS, BLOCK = 24, (0, 2, 3), 5

BASE: dict[str, Any] = {
    "architectures": ["DFlashDraftModel"],
    "model_type": "qwen3",
    "hidden_act": "silu",
    "hidden_size": HIDDEN,
    "intermediate_size": 40,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "vocab_size": 50,
    "rms_norm_eps": 1e-6,
    "attention_bias": False,
    "max_position_embeddings": 512,
    "rope_theta": 10000.0,
    "num_target_layers": 6,
    "block_size": BLOCK,
    "layer_types": ["full_attention"] * 3,
    "dflash_config": {"mask_token_id": 49, "target_layer_ids": list(FEATURE_LAYERS)},
}

SLIDING = ["sliding_attention", "full_attention", "sliding_attention"]

CONFIGS: dict[str, dict[str, Any]] = {
    "full": BASE,
    "bias-and-yarn": BASE
    | {
        "attention_bias": True,
        "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64},
    },
    "sliding": BASE | {"layer_types": SLIDING, "use_sliding_window": True, "sliding_window": 4},
    "sliding-both-ways": BASE
    | {"layer_types": SLIDING, "use_sliding_window": True, "sliding_window": 4, "is_causal": False},
}

CALLS = (9, 3, 1, 4)
"""Tokens whose features are handed over before each block."""


def normals(seed: int, *shape: int) -> np.ndarray:
    """Return standard normal numbers in float32."""
    return np.random.RandomState(seed).standard_normal(shape).astype(np.float32)


def weights(shapes: dict[str, tuple[int, ...]], seed: int = 1) -> dict[str, np.ndarray]:
    """Return tensors by name: matrices near 1 / sqrt(columns), norms near 1."""
    made = {}
    for index, (name, shape) in enumerate(sorted(shapes.items())):
        drawn = normals(seed * 1000 + index, *shape)
        if "norm" in name:
            made[name] = 1 + drawn / 10
        else:
            made[name] = drawn / np.float32(np.sqrt(shape[-1]))
    return made


def features(num_tokens: int, seed: int = 7) -> np.ndarray:
    """Return (tokens, features)."""
    return normals(seed, num_tokens, len(FEATURE_LAYERS) * HIDDEN)


def block(call: int) -> np.ndarray:
    """Return the embedded rows of the block of a call, (rows, hidden)."""
    return normals(100 + call, BLOCK, HIDDEN)
