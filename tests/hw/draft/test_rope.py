"""Inverse frequencies beside those of transformers, whose public checkpoints this reads."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import Qwen3Config
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.qwen3.modeling_qwen3 import Qwen3RotaryEmbedding

from hideaway.hw.draft.layers import Rotary, rotate
from hideaway.hw.draft.rope import RopeParameters, inverse_frequencies
from hideaway.sim.errors import InputError

KINDS = [
    {"rope_type": "default", "rope_theta": 1e6},
    {"rope_type": "linear", "rope_theta": 1e4, "factor": 8.0},
    {"rope_type": "yarn", "rope_theta": 1.5e5, "factor": 32.0, "original_max_position_embeddings": 4096},
    {
        "rope_type": "yarn",
        "rope_theta": 1e7,
        "factor": 4.0,
        "original_max_position_embeddings": 262144,
        "beta_fast": 24.0,
        "beta_slow": 2.0,
        "truncate": False,
        "attention_factor": 1.25,
    },
    {
        "rope_type": "llama3",
        "rope_theta": 5e5,
        "factor": 8.0,
        "original_max_position_embeddings": 8192,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
    },
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind["rope_type"])
def test_frequencies_and_angles_equal_those_of_transformers(kind):
    parameters = RopeParameters(**kind)
    factor = int(kind.get("factor", 1))
    config = Qwen3Config(
        head_dim=64,
        rope_parameters=dict(kind),
        max_position_embeddings=factor * kind.get("original_max_position_embeddings", 4096),
    )
    if kind["rope_type"] != "default":
        theirs, scale = ROPE_INIT_FUNCTIONS[kind["rope_type"]](config, torch.device("cpu"))
        np.testing.assert_allclose(inverse_frequencies(parameters, 64), theirs.numpy(), rtol=2e-6)
        assert parameters.cosine_factor == pytest.approx(scale)
    positions = torch.tensor([[0, 1, 17, 5000]])
    cosine, sine = Qwen3RotaryEmbedding(config)(torch.zeros(1), positions)
    ours = Rotary(parameters, 64).angles(positions, torch.float32)
    torch.testing.assert_close(ours[0][:, :, 0], cosine[..., :32], atol=2e-3, rtol=0)
    torch.testing.assert_close(ours[1][:, :, 0], sine[..., :32], atol=2e-3, rtol=0)


def test_scores_depend_on_distances_only():
    rotary = Rotary(RopeParameters(), 16)
    query, key = torch.randn(2, 1, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def score(at, of):
        turned = [
            rotate(x, rotary.angles(torch.tensor(p), torch.float64)) for x, p in ((query, at), (key, of))
        ]
        return (turned[0] * turned[1]).sum()

    assert score(7, 3) == pytest.approx(float(score(104, 100)), abs=1e-4)
    assert score(7, 3) != pytest.approx(float(score(7, 4)), abs=1e-3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rope_type": "dynamic"}, "rope_type is 'dynamic' but must be one of default, linear, yarn, llama3"),
        ({"rope_theta": -1.0}, "rope_theta is -1.0 but must be a positive finite number"),
        ({"factor": float("nan")}, "factor is nan"),
        ({"rope_type": "yarn", "factor": 2.0}, "original_max_position_embeddings is 0"),
        ({"high_freq_factor": 1.0}, "must be above low_freq_factor"),
    ],
)
def test_impossible_parameters_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        RopeParameters(**given)
