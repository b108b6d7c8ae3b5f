"""What a DFlash drafter is made of, in the terms of the published `config.json`.

The layout is that of the z-lab checkpoints: a Qwen3 configuration with `block_size` and a `dflash_config` object
(`mask_token_id`, `target_layer_ids`). What each key means was read from their public code (z-lab/dflash,
dflash/model.py at 44947fb and, for sliding layers and the scales of embedding and logits, at 1012959). Reading the
file is in `config_file.py`; the module with these shapes in `drafter.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any

from hideaway.hw.draft.rope import RopeParameters
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.bounded import bounded_whole, one_of
from hideaway.sim.number_checks import shown

FULL, SLIDING = "full_attention", "sliding_attention"

_MAXIMUM = 2**24
"""More of anything than a drafter can have; keeps a damaged file from asking for petabytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrafterConfig:
    """Shapes and rules of one drafter.

    Attributes
    ----------
    hidden_size, vocab_size
        Those of the target, whose embedding and head the drafter uses.
    block_size
        Rows of a block, the anchor's included: one forward proposes block_size - 1 tokens.
    mask_token_id
        Token whose embedding stands for a row still to be drafted.
    target_layer_ids
        Target layers whose outputs are the features of a token, in the order in which they are concatenated.
    layer_types
        `full_attention` or `sliding_attention` for each layer; empty means all full.
    sliding_window
        Tokens a row of a sliding layer sees, itself included.
    is_causal
        Whether rows of a block see only earlier rows of it; None means in sliding layers only, as the published
        checkpoints without the key were trained.
    input_embedding_scale, output_multiplier, final_logit_softcapping
        Applied to the target's embedding, to the logits, and to them again as c tanh(logits / c).

    Raises
    ------
    InputError
        A value is impossible; the sentence names the key.
    """

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int
    block_size: int
    mask_token_id: int
    target_layer_ids: tuple[int, ...]
    num_target_layers: int | None = None
    rms_norm_eps: float = 1e-6
    attention_bias: bool = False
    rope: RopeParameters = field(default_factory=RopeParameters)
    layer_types: tuple[str, ...] = ()
    sliding_window: int | None = None
    is_causal: bool | None = None
    input_embedding_scale: float = 1.0
    output_multiplier: float = 1.0
    final_logit_softcapping: float | None = None

    def __post_init__(self) -> None:
        for name in (
            "hidden_size",
            "intermediate_size",
            "num_attention_heads",
            "num_key_value_heads",
            "vocab_size",
        ):
            bounded_whole(name, getattr(self, name), 1, _MAXIMUM)
        bounded_whole("num_hidden_layers", self.num_hidden_layers, 1, 1024)
        bounded_whole("head_dim", self.head_dim, 2, 4096)
        bounded_whole("block_size", self.block_size, 2, 1024)
        bounded_whole("mask_token_id", self.mask_token_id, 0, self.vocab_size - 1)
        if self.head_dim % 2:
            raise InputError(f"head_dim is {self.head_dim} but must be even; correct head_dim")
        if self.num_attention_heads % self.num_key_value_heads:
            raise InputError(
                f"num_attention_heads is {self.num_attention_heads} but must be a multiple of num_key_value_heads "
                f"({self.num_key_value_heads}); correct one of them"
            )
        for name in ("rms_norm_eps", "input_embedding_scale", "output_multiplier"):
            _positive(name, getattr(self, name))
        if self.final_logit_softcapping is not None:
            _positive("final_logit_softcapping", self.final_logit_softcapping)
        self._check_target_layers()
        if not self.layer_types:
            object.__setattr__(self, "layer_types", (FULL,) * self.num_hidden_layers)
        self._check_layer_types()

    @property
    def feature_size(self) -> int:
        """Return the width of a token's features: hidden_size for every target layer."""
        return len(self.target_layer_ids) * self.hidden_size

    def window(self, layer: int) -> int | None:
        """Return how many tokens a row of a layer sees, itself included; None means all."""
        return self.sliding_window if self.layer_types[layer] == SLIDING else None

    def causal(self, layer: int) -> bool:
        """Return whether a row of a layer sees only itself and earlier rows of its block."""
        return self.window(layer) is not None if self.is_causal is None else self.is_causal

    def to_json(self) -> dict[str, Any]:
        """Return `config.json` in the published layout; reading it gives this configuration again."""
        rope = {
            item.name: getattr(self.rope, item.name)
            for item in fields(self.rope)
            if item.name in ("rope_theta", "rope_type") or getattr(self.rope, item.name) != item.default
        }
        value: dict[str, Any] = {
            "architectures": ["DFlashDraftModel"],
            "model_type": "qwen3",
            "hidden_act": "silu",
            **{name: getattr(self, name) for name in _PLAIN},
            "dflash_config": {
                "mask_token_id": self.mask_token_id,
                "target_layer_ids": list(self.target_layer_ids),
            },
            "rope_theta": self.rope.rope_theta,
            "rope_parameters": rope,
            "layer_types": list(self.layer_types),
            "use_sliding_window": SLIDING in self.layer_types,
        }
        optional = ("num_target_layers", "sliding_window", "is_causal", "final_logit_softcapping")
        return value | {name: getattr(self, name) for name in optional if getattr(self, name) is not None}

    def _check_target_layers(self) -> None:
        if self.num_target_layers is not None:
            bounded_whole("num_target_layers", self.num_target_layers, 1, 65536)
        if not self.target_layer_ids:
            raise InputError("target_layer_ids is empty but must name at least one target layer; correct it")
        last = (self.num_target_layers or 65536) - 1
        for layer in self.target_layer_ids:
            bounded_whole("target_layer_ids' member", layer, 0, last)
        if len(set(self.target_layer_ids)) != len(self.target_layer_ids):
            raise InputError(
                f"target_layer_ids is {list(self.target_layer_ids)}, which names a layer twice; name each once"
            )

    def _check_layer_types(self) -> None:
        if len(self.layer_types) != self.num_hidden_layers:
            raise InputError(
                f"layer_types has {len(self.layer_types)} members but num_hidden_layers is {self.num_hidden_layers}; "
                "give one for each layer"
            )
        for kind in self.layer_types:
            one_of("layer_types' member", kind, (FULL, SLIDING))
        if SLIDING not in self.layer_types:
            return
        if self.sliding_window is None:
            raise InputError(
                "layer_types has sliding_attention but sliding_window is missing; give the window in tokens"
            )
        bounded_whole("sliding_window", self.sliding_window, 1, _MAXIMUM)


_PLAIN = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "vocab_size",
    "block_size",
    "rms_norm_eps",
    "attention_bias",
    "input_embedding_scale",
    "output_multiplier",
)


def _positive(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise InputError(f"{name} is {shown(value)} but must be a positive finite number; correct {name}")
