"""What each layer of a Hugging Face config is: the kind of its attention, and whether it has routed experts.

The rules are those of the models' own code in `transformers`: `layer_types`, or where it is absent
`full_attention_interval` (Qwen3-Next), alternation (gpt-oss), `max_window_layers` (Qwen2-MoE) and a window
for all layers (Mixtral); `first_k_dense_replace` and `moe_layer_freq` (DeepSeek), `decoder_sparse_step` and
`mlp_only_layers` (Qwen), `mlp_layer_types` (GLM). Next: `hf_config.py`.
"""

from __future__ import annotations

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.bounded import bounded_whole
from hideaway.sim.inputs.models.architecture import MAX_CONTEXT_TOKENS, MAX_LAYERS
from hideaway.sim.inputs.models.hf_keys import ConfigKeys
from hideaway.sim.number_checks import shown

_KIND_OF = {
    "full_attention": "full",
    "attention": "full",
    "sliding_attention": "sliding",
    "linear_attention": "linear",
}
NOT_MODELLED = {
    "compress_ratios": "compressed attention",
    "index_topk": "sparse attention with an indexer",
    "hybrid_override_pattern": "Mamba layers",
    "layers_block_type": "Mamba layers",
    "sparse_attention_config": "sparse attention",
    "linear_attn_config": "another linear attention",
    "hybrid_layer_pattern": "layers with other heads",
    "global_head_dim": "layers with other heads",
    "routed_expert_hidden_size": "experts of another width than the model",
    "interleave_moe_layer_step": "chunked attention",
    "kv_shared_layers": "layers that share a cache",
    "num_kv_shared_layers": "layers that share a cache",
}


def layer_kinds_of(keys: ConfigKeys, num_layers: int) -> tuple[str, ...]:
    """Return the kind of every layer.

    Raises
    ------
    InputError
        A kind of attention is not modelled, or the keys contradict each other.
    """
    for key, what in NOT_MODELLED.items():
        if keys.get(key) not in (None, 0, False):
            raise InputError(
                f"{key} means {what}, which is not modelled (full, sliding, mla and linear are); "
                "write a model file (docs/formats.md) with the nearest kinds instead"
            )
    if any(entry != 1 for entry in keys.entries("attn_type_list", num_layers) or []):
        raise InputError(
            "attn_type_list has layers of lightning attention, which is not modelled (full, "
            "sliding, mla and linear "
            "are); write a model file (docs/formats.md) with the nearest kinds instead"
        )
    kinds = _grouped_kinds(keys, num_layers)
    if keys.get("kv_lora_rank") is not None:
        return tuple("mla" if kind == "full" else kind for kind in kinds)
    return kinds


def _grouped_kinds(keys: ConfigKeys, num_layers: int) -> tuple[str, ...]:
    given = keys.entries("layer_types", num_layers)
    if given is not None:
        for entry in given:
            if not isinstance(entry, str) or entry not in _KIND_OF:
                raise InputError(f"layer_types has {shown(entry)}; known are {', '.join(_KIND_OF)}")
        return tuple(_KIND_OF[entry] for entry in given)
    interval = keys.optional_whole("full_attention_interval", maximum=MAX_LAYERS, minimum=1)
    if interval is not None and keys.get("linear_num_value_heads") is not None:
        return tuple("linear" if (index + 1) % interval else "full" for index in range(num_layers))
    if window_of(keys) is None:
        return ("full",) * num_layers
    model_type = keys.word("model_type")
    if model_type == "gpt_oss":
        return tuple("full" if index % 2 else "sliding" for index in range(num_layers))
    first = 0
    if model_type.startswith("qwen"):
        first = keys.whole("max_window_layers", maximum=MAX_LAYERS, minimum=0, default=0)
    return tuple("sliding" if index >= first else "full" for index in range(num_layers))


def window_of(keys: ConfigKeys) -> int | None:
    """Return the sliding window in tokens, or None where there is none or it is switched off."""
    if not keys.flag("use_sliding_window", default=True):
        return None
    return keys.optional_whole("sliding_window", maximum=MAX_CONTEXT_TOKENS, minimum=1)


def dense_indices_of(keys: ConfigKeys, num_layers: int) -> tuple[int, ...]:
    """Return the indices of the layers without routed experts."""
    given = keys.entries("mlp_layer_types", num_layers)
    if given is not None:
        for entry in given:
            if entry not in ("dense", "sparse"):
                raise InputError(f"mlp_layer_types has {shown(entry)}; known are dense, sparse")
        return tuple(index for index, entry in enumerate(given) if entry == "dense")
    first = keys.whole("first_k_dense_replace", maximum=MAX_LAYERS, minimum=0, default=0)
    step = keys.whole("decoder_sparse_step", maximum=MAX_LAYERS, minimum=1, default=1)
    only = _index_list(keys, "mlp_only_layers")
    frequency = _frequency(keys, num_layers)
    return tuple(
        index
        for index in range(num_layers)
        if index < first or index in only or (index + 1) % step or not frequency[index]
    )


def _frequency(keys: ConfigKeys, num_layers: int) -> list[bool]:
    """Return whether `moe_layer_freq` (a period, or a 0 or 1 a layer) gives each layer experts."""
    value = keys.get("moe_layer_freq")
    if isinstance(value, list):
        entries = keys.entries("moe_layer_freq", num_layers) or []
        return [bounded_whole("moe_layer_freq", entry, 0, 1) == 1 for entry in entries]
    period = keys.whole("moe_layer_freq", maximum=MAX_LAYERS, minimum=1, default=1)
    return [index % period == 0 for index in range(num_layers)]


def _index_list(keys: ConfigKeys, key: str) -> frozenset[int]:
    value = keys.get(key)
    if value is None:
        return frozenset()
    if not isinstance(value, list):
        raise InputError(f"{key} is {shown(value)} but must be a list of layer numbers; correct {key}")
    return frozenset(bounded_whole(key, entry, 0, MAX_LAYERS) for entry in value)
