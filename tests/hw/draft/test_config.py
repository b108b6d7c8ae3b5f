from __future__ import annotations

import json

import pytest

from hideaway.hw.draft.config import DrafterConfig
from hideaway.hw.draft.config_file import drafter_config_from_json, read_drafter_config
from hideaway.hw.draft.rope import RopeParameters
from hideaway.sim.errors import InputError
from tests.hw.draft.random_drafters import BASE, CONFIGS, SLIDING

QWEN3_8B = {
    "architectures": ["DFlashDraftModel"],
    "auto_map": {"AutoModel": "dflash.DFlashDraftModel"},
    "attention_bias": False,
    "block_size": 16,
    "dflash_config": {"mask_token_id": 151669, "target_layer_ids": [1, 9, 17, 25, 33]},
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "max_position_embeddings": 40960,
    "max_window_layers": 5,
    "model_type": "qwen3",
    "num_attention_heads": 32,
    "num_hidden_layers": 5,
    "num_key_value_heads": 8,
    "num_target_layers": 36,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 1000000,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "use_sliding_window": False,
    "vocab_size": 151936,
}
"""The keys and values of the published z-lab/Qwen3-8B-DFlash-b16."""


def changed(**changes):
    return {key: value for key, value in (BASE | changes).items() if value is not ...}


def test_a_published_configuration_is_read():
    config = drafter_config_from_json(QWEN3_8B, "config.json")
    assert (config.block_size, config.mask_token_id, config.target_layer_ids) == (
        16,
        151669,
        (1, 9, 17, 25, 33),
    )
    assert config.feature_size == 5 * 4096
    assert config.rope == RopeParameters(rope_theta=1000000)
    assert [config.window(layer) for layer in range(5)] == [None] * 5
    assert not any(config.causal(layer) for layer in range(5))


@pytest.mark.parametrize("name", [*CONFIGS, "scaled"])
def test_a_configuration_survives_being_written_and_read(name, tmp_path):
    given = CONFIGS.get(name, BASE | {"output_multiplier": 0.2, "final_logit_softcapping": 20.0})
    config = drafter_config_from_json(given, name)
    (tmp_path / "config.json").write_text(json.dumps(config.to_json()))
    assert read_drafter_config(tmp_path) == config
    assert read_drafter_config(tmp_path / "config.json") == config


def test_sliding_layers_are_causal_unless_the_file_says_otherwise():
    sliding = changed(layer_types=SLIDING, sliding_window=4)
    config = drafter_config_from_json(sliding, "c")
    assert [config.window(layer) for layer in range(3)] == [4, None, 4]
    assert [config.causal(layer) for layer in range(3)] == [True, False, True]
    for is_causal in (True, False):
        config = drafter_config_from_json(sliding | {"is_causal": is_causal}, "c")
        assert [config.causal(layer) for layer in range(3)] == [is_causal] * 3


def test_other_trainers_exports_slide_in_every_layer_and_both_ways():
    nested = BASE["dflash_config"] | {"use_swa": True, "swa_window_size": 7}
    config = drafter_config_from_json(changed(dflash_config=nested, layer_types=...), "c")
    assert [config.window(layer) for layer in range(3)] == [7] * 3
    assert not config.causal(0)


def test_without_layer_types_layers_slide_from_max_window_layers_on():
    config = drafter_config_from_json(
        changed(layer_types=..., use_sliding_window=True, sliding_window=9, max_window_layers=1), "c"
    )
    assert [config.window(layer) for layer in range(3)] == [None, 9, 9]


def test_keys_of_dflash_config_may_stand_beside_it_and_block_size_in_it():
    nested = drafter_config_from_json(
        changed(block_size=..., dflash_config=BASE["dflash_config"] | {"block_size": 5}), "c"
    )
    beside = drafter_config_from_json(changed(dflash_config={}, **BASE["dflash_config"]), "c")
    assert nested == beside == drafter_config_from_json(BASE, "c")


