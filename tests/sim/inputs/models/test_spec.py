"""Bytes and operations of a model by the parts they come from, and its cache by kind of layer."""

import dataclasses
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.models import load_architecture, load_model, spec_from
from hideaway.sim.inputs.models.weight_formats import matrix_bytes

BF16 = 2


def test_full_attention_keeps_keys_and_values_of_every_token():
    model = load_model("Mixtral-8x7B")
    assert model.kv_bytes(1000) == 1000 * 32 * 2 * 8 * 128 * BF16
    assert model.kv_read_bytes_per_row(1000) == model.kv_bytes(1000)


def test_sliding_layers_stop_growing_at_the_window():
    model = load_model("gpt-oss-20b")
    layer_token = 2 * 8 * 64 * BF16
    assert model.kv_bytes(128) == 24 * layer_token * 128
    assert model.kv_bytes(1128) == 12 * layer_token * 1128 + 12 * layer_token * 128


def test_latent_attention_keeps_the_latent_and_the_rotary_key_only():
    assert load_model("DeepSeek-V2-Lite").kv_bytes(10) == 10 * 27 * (512 + 64) * BF16


def test_linear_layers_keep_a_state_that_does_not_grow():
    model = load_model("Qwen3.5-35B-A3B")
    state = 32 * 128 * 128 * 4 + 3 * (2 * 16 * 128 + 32 * 128) * BF16
    assert model.kv_bytes(0) == 30 * state
    assert model.kv_bytes(7) == 30 * state + 7 * 10 * 2 * 2 * 256 * BF16


@given(
    st.integers(0, 10**7),
    st.integers(0, 10**6),
    st.sampled_from(["gpt-oss-20b", "Qwen3.5-35B-A3B", "DeepSeek-V3.1"]),
)
def test_more_context_never_needs_less_cache(context, more, name):
    model = load_model(name)
    assert model.kv_bytes(context) <= model.kv_bytes(context + more)


def test_a_negative_context_is_refused():
    with pytest.raises(InputError, match="context_tokens is -1"):
        load_model("gpt-oss-20b").kv_bytes(-1)


def test_dense_bytes_are_embedding_head_norm_and_layers():
    model = load_model("gpt-oss-20b")
    attention = (4096 + 512 + 512) * 2880 + 2880 * 4096
    vectors = (4096 + 512 + 512 + 2880) + 64 + 2 * 2880 + 32
    router = 32 * 2880
    layer = (attention + vectors + router) * BF16
    assert model.dense_bytes_per_layer == layer
    assert model.router_bytes_per_layer == router * BF16
    assert model.dense_flops_per_row == 2 * (attention + router)
    assert model.head_bytes == 201088 * 2880 * BF16
    assert model.dense_bytes == 24 * layer + 2 * model.head_bytes + 2880 * BF16
    assert model.extra_dense_layer_bytes == 0
    assert model.expert_flops_per_row == 2 * 3 * 2880 * 2880


def test_shared_experts_and_dense_layers_are_always_on_the_device():
    model = load_model("DeepSeek-V2-Lite")
    attention = 3072 * 2048 + 576 * 2048 + 4096 * 512 + 2048 * 2048
    vectors = 512 + 2 * 2048
    shared = 3 * 2048 * 2816
    moe_layer = (attention + vectors + shared + 64 * 2048) * BF16
    dense_layer = (attention + vectors + 3 * 2048 * 10944) * BF16
    assert model.dense_bytes_per_layer == moe_layer
    assert model.extra_dense_layer_bytes == dense_layer
    assert model.dense_bytes == 26 * moe_layer + dense_layer + (2 * 102400 * 2048 + 2048) * BF16


def test_a_mean_over_layers_of_two_kinds_lies_between_them():
    architecture = load_architecture("Qwen3.5-35B-A3B")
    full = spec_from(dataclasses.replace(architecture, layer_kinds=("full",) * 40))
    linear = spec_from(dataclasses.replace(architecture, layer_kinds=("linear",) * 40))
    mixed = spec_from(architecture)
    assert mixed.dense_bytes_per_layer == round(
        (10 * full.dense_bytes_per_layer + 30 * linear.dense_bytes_per_layer) / 40
    )


def test_attention_work_counts_only_layers_that_grow_with_the_context():
    assert load_model("Mixtral-8x7B").attention_flops_per_row_per_context_token == 4 * 32 * 128
    assert load_model("gpt-oss-20b").attention_flops_per_row_per_context_token == 4 * 64 * 64 / 2
    assert load_model("Qwen3.5-35B-A3B").attention_flops_per_row_per_context_token == 4 * 16 * 256 / 4
    assert load_model("DeepSeek-V2-Lite").attention_flops_per_row_per_context_token == 2 * 16 * (2 * 512 + 64)


def test_tied_embeddings_are_stored_once_and_still_read_as_the_head():
    architecture = load_architecture("Mixtral-8x7B")
    untied, tied = spec_from(architecture), spec_from(dataclasses.replace(architecture, tied_embeddings=True))
    assert untied.dense_bytes - tied.dense_bytes == tied.head_bytes == 32000 * 4096 * BF16


@pytest.mark.parametrize(
    ("matrix", "weight_format", "block", "expected"),
    [
        ((3, 32), "mxfp4", None, 3 * 17),
        ((3, 33), "mxfp4", None, 3 * 2 * 17),
        ((3, 16), "nvfp4", None, 3 * 9 + 4),
        ((3, 17), "nvfp4", None, 3 * 2 * 9 + 4),
        ((256, 129), "fp8", (128, 128), 256 * 129 + 2 * 2 * 4),
        ((256, 129), "fp8", None, 256 * 129 + 4),
        ((3, 5), "bf16", None, 30),
    ],
)
def test_bytes_of_a_matrix_follow_the_rule_of_its_format(matrix, weight_format, block, expected):
    assert matrix_bytes(matrix, weight_format, block) == expected


def test_an_unknown_weight_format_is_refused():
    with pytest.raises(InputError, match="int4"):
        matrix_bytes((1, 1), "int4")
    with pytest.raises(InputError, match="must be one of mxfp4, nvfp4, fp8, bf16"):
        load_model("gpt-oss-20b", expert_format="int4")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"expert_format": "int4"}, "expert_format is 'int4'"),
        ({"num_layers": 23}, "24 layer kinds for 23 MoE and 0 dense layers"),
        ({"top_k": 33}, "33 a token"),
    ],
)
def test_a_spec_that_contradicts_itself_is_refused(change, message):
    with pytest.raises(InputError, match=message):
        dataclasses.replace(load_model("gpt-oss-20b"), **change)


def test_a_model_can_be_sent_to_another_process():
    model = load_model("gpt-oss-20b")
    assert pickle.loads(pickle.dumps(model)) == model
