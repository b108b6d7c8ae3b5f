"""Hugging Face configs in the wild: spellings of families, layer rules, storage, and what is refused."""

import pytest

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.models import load_architecture, spec_from
from hideaway.sim.inputs.models.hf_config import architecture_from_config

TINY = {
    "hidden_size": 64,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "intermediate_size": 96,
}


def read(config, **keywords):
    return architecture_from_config(config, name="tiny", source="a test", **keywords)


def tiny(**changes):
    return read({key: value for key, value in {**TINY, **changes}.items() if value is not ...})


GPT_OSS_20B = {
    "attention_bias": True, "head_dim": 64, "hidden_size": 2880, "intermediate_size": 2880,
    "layer_types": ["sliding_attention", "full_attention"] * 12, "model_type": "gpt_oss",
    "num_attention_heads": 64, "num_experts_per_tok": 4, "num_hidden_layers": 24, "num_key_value_heads": 8,
    "num_local_experts": 32, "sliding_window": 128, "tie_word_embeddings": False, "vocab_size": 201088,
    "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]},
}  # fmt: skip
DEEPSEEK_V31 = {
    "first_k_dense_replace": 3, "hidden_size": 7168, "intermediate_size": 18432, "kv_lora_rank": 512,
    "model_type": "deepseek_v3", "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_routed_experts": 256,
    "n_shared_experts": 1, "num_attention_heads": 128, "num_experts_per_tok": 8, "num_hidden_layers": 61,
    "num_key_value_heads": 128, "num_nextn_predict_layers": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "tie_word_embeddings": False, "topk_method": "noaux_tc", "v_head_dim": 128,
    "vocab_size": 129280,
}  # fmt: skip
DEEPSEEK_V31_QUANTIZATION = {
    "producer": {"name": "modelopt"},
    "quantization": {
        "quant_algo": "NVFP4",
        "group_size": 16,
        "exclude_modules": ["lm_head", "model.layers.61*"]
        + [
            f"model.layers.{layer}.self_attn.{module}"
            for layer in range(61)
            for module in ("kv_a_proj_with_mqa", "kv_b_proj", "q_a_proj", "q_b_proj")
        ],
    },
}


@pytest.mark.parametrize(
    ("config", "quantization", "name"),
    [(GPT_OSS_20B, None, "gpt-oss-20b"), (DEEPSEEK_V31, DEEPSEEK_V31_QUANTIZATION, "DeepSeek-V3.1")],
)
def test_a_checkpoints_own_config_gives_the_shipped_model(config, quantization, name):
    made, shipped = read(config, quantization=quantization), load_architecture(name)
    assert made.stored == shipped.stored
    fields = set(type(shipped).__dataclass_fields__) - {"name", "source", "aliases", "fp4_release"}
    assert {key: getattr(made, key) for key in fields} == {key: getattr(shipped, key) for key in fields}


def test_the_text_part_of_a_vision_model_is_read():
    nested = read({"model_type": "vision", "text_config": TINY, "vision_config": {"hidden_size": 9999}})
    assert spec_from(nested) == spec_from(tiny())


@pytest.mark.parametrize("key", ["num_local_experts", "n_routed_experts", "moe_num_experts"])
def test_the_number_of_experts_goes_by_several_names(key):
    assert tiny(num_experts=..., **{key: 16}).experts.count == 16


def test_experts_take_the_only_width_there_is():
    assert tiny(moe_intermediate_size=...).experts.intermediate_size == 96


@pytest.mark.parametrize("missing", ["num_experts", "num_experts_per_tok", "hidden_size", "vocab_size"])
def test_a_missing_key_is_named(missing):
    with pytest.raises(InputError, match=missing):
        tiny(**{missing: ...})


@pytest.mark.parametrize("change", [{"num_experts": ...}, {"num_experts": 0}, {"num_experts": None}])
def test_a_dense_model_gets_a_sentence(change):
    with pytest.raises(InputError, match=r"the model is dense|num_experts is 0"):
        tiny(**change)


def test_head_dim_and_kv_heads_have_the_usual_defaults():
    attention = tiny(num_key_value_heads=...).grouped_attention
    assert (attention.head_dim, attention.num_kv_heads) == (16, 4)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ()),
        ({"first_k_dense_replace": 2}, (0, 1)),
        ({"first_k_dense_replace": 1, "moe_layer_freq": 2}, (0, 1, 3, 5)),
        ({"moe_layer_freq": [0, 1, 1, 0, 1, 1]}, (0, 3)),
        ({"decoder_sparse_step": 2}, (0, 2, 4)),
        ({"decoder_sparse_step": 3, "mlp_only_layers": [2]}, (0, 1, 2, 3, 4)),
        ({"mlp_layer_types": ["dense"] + ["sparse"] * 5}, (0,)),
    ],
)
def test_layers_without_experts_follow_the_rules_of_each_family(changes, expected):
    assert tiny(**changes).dense_indices == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ["full"] * 6),
        (
            {"layer_types": ["sliding_attention", "full_attention"] * 3, "sliding_window": 8},
            ["sliding", "full"] * 3,
        ),
        ({"model_type": "gpt_oss", "sliding_window": 8}, ["sliding", "full"] * 3),
        ({"model_type": "mixtral", "sliding_window": 8}, ["sliding"] * 6),
        ({"sliding_window": 8, "use_sliding_window": False}, ["full"] * 6),
        (
            {
                "model_type": "qwen2_moe",
                "sliding_window": 8,
                "use_sliding_window": True,
                "max_window_layers": 4,
            },
            ["full"] * 4 + ["sliding"] * 2,
        ),
    ],
)
def test_kinds_of_layers_follow_the_rules_of_each_family(changes, expected):
    assert tiny(**changes).layer_kinds == tuple(expected)