def test_rope_is_read_in_its_new_and_its_old_form():
    yarn = {"factor": 4.0, "original_max_position_embeddings": 64}
    old = changed(rope_theta=5e5, rope_scaling={"type": "yarn", **yarn})
    new = changed(rope_theta=..., rope_parameters={"rope_theta": 5e5, "rope_type": "yarn", **yarn})
    expected = RopeParameters(rope_theta=5e5, rope_type="yarn", **yarn)
    assert drafter_config_from_json(old, "c").rope == drafter_config_from_json(new, "c").rope == expected
    del new["rope_parameters"]["original_max_position_embeddings"]
    assert drafter_config_from_json(new, "c").rope.original_max_position_embeddings == 512


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": ...}, "lacks the key 'hidden_size'; add it"),
        ({"head_dim": None}, "lacks the key 'head_dim'"),
        ({"block_size": ...}, "lacks the key 'block_size'"),
        ({"rope_theta": ...}, "lacks the key 'rope_theta'"),
        ({"dflash_config": {"target_layer_ids": [1]}}, "lacks the key 'mask_token_id'"),
        ({"dflash_config": {"mask_token_id": 1}}, "lacks the key 'target_layer_ids'"),
        ({"dflash_config": []}, "dflash_config in c is"),
        (
            {"dflash_config": {"mask_token_id": 50, "target_layer_ids": [1]}},
            "mask_token_id is 50 .* from 0 to 49",
        ),
        ({"dflash_config": {"mask_token_id": 1, "target_layer_ids": []}}, "target_layer_ids is empty"),
        ({"dflash_config": {"mask_token_id": 1, "target_layer_ids": [6]}}, "target_layer_ids' member is 6"),
        ({"dflash_config": {"mask_token_id": 1, "target_layer_ids": [2, 2]}}, "names a layer twice"),
        ({"hidden_size": "24"}, "hidden_size is '24' but must be a whole number"),
        ({"num_hidden_layers": 0}, "num_hidden_layers is 0"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers is 1000000000"),
        ({"num_hidden_layers": "3"}, "num_hidden_layers is '3'"),
        ({"num_key_value_heads": 3}, "must be a multiple of num_key_value_heads"),
        ({"head_dim": 7}, "head_dim is 7 but must be even"),
        ({"block_size": 1}, "block_size is 1"),
        ({"rms_norm_eps": -1}, "rms_norm_eps is -1"),
        ({"layer_types": SLIDING}, "sliding_window is missing"),
        ({"layer_types": SLIDING, "sliding_window": 0}, "sliding_window is 0"),
        ({"layer_types": SLIDING, "use_sliding_window": False}, "use_sliding_window is false"),
        ({"layer_types": ["full_attention"]}, "layer_types has 1 members but num_hidden_layers is 3"),
        ({"layer_types": ["linear_attention"] * 3}, "layer_types' member is 'linear_attention'"),
        ({"is_causal": "no"}, "is_causal is 'no'"),
        ({"architectures": ["DFlash2DraftModel"]}, "only DFlashDraftModel is supported"),
        ({"architectures": ["LlamaForCausalLM"]}, "only DFlashDraftModel is supported"),
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu', but other activations than silu"),
        ({"quantization_config": {"bits": 4}}, "quantised drafters are not supported"),
        ({"draft_vocab_size": 20}, "draft_vocab_size is 20 but must equal vocab_size"),
        ({"add_swa_attention_sink_bias": True}, "attention sinks"),
        ({"rope_scaling": {"rope_type": "longrope", "factor": 2.0}}, "rope_type is 'longrope'"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 2.0, "odd": 1}}, "unknown key 'odd'"),
        (
            {"rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 0.5}},
            "partial_rotary_factor must be 1",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_and_the_key_is_named(changes, message):
    with pytest.raises(InputError, match=message) as caught:
        drafter_config_from_json(changed(**changes), "c")
    assert "\n" not in str(caught.value)


def test_a_missing_or_damaged_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot read drafter configuration"):
        read_drafter_config(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(InputError, match="is not JSON"):
        read_drafter_config(tmp_path)
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(InputError, match="must be a JSON object"):
        read_drafter_config(tmp_path)


def test_a_configuration_can_be_made_for_training():
    config = DrafterConfig(
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        vocab_size=260,
        block_size=8,
        mask_token_id=259,
        target_layer_ids=(0, 2),
    )
    assert drafter_config_from_json(config.to_json(), "c") == config


@pytest.mark.parametrize("name", CONFIGS)
def test_what_is_written_is_a_qwen3_configuration_with_the_same_rope(name):
    from transformers import Qwen3Config

    config = drafter_config_from_json(CONFIGS[name], "c")
    theirs = Qwen3Config(**json.loads(json.dumps(config.to_json())))
    assert theirs.rope_parameters["rope_theta"] == config.rope.rope_theta
    assert theirs.rope_parameters["rope_type"] == config.rope.rope_type
    assert tuple(theirs.layer_types) == config.layer_types
    assert theirs.sliding_window == config.sliding_window
    assert theirs.dflash_config == CONFIGS[name]["dflash_config"]
