"""Finding a model by name, alias, model file, config.json or folder, and the sentences where there is none."""

import json

import pytest

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.models import builtin_model_names, load_architecture, load_model, save_architecture


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpt-oss-20b", "openai/gpt-oss-20b"),
        ("OpenAI/GPT-OSS-20B", "openai/gpt-oss-20b"),
        (" gpt-oss-120b ", "openai/gpt-oss-120b"),
        ("qwen3-coder-30b-a3b", "Qwen/Qwen3-Coder-30B-A3B-Instruct"),
        ("Qwen/Qwen3-Coder-30B-A3B", "Qwen/Qwen3-Coder-30B-A3B-Instruct"),
        ("mixtral-8x7b", "mistralai/Mixtral-8x7B-v0.1"),
        ("olmoe-1b-7b", "allenai/OLMoE-1B-7B-0924"),
        ("deepseek-v2-lite", "deepseek-ai/DeepSeek-V2-Lite"),
        ("deepseek-ai/DeepSeek-R1", "deepseek-ai/DeepSeek-V3.1"),
    ],
)
def test_names_and_aliases_are_found_in_any_case(name, expected):
    assert load_model(name).name == expected


def test_no_two_models_share_a_name():
    names = [
        name.lower()
        for model in map(load_architecture, builtin_model_names())
        for name in {model.name.lower(), *(alias.lower() for alias in model.aliases)}
    ]
    assert len(names) == len(set(names))


def test_an_unknown_name_is_answered_with_the_nearest_one():
    with pytest.raises(InputError, match=r"no model or file 'gpt-oss-20'; did you mean .*gpt-oss-20b"):
        load_model("gpt-oss-20")


@pytest.mark.parametrize("name", builtin_model_names())
def test_a_saved_model_loads_as_the_same_model(tmp_path, name):
    path = tmp_path / "model.json"
    save_architecture(path, load_architecture(name))
    assert load_architecture(str(path)) == load_architecture(name)
    assert load_model(str(path)) == load_model(name)


def test_a_folder_is_read_by_its_config_and_named_after_it(tmp_path):
    config = {
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_experts": 8,
        "vocab_size": 100,
    }
    config |= {"num_experts_per_tok": 2, "moe_intermediate_size": 32}
    folder = tmp_path / "tiny-moe"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    assert load_model(str(folder)) == load_model(str(folder / "config.json"))
    model = load_model(str(folder))
    assert (model.name, model.expert_format, model.num_experts) == ("tiny-moe", "bf16", 8)
    (folder / "hf_quant_config.json").write_text(
        json.dumps(
            {
                "quantization": {
                    "quant_algo": "NVFP4",
                    "exclude_modules": ["lm_head", "model.layers.*.self_attn*"],
                }
            }
        )
    )
    assert load_model(str(folder)).expert_format == "nvfp4"
    assert load_architecture(str(folder)).stored.attention_input == "bf16"


def test_a_folder_without_a_config_gives_a_sentence(tmp_path):
    with pytest.raises(InputError, match=r"cannot read model file .*config\.json"):
        load_model(str(tmp_path))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "hideaway-profile"}, "not say that it is a hideaway-model file"),
        ({"version": 2}, "version is 2 but must be 1"),
        ({"layer_count": 3}, "has the unknown key 'layer_count'"),
        ({"hidden_size": None}, "hidden_size is None but must be of type integer"),
        ({"hidden_size": 0}, "hidden_size is 0 but must obey minimum 1"),
        ({"layer_kinds": ["full", "mamba"]}, r"layer_kinds\[1\] is 'mamba' but must be one of full, sliding"),
        ({"layer_kinds": ["linear"] * 16}, "has a linear layer but linear_attention is missing"),
        ({"layer_kinds": ["sliding"] * 16}, "sliding_window_tokens is missing"),
        ({"sliding_window_tokens": 7}, "no layer is sliding"),
        (
            {"dense_layers": {"indices": [16], "intermediate_size": 5}},
            "names layer 16 but there are 16 layers",
        ),
        ({"dense_layers": {"indices": list(range(16)), "intermediate_size": 5}}, "every layer is dense"),
        ({"dense_layers": {"indices": [3, 1], "intermediate_size": 5}}, "must rise without repeats"),
        ({"stored": {"experts": "int4"}}, r"stored\.experts is 'int4' but must be one of"),
        (
            {"experts": {"count": 4, "top_k": 5, "intermediate_size": 5}},
            "top_k is 5 but must be a whole number from 1 to 4",
        ),
        ({"name": ""}, "name is '' but must obey minLength"),
    ],
)
def test_a_wrong_model_file_gives_a_sentence_that_names_the_place(tmp_path, change, message):
    path = tmp_path / "model.json"
    save_architecture(path, load_architecture("OLMoE-1B-7B"))
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(InputError, match=message) as caught:
        load_model(str(path))
    assert "model.json" in str(caught.value)


def test_a_missing_key_is_named(tmp_path):
    path = tmp_path / "model.json"
    save_architecture(path, load_architecture("OLMoE-1B-7B"))
    value = json.loads(path.read_text())
    del value["experts"]["top_k"]
    path.write_text(json.dumps(value))
    with pytest.raises(InputError, match="experts lacks the key 'top_k'; add it"):
        load_model(str(path))