def test_qwen3_next_alternates_by_its_interval():
    linear = {"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8}
    linear |= {"linear_value_head_dim": 8, "linear_conv_kernel_dim": 4}
    made = tiny(
        model_type="qwen3_next", full_attention_interval=3, shared_expert_intermediate_size=16, **linear
    )
    assert made.layer_kinds == ("linear", "linear", "full") * 2
    assert made.grouped_attention.output_gate
    assert made.shared_experts.gate


def test_shared_experts_are_counted_by_number_or_by_width():
    assert tiny(n_shared_experts=2).shared_experts.intermediate_size == 64
    assert tiny(shared_expert_intermediate_size=40).shared_experts.intermediate_size == 40
    assert tiny(shared_expert_intermediate_size=0).shared_experts is None


@pytest.mark.parametrize(
    ("quantization", "expected"),
    [
        ({"quant_method": "mxfp4"}, "mxfp4/bf16/bf16"),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8/fp8/fp8"),
        ({"quant_method": "fp8", "modules_to_not_convert": ["self_attn"]}, "fp8/bf16/fp8"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]}, "nvfp4/nvfp4/nvfp4"),
        (
            {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["*.shared_expert*"]},
            "nvfp4/nvfp4/bf16",
        ),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8/fp8/fp8"),
        (
            {
                "quant_method": "modelopt",
                "quant_algo": "MIXED_PRECISION",
                "quantized_layers": {
                    "model.layers.3.mlp.experts": {"quant_algo": "W4A16_NVFP4"},
                    "model.layers.3.self_attn.q_proj": {"quant_algo": "FP8"},
                },
            },
            "nvfp4/fp8/bf16",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "float", "group_size": 16}}},
                "ignore": ["re:.*self_attn.*"],
            },
            "nvfp4/bf16/nvfp4",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "float", "group_size": 32}}},
            },
            "mxfp4/mxfp4/mxfp4",
        ),
        (
            {
                "quant_method": "quark",
                "global_quant_config": {"weight": {"dtype": "fp4"}},
                "exclude": ["*self_attn*"],
            },
            "mxfp4/bf16/mxfp4",
        ),
        ({"quant_method": "fp8", "moe_quant_algo": "NVFP4", "ignore": ["*self_attn*"]}, "nvfp4/bf16/nvfp4"),
    ],
)
def test_storage_is_read_from_the_quantization_of_each_tool(quantization, expected):
    stored = tiny(n_shared_experts=1, quantization_config=quantization).stored
    assert f"{stored.experts}/{stored.attention_input}/{stored.shared_experts}" == expected
    assert stored.head == "bf16"


def test_fp8_blocks_are_taken_from_the_config():
    stored = tiny(quantization_config={"quant_method": "fp8", "weight_block_size": [128, 64]}).stored
    assert stored.fp8_block == (128, 64)


@pytest.mark.parametrize("method", ["gptq", "awq", "bitsandbytes", None, 7])
def test_an_unknown_method_asks_for_the_expert_format(method):
    config = {**TINY, "quantization_config": {"quant_method": method, "bits": 4}}
    with pytest.raises(InputError, match="choose the format to assume with --expert-format"):
        read(config)
    assert read(config, expert_format="mxfp4").stored.experts == "mxfp4"


@pytest.mark.parametrize(
    "key",
    ["compress_ratios", "index_topk", "hybrid_override_pattern", "linear_attn_config", "global_head_dim"],
)
def test_attention_that_is_not_modelled_is_refused_and_not_guessed(key):
    with pytest.raises(InputError, match=f"{key} means .* not modelled"):
        tiny(**{key: [4, 128]})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": "2048"}, "hidden_size is '2048' but must be a whole number"),
        ({"hidden_size": True}, "hidden_size is True"),
        (
            {"num_hidden_layers": 10**9},
            "num_hidden_layers is 1000000000 but must be a whole number from 1 to 4096",
        ),
        ({"layer_types": ["full_attention"]}, "list of 6 entries"),
        ({"layer_types": ["mamba"] * 6}, "layer_types has 'mamba'"),
        ({"first_k_dense_replace": 6}, "every layer is dense"),
        ({"mlp_only_layers": {"0": 1}}, "mlp_only_layers is"),
        ({"num_experts_per_tok": 9}, "top_k is 9"),
        ({"quantization_config": [1]}, "quantization_config is"),
        (
            {"quantization_config": {"quant_method": "fp8", "weight_block_size": [0, 1]}},
            "weight_block_size is 0",
        ),
        (
            {"quantization_config": {"quant_method": "fp8", "ignore": ["re:("]}},
            "the excluded module 're:\\(' is not a pattern",
        ),
        ({"text_config": 3}, "text_config is 3 but must be a JSON object"),
        ({"kv_lora_rank": 4}, "there is no qk_nope_head_dim"),
    ],
)
def test_a_wrong_config_gives_a_sentence(changes, message):
    with pytest.raises(InputError, match=message):
        tiny(**changes)
