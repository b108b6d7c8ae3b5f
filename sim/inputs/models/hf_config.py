"""A Hugging Face `config.json` turned into an `Architecture`, for the mixture-of-experts models in the wild.

Keys differ between families; `hf_keys.py` finds them, `hf_layers.py` says what each layer is and
`hf_quantization.py` how each part is stored. Dense models and attention that is not modelled get a sentence.
"""

from __future__ import annotations

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.models.architecture import (
    MAX_EXPERTS,
    MAX_LAYERS,
    MAX_VOCABULARY,
    Architecture,
    DenseLayers,
    RoutedExperts,
    SharedExperts,
)
from hideaway.sim.inputs.models.attention import (
    MAX_HEADS,
    MAX_WIDTH,
    GroupedAttention,
    LatentAttention,
    LinearAttention,
)
from hideaway.sim.inputs.models.hf_keys import ConfigKeys
from hideaway.sim.inputs.models.hf_layers import dense_indices_of, layer_kinds_of, window_of
from hideaway.sim.inputs.models.hf_quantization import stored_formats_of

NUM_EXPERTS_KEYS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
TOP_K_KEYS = (
    "num_experts_per_tok",
    "experts_per_token",
    "num_experts_per_token",
    "moe_k",
    "moe_topk",
    "moe_top_k",
    "top_k_experts",
)


