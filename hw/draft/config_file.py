"""Reads `config.json` of a drafter's checkpoint, and refuses in one sentence what it cannot do.

Keys may stand in `dflash_config` or beside it, the former first, as in the public code (z-lab/dflash at 1012959).
`use_swa` and `swa_window_size` come from other trainers' exports of the same layout and mean what vLLM makes of them
(vllm/model_executor/models/qwen3_dflash.py at 036a00d). `checkpoint.py` reads the tensors beside the file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from hideaway.hw.draft.config import FULL, SLIDING, DrafterConfig
from hideaway.hw.draft.rope import ROPE_TYPES, RopeParameters
from hideaway.sim.errors import InputError
from hideaway.sim.files import read_json
from hideaway.sim.inputs.bounded import flag, json_list, json_object
from hideaway.sim.number_checks import shown

ARCHITECTURE = "DFlashDraftModel"
CONFIG_NAME = "config.json"

_REQUIRED = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "vocab_size",
    "block_size",
    "mask_token_id",
)
_OPTIONAL = (
    "num_target_layers",
    "rms_norm_eps",
    "input_embedding_scale",
    "output_multiplier",
    "final_logit_softcapping",
)
_UNSUPPORTED: tuple[tuple[str, tuple[object, ...], str], ...] = (
    ("hidden_act", ("silu",), "other activations than silu"),
    ("fc_layernorm", (False, None), "norms of each target layer's features"),
    ("attention_sink_bias", (False, None), "attention sinks in draft layers"),
    ("add_swa_attention_sink_bias", (False, None), "attention sinks in draft layers"),
    ("use_aux_hidden_state", (True, None), "drafters without features of target layers"),
    ("is_neox_style", (True, None), "interleaved rotary channels"),
    ("rope_is_neox_style", (True, None), "interleaved rotary channels"),
    ("quantization_config", (None,), "quantised drafters"),
)


def read_drafter_config(path: str | os.PathLike[str]) -> DrafterConfig:
    """Return the configuration in a checkpoint's folder, or in a `config.json` named itself.

    Raises
    ------
    InputError
        The file is missing, is not JSON, lacks a key, or describes what is not supported; the sentence names the key.
    """
    file = Path(path) / CONFIG_NAME if os.path.isdir(path) else Path(path)
    return drafter_config_from_json(read_json(file, "drafter configuration"), str(file))


def drafter_config_from_json(value: object, name: str) -> DrafterConfig:
    """Return the configuration that a JSON object in the published layout describes.

    Parameters
    ----------
    value
        The object.
    name
        What errors call it.

    Raises
    ------
    InputError
        As `read_drafter_config`.
    """
    given = json_object(name, value)
    nested = json_object(f"dflash_config in {name}", given.get("dflash_config", {}))
    keys = {**given, **nested}
    try:
        _refuse_unsupported(given, keys)
        return _config(given, nested, keys)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def _config(given: Mapping[str, Any], nested: Mapping[str, Any], keys: Mapping[str, Any]) -> DrafterConfig:
    required = {key: _required(keys, key) for key in _REQUIRED}
    target_layer_ids = json_list("target_layer_ids", _required(keys, "target_layer_ids"))
    optional = {key: keys[key] for key in _OPTIONAL if keys.get(key) is not None}
    if optional.get("final_logit_softcapping") == 0:
        del optional["final_logit_softcapping"]
    layer_types, window, is_causal = _attention_kinds(given, nested, required["num_hidden_layers"])
    return DrafterConfig(
        **required,
        **optional,
        target_layer_ids=target_layer_ids,
        attention_bias=flag("attention_bias", keys.get("attention_bias", False)),
        rope=_rope(keys),
        layer_types=layer_types,
        sliding_window=window,
        is_causal=is_causal,
    )


def _refuse_unsupported(given: Mapping[str, Any], keys: Mapping[str, Any]) -> None:
    architectures = json_list("architectures", given.get("architectures", [ARCHITECTURE]))
    if architectures != (ARCHITECTURE,):
        raise InputError(
            f"architectures is {shown(list(architectures))} but only {ARCHITECTURE} is supported; "
            "take a DFlash checkpoint of that kind"
        )
    for key, allowed, what in _UNSUPPORTED:
        if keys.get(key, allowed[0]) not in allowed:
            raise InputError(
                f"{key} is {shown(keys[key])}, but {what} are not supported; take another drafter"
            )
    for key, same in (("draft_vocab_size", "vocab_size"), ("target_hidden_size", "hidden_size")):
        if keys.get(key) is not None and keys[key] != keys.get(same):
            raise InputError(
                f"{key} is {shown(keys[key])} but must equal {same} ({shown(keys.get(same))}), because the target's "
                "embedding and head are used; take another drafter"
            )


def _attention_kinds(
    given: Mapping[str, Any], nested: Mapping[str, Any], num_layers: object
) -> tuple[tuple[str, ...], int | None, bool | None]:
    """Return layer_types, sliding_window and is_causal."""
    is_causal = given.get("is_causal", nested.get("causal"))
    if is_causal is not None:
        flag("is_causal", is_causal)
    window = given.get("sliding_window")
    layer_types = given.get("layer_types")
    kinds = () if layer_types is None else json_list("layer_types", layer_types)
    if type(num_layers) is not int or not 1 <= num_layers <= 1024:
        return (), None, is_causal
    if flag("use_swa", nested.get("use_swa", False)) and SLIDING not in kinds:
        # All layers slide, and see both ways unless the file says otherwise.
        return (SLIDING,) * num_layers, nested.get("swa_window_size", window), bool(is_causal)
    slides = flag("use_sliding_window", given.get("use_sliding_window", SLIDING in kinds))
    if layer_types is None:
        # A Qwen3 configuration without layer_types slides from max_window_layers on (28 unless given).
        first = given.get("max_window_layers", 28)
        kinds = tuple(
            SLIDING if slides and window is not None and type(first) is int and layer >= first else FULL
            for layer in range(num_layers)
        )
    elif SLIDING in kinds and not slides:
        raise InputError(
            "layer_types has sliding_attention but use_sliding_window is false; correct one of them"
        )
    if SLIDING not in kinds:
        return kinds, None, is_causal
    return kinds, nested.get("swa_window_size", window), is_causal


def _rope(keys: Mapping[str, Any]) -> RopeParameters:
    """Return the rotary parameters from `rope_parameters`, or from the older `rope_theta` and `rope_scaling`."""
    older = {
        "rope_theta": keys.get("rope_theta"),
        **json_object("rope_scaling", keys.get("rope_scaling") or {}),
    }
    given = dict(json_object("rope_parameters", keys.get("rope_parameters") or older))
    given["rope_type"] = given.pop("rope_type", None) or given.pop("type", None) or "default"
    given.pop("type", None)
    if given.get("rope_theta") is None:
        given["rope_theta"] = _required(keys, "rope_theta")
    if given["rope_type"] not in ROPE_TYPES:
        raise InputError(
            f"rope_type is {shown(given['rope_type'])} but must be one of {', '.join(ROPE_TYPES)}; take another drafter"
        )
    if given["rope_type"] in ("yarn", "llama3"):
        given.setdefault("original_max_position_embeddings", keys.get("max_position_embeddings"))
    if given.pop("partial_rotary_factor", None) not in (None, 1, 1.0):
        raise InputError("partial_rotary_factor must be 1 in a DFlash drafter; take another drafter")
    scale, all_scale = given.pop("mscale", None), given.pop("mscale_all_dim", None)
    if scale and all_scale and scale != all_scale:
        raise InputError("mscale and mscale_all_dim differ, which is not supported; take another drafter")
    if scale and all_scale:
        given["attention_factor"] = given.get("attention_factor") or 1.0
    known = {item.name for item in fields(RopeParameters)}
    if unknown := sorted(set(given) - known):
        raise InputError(
            f"the rope parameters have the unknown key {unknown[0]!r}; allowed are {', '.join(known)}"
        )
    return RopeParameters(**{key: item for key, item in given.items() if item is not None})


def _required(keys: Mapping[str, Any], key: str) -> Any:  # noqa: ANN401
    if keys.get(key) is None:
        raise InputError(f"lacks the key {key!r}; add it, or take a checkpoint in the z-lab layout")
    return keys[key]
