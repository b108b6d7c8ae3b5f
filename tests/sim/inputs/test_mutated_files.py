"""Model and profile files spoilt at random places give one sentence or a sound value, nothing else."""

import copy
import json
import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hideaway.main import main
from hideaway.sim.errors import InputError
from hideaway.sim.inputs import models, profiles

DATA = Path(models.__file__).parent.parent / "data"
MODEL_FILES = [json.loads(path.read_text()) for path in sorted((DATA / "models").glob("*.json"))]
PROFILE_FILES = [json.loads(path.read_text()) for path in sorted((DATA / "profiles").glob("*.json"))]
HF_CONFIGS = [
    {
        "model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 4,
        "layer_types": ["sliding_attention", "full_attention"] * 2, "sliding_window": 128,
        "head_dim": 64, "num_attention_heads": 64, "num_key_value_heads": 8, "num_local_experts": 32,
        "num_experts_per_tok": 4, "attention_bias": True, "vocab_size": 201088, "tie_word_embeddings": False,
        "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]},
    },
    {
        "model_type": "qwen3_5_moe", "vision_config": {"depth": 27},
        "text_config": {
            "model_type": "qwen3_5_moe_text", "hidden_size": 2048, "num_hidden_layers": 4, "vocab_size": 248320,
            "full_attention_interval": 4, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
            "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_value_head_dim": 128,
            "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256, "attn_output_gate": True,
            "num_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 512,
            "shared_expert_intermediate_size": 512, "mlp_only_layers": [],
        },
        "quantization_config": {
            "quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "ignore": ["mtp*", "re:.*visual.*"],
            "quantized_layers": {"model.language_model.layers.0.mlp.experts": {"quant_algo": "W4A16_NVFP4"}},
        },
    },
    {
        "model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432, "num_hidden_layers": 5,
        "moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8,
        "first_k_dense_replace": 3, "moe_layer_freq": 1, "topk_method": "noaux_tc", "vocab_size": 129280,
        "num_attention_heads": 128, "num_key_value_heads": 128, "kv_lora_rank": 512, "q_lora_rank": 1536,
        "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
        "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]},
    },
    {
        "model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 4, "moe_intermediate_size": 768,
        "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128,
        "num_experts_per_tok": 8, "decoder_sparse_step": 2, "intermediate_size": 6144, "vocab_size": 151936,
        "use_sliding_window": True, "sliding_window": 4096, "max_window_layers": 2,
        "quantization_config": {
            "quant_method": "compressed-tensors", "ignore": ["lm_head", "re:.*gate$"],
            "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "float", "group_size": 16}}},
        },
    },
]  # fmt: skip

GARBAGE = (
    None, True, False, 0, -1, 1, 2, 3.5, -0.0, 1e308, math.inf, -math.inf, math.nan, 10**30, -(10**30), 10**400,
    "", "x", "7", "full", "bf16", "\x00", "é\n", "\ud800", "re:(", "*", "a" * 5000, [], [[]], [None],
    ["full"], [1, 2, 3], {}, {"value": 1}, {"": {}}, {"format": "hideaway-model"}, [{"a": [{"b": [1]}]}],
)  # fmt: skip


def places(value, path=()):
    """Return every path inside a JSON value, the value itself first."""
    found = [path]
    if isinstance(value, dict):
        for key, item in value.items():
            found += places(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += places(item, (*path, index))
    return found


@st.composite
def mutated(draw, originals):
    """Return one of `originals` with one to three spoilt places."""
    value = {"root": copy.deepcopy(draw(st.sampled_from(originals)))}
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(value)[1:]))
        parent = value
        for step in path[:-1]:
            parent = parent[step]
        last = path[-1]
        how = draw(st.sampled_from(("replace", "replace", "delete", "rename", "repeat")))
        if how == "delete" and len(path) > 1:
            del parent[last]
        elif how == "rename" and isinstance(parent, dict) and len(path) > 1:
            parent[str(last) + draw(st.sampled_from(("s", " ", "_", "\u00e9")))] = parent.pop(last)
        elif how == "repeat" and isinstance(parent[last], list) and len(path) > 1:
            parent[last] = parent[last] * draw(st.integers(0, 3))
        else:
            parent[last] = copy.deepcopy(draw(st.sampled_from(GARBAGE)))
        if not places(value)[1:]:
            break
    return value["root"]


class JsonFile:
    """A temporary JSON file, with NaN and infinity written as Python's reader takes them."""

    def __init__(self, value, name="value.json"):
        self._folder = tempfile.TemporaryDirectory()
        self.path = Path(self._folder.name) / name
        self.path.write_text(json.dumps(value), encoding="utf-8")

    def __enter__(self):
        return str(self.path)

    def __exit__(self, *_):
        self._folder.cleanup()


FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def loads_or_one_sentence(load, value, name="value.json"):
    with JsonFile(value, name) as path:
        try:
            return load(path)
        except InputError:
            return None


@given(mutated(MODEL_FILES))
@FUZZ
def test_a_spoilt_model_file_gives_a_sentence_or_a_sound_model(value):
    spec = loads_or_one_sentence(models.load_model, value)
    if spec is not None:
        assert spec.total_expert_bytes == spec.num_layers * spec.num_experts * spec.expert_bytes > 0
        assert spec.kv_bytes(0) <= spec.kv_bytes(1000)


@given(mutated(HF_CONFIGS))
@FUZZ
def test_a_spoilt_hugging_face_config_gives_a_sentence_or_a_sound_model(value):
    spec = loads_or_one_sentence(models.load_model, value, "config.json")
    if spec is not None:
        assert spec.dense_bytes > 0
        assert len(spec.layer_kinds) == spec.num_layers + spec.num_dense_layers


@given(mutated(PROFILE_FILES))
@FUZZ
def test_a_spoilt_profile_gives_a_sentence_or_a_sound_profile(value):
    profile = loads_or_one_sentence(profiles.load_profile, value)
    if profile is not None:
        assert all(math.isfinite(profile.value(name)) for name in profiles.PARAMETERS)


@given(st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_commands_answer_spoilt_files_with_one_line_and_code_2(capsys, data):
    command, originals = data.draw(
        st.sampled_from([(["models"], MODEL_FILES + HF_CONFIGS), (["profile", "show"], PROFILE_FILES)])
    )
    with JsonFile(data.draw(mutated(originals))) as path:
        code = main([*command, path])
    captured = capsys.readouterr()
    assert code in (0, 2)
    if code == 2:
        assert captured.err.count("\n") == 1
        assert captured.err.startswith("hideaway: ")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "3",
        '"x"',
        "9" * 5000,
        '{"format": ' + "9" * 5000 + "}",
        "[" * 100_000,
        "\ufeff{}",
        "{}",
    ],
    ids=range(11),
)
@pytest.mark.parametrize("load", [models.load_model, profiles.load_profile])
def test_what_is_not_a_json_object_gives_a_sentence(tmp_path, text, load):
    path = tmp_path / "value.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"value\.json"):
        load(str(path))


@pytest.mark.parametrize("name", ["", " ", "\0", "a" * 10_000, "gpt-oss-20", "/", "~", "é\n"])
@pytest.mark.parametrize("load", [models.load_model, profiles.load_profile])
def test_a_name_that_is_no_name_and_no_file_gives_a_sentence(name, load):
    with pytest.raises(InputError, match=r"there is no|cannot read|is not"):
        load(name)