def architecture_from_config(
    config: object, *, name: str, source: str, quantization: object = None, expert_format: str | None = None
) -> Architecture:
    """Return the architecture that a Hugging Face config describes.

    Parameters
    ----------
    config
        The parsed `config.json`; vision models are read for their text part.
    name, source
        What to call the model where the config does not say, and where it came from.
    quantization
        The parsed `hf_quant_config.json` beside it, used where the config has no `quantization_config`.
    expert_format
        Assumed where the checkpoint's own method is unknown.

    Raises
    ------
    InputError
        A key is missing or out of range, the model is dense, or its attention is not modelled.
    """
    keys = ConfigKeys(config)
    num_experts = keys.optional_whole(*NUM_EXPERTS_KEYS, maximum=MAX_EXPERTS)
    if not num_experts:
        raise InputError(
            f"there are no routed experts ({', '.join(NUM_EXPERTS_KEYS)}): the model is dense "
            f"and has nothing to "
            "offload here; give a mixture-of-experts model"
        )
    num_layers = keys.whole("num_hidden_layers", "num_layers", maximum=MAX_LAYERS)
    hidden = keys.whole("hidden_size", maximum=MAX_WIDTH)
    kinds = layer_kinds_of(keys, num_layers)
    dense = dense_indices_of(keys, num_layers)
    if len(dense) == num_layers:
        raise InputError("every layer is dense by the config's own rules; give a mixture-of-experts model")
    moe_layers = [index for index in range(num_layers) if index not in set(dense)]
    model_type = keys.word("model_type")
    return Architecture(
        name=_hub_id(keys) or name,
        source=source,
        hidden_size=hidden,
        vocab_size=keys.whole("vocab_size", maximum=MAX_VOCABULARY),
        tied_embeddings=keys.flag("tie_word_embeddings"),
        layer_kinds=kinds,
        sliding_window_tokens=window_of(keys) if "sliding" in kinds else None,
        grouped_attention=_grouped(keys, hidden, model_type) if {"full", "sliding"} & set(kinds) else None,
        latent_attention=_latent(keys) if "mla" in kinds else None,
        linear_attention=_linear(keys) if "linear" in kinds else None,
        experts=RoutedExperts(
            count=num_experts,
            top_k=keys.whole(*TOP_K_KEYS, maximum=MAX_EXPERTS),
            intermediate_size=keys.whole("moe_intermediate_size", "intermediate_size", maximum=MAX_WIDTH),
            bias=model_type == "gpt_oss",
            router_bias=_has_router_bias(keys, model_type),
        ),
        shared_experts=_shared(keys, model_type),
        dense_layers=DenseLayers(
            dense, keys.whole("dense_intermediate_size", "intermediate_size", maximum=MAX_WIDTH)
        )
        if dense
        else None,
        stored=stored_formats_of(
            keys.get("quantization_config", "compression_config") or quantization,
            moe_layer=moe_layers[len(moe_layers) // 2],
            dense_layer=dense[0] if dense else 0,
            mostly_linear=2 * kinds.count("linear") > num_layers,
            expert_format=expert_format,
        ),
    )


def _hub_id(keys: ConfigKeys) -> str | None:
    """Return the id that some configs carry; other texts there are paths on the maker's machine."""
    text = keys.word("_name_or_path")
    owner, slash, name = text.partition("/")
    return text if slash and owner and name and "/" not in name and owner[0] not in ".~\\" else None


def _grouped(keys: ConfigKeys, hidden: int, model_type: str) -> GroupedAttention:
    heads = keys.whole("num_attention_heads", maximum=MAX_HEADS)
    head_dim = keys.optional_whole("head_dim", maximum=MAX_HEADS)
    norm = "row" if model_type == "olmoe" else "none"
    if model_type.startswith("qwen3") or keys.flag("use_qk_norm"):
        norm = "head"
    return GroupedAttention(
        num_heads=heads,
        num_kv_heads=keys.whole("num_key_value_heads", maximum=MAX_HEADS, default=heads),
        head_dim=head_dim or max(1, hidden // heads),
        bias=keys.flag("attention_bias"),
        sinks=model_type == "gpt_oss",
        output_gate=keys.flag("attn_output_gate", default=model_type == "qwen3_next"),
        qk_norm=norm,
    )


def _has_router_bias(keys: ConfigKeys, model_type: str) -> bool:
    """Return whether the router adds one number an expert (a bias, or DeepSeek-V3's balance term)."""
    if model_type == "gpt_oss" or keys.get("topk_method") == "noaux_tc":
        return True
    return keys.flag("use_routing_bias") or keys.flag("use_moe_router_bias")


def _latent(keys: ConfigKeys) -> LatentAttention:
    return LatentAttention(
        num_heads=keys.whole("num_attention_heads", maximum=MAX_HEADS),
        kv_rank=keys.whole("kv_lora_rank", maximum=MAX_WIDTH),
        nope_dim=keys.whole("qk_nope_head_dim", maximum=MAX_WIDTH),
        rope_dim=keys.whole("qk_rope_head_dim", maximum=MAX_WIDTH),
        value_dim=keys.whole("v_head_dim", maximum=MAX_WIDTH),
        query_rank=keys.optional_whole("q_lora_rank", maximum=MAX_WIDTH) or None,
    )


def _linear(keys: ConfigKeys) -> LinearAttention:
    return LinearAttention(
        num_key_heads=keys.whole("linear_num_key_heads", maximum=MAX_HEADS),
        num_value_heads=keys.whole("linear_num_value_heads", maximum=MAX_HEADS),
        key_dim=keys.whole("linear_key_head_dim", maximum=MAX_HEADS),
        value_dim=keys.whole("linear_value_head_dim", maximum=MAX_HEADS),
        conv_kernel=keys.whole("linear_conv_kernel_dim", maximum=1024),
    )


def _shared(keys: ConfigKeys, model_type: str) -> SharedExperts | None:
    width = keys.optional_whole(
        "shared_expert_intermediate_size", "shared_intermediate_size", "share_expert_dim", maximum=MAX_WIDTH
    )
    if width:
        return SharedExperts(width, gate=model_type.startswith("qwen"))
    number = keys.optional_whole(
        "n_shared_experts", "num_shared_experts", "moe_num_shared_experts", maximum=MAX_EXPERTS
    )
    if number:
        return SharedExperts(
            number * keys.whole("moe_intermediate_size", "intermediate_size", maximum=MAX_WIDTH)
        )
    return None
