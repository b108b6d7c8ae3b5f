"""Outputs of the drafter beside those of the public implementations, on the same random weights."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from hideaway.hw.draft.config_file import drafter_config_from_json
from hideaway.hw.draft.drafter import DFlashDrafter
from tests.hw.draft.random_drafters import BLOCK, CALLS, CONFIGS, block, features, weights

RECORDED = json.loads((Path(__file__).parent / "data" / "reference_outputs.json").read_text())


def drafter_of(name: str, dtype: torch.dtype = torch.float32) -> DFlashDrafter:
    drafter = DFlashDrafter(drafter_config_from_json(CONFIGS[name], name))
    shapes = {key: tuple(tensor.shape) for key, tensor in drafter.state_dict().items()}
    drafter.load_state_dict({key: torch.from_numpy(value) for key, value in weights(shapes).items()})
    return drafter.to(dtype)


@pytest.mark.parametrize("name", CONFIGS)
def test_drafts_equal_the_public_code_while_the_context_grows(name):
    drafter, every = drafter_of(name), torch.from_numpy(features(sum(CALLS)))
    cache, start = drafter.new_cache(), 0
    for call, count in enumerate(CALLS):
        drafter.extend([cache], [every[start : start + count]], [start])
        hidden = drafter.draft(torch.from_numpy(block(call))[None], [cache])
        expected = np.array(RECORDED[name]["hidden"][call], dtype=np.float32)[1:]
        np.testing.assert_allclose(hidden[0].numpy(), expected, atol=2e-5, rtol=0)
        start += count


@pytest.mark.parametrize("name", CONFIGS)
def test_many_blocks_at_once_equal_the_public_code(name):
    drafter, ends = drafter_of(name), np.cumsum(CALLS)
    every = torch.from_numpy(features(sum(CALLS)))
    hidden = drafter(
        torch.stack([torch.from_numpy(block(call)) for call in range(len(CALLS))])[None],
        drafter.project(every)[None],
        anchor_positions=torch.from_numpy(ends)[None],
        context_positions=torch.arange(len(every))[None],
    )
    expected = np.array(RECORDED[name]["hidden"], dtype=np.float32)
    np.testing.assert_allclose(hidden[0].detach().numpy(), expected, atol=2e-5, rtol=0)


def test_the_recorded_outputs_tell_the_configurations_apart():
    shapes = {name: np.array(RECORDED[name]["hidden"]) for name in CONFIGS}
    assert all(array.shape == (len(CALLS), BLOCK, 24) for array in shapes.values())
    names = list(shapes)
    for one in range(len(names)):
        for other in range(one):
            assert np.abs(shapes[names[one]] - shapes[names[other]]).max() > 1e-2


def test_drafts_equal_the_assistant_in_transformers():
    """`transformers` carries a DFlash drafter of its own, that of Muse Glimmer."""
    muse = pytest.importorskip("transformers.models.muse_glimmer_assistant")
    drafter = drafter_of("full")
    theirs = muse.MuseGlimmerAssistantModel(
        muse.MuseGlimmerAssistantConfig(
            hidden_size=24,
            intermediate_size=40,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=8,
            vocab_size=50,
            rms_norm_eps=1e-6,
            layer_types=["full_attention"] * 3,
            sliding_window=6,
            rope_parameters={"rope_theta": 10000.0, "rope_type": "default"},
            target_layer_ids=[0, 2, 3],
            block_size=BLOCK,
        )
    ).eval()
    renamed = {
        key.replace("fc.", "encoder.fc.").replace("hidden_norm.", "encoder.output_norm_enc."): tensor
        for key, tensor in drafter.state_dict().items()
    }
    theirs.load_state_dict(renamed, strict=True)
    rows, every = torch.from_numpy(block(0)), torch.from_numpy(features(11))
    with torch.no_grad():
        expected = theirs(noise_embeds=rows[None], context_hidden_states=every[None]).last_hidden_state
    cache = drafter.new_cache()
    drafter.extend([cache], [every], [0])
    hidden = drafter.draft(rows[None], [cache])
    torch.testing.assert_close(hidden, expected[:, 1:], atol=2e-5, rtol=0)
