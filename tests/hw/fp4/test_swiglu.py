"""The numpy reference of both SwiGLU experts against the public implementations in transformers."""

from __future__ import annotations

import numpy as np
import pytest

from hideaway.hw.fp4.expert_weights import synthetic_expert, unpack_expert
from hideaway.hw.fp4.layouts import ExpertLayout
from hideaway.hw.fp4.swiglu import activate, swiglu_expert

HIDDEN, INNER, ROWS = 64, 32, 5


def expert_and_rows(swiglu: str) -> tuple[ExpertLayout, np.ndarray, np.ndarray]:
    layout = ExpertLayout(hidden_size=HIDDEN, intermediate_size=INNER, expert_format="mxfp4", swiglu=swiglu)
    rng = np.random.default_rng(0)
    return layout, synthetic_expert(layout, rng), 20 * rng.standard_normal((ROWS, HIDDEN))


def test_gpt_oss_experts_compute_what_transformers_computes() -> None:
    torch = pytest.importorskip("torch")
    modeling = pytest.importorskip("transformers.models.gpt_oss.modeling_gpt_oss")
    configuration = pytest.importorskip("transformers.models.gpt_oss.configuration_gpt_oss")
    layout, expert, rows = expert_and_rows("gpt-oss")
    weights = unpack_expert(layout, expert)
    config = configuration.GptOssConfig(
        hidden_size=HIDDEN, intermediate_size=INNER, num_local_experts=1, num_experts_per_tok=1
    )
    theirs = modeling.GptOssExperts(config).double()
    with torch.no_grad():
        gate_up = np.stack([weights.gate, weights.up], axis=1).reshape(2 * INNER, HIDDEN)
        bias = np.stack([weights.gate_bias, weights.up_bias], axis=1).reshape(-1)
        theirs.gate_up_proj.copy_(torch.from_numpy(gate_up.T)[None])
        theirs.gate_up_proj_bias.copy_(torch.from_numpy(bias)[None])
        theirs.down_proj.copy_(torch.from_numpy(weights.down.T)[None])
        theirs.down_proj_bias.copy_(torch.from_numpy(weights.down_bias)[None])
        x = torch.from_numpy(rows)
        chosen, weight = torch.zeros(ROWS, 1, dtype=torch.long), torch.ones(ROWS, 1, dtype=torch.double)
        expected = theirs(x, chosen, weight)
    ours = swiglu_expert(weights, rows, "gpt-oss")
    assert np.abs(rows @ weights.gate.T).max() > 7  # the clamp takes part
    np.testing.assert_allclose(ours, expected.reshape(ROWS, HIDDEN).numpy(), rtol=1e-12, atol=1e-12)


def test_plain_experts_compute_what_transformers_computes() -> None:
    torch = pytest.importorskip("torch")
    modeling = pytest.importorskip("transformers.models.qwen3_moe.modeling_qwen3_moe")
    configuration = pytest.importorskip("transformers.models.qwen3_moe.configuration_qwen3_moe")
    layout, expert, rows = expert_and_rows("plain")
    weights = unpack_expert(layout, expert)
    config = configuration.Qwen3MoeConfig(hidden_size=HIDDEN, intermediate_size=INNER)
    theirs = modeling.Qwen3MoeMLP(config).double()
    with torch.no_grad():
        theirs.gate_proj.weight.copy_(torch.from_numpy(weights.gate))
        theirs.up_proj.weight.copy_(torch.from_numpy(weights.up))
        theirs.down_proj.weight.copy_(torch.from_numpy(weights.down))
        expected = theirs(torch.from_numpy(rows)).numpy()
    np.testing.assert_allclose(swiglu_expert(weights, rows, "plain"), expected, rtol=1e-12, atol=1e-12)


def test_the_clamp_holds_gate_from_above_and_up_from_both_sides() -> None:
    gate, up = np.array([100.0, -100.0, 7.0]), np.array([100.0, -100.0, 7.0])
    sigmoid = 1 / (1 + np.exp(-1.702 * np.minimum(gate, 7)))
    np.testing.assert_allclose(
        activate(gate, up, "gpt-oss"), np.array([8, -6, 8]) * np.minimum(gate, 7) * sigmoid
    )


def test_float32_stays_float32() -> None:
    layout, expert, rows = expert_and_rows("gpt-oss")
    weights = unpack_expert(layout, expert)
    outputs = swiglu_expert(weights, rows, "gpt-oss", dtype=np.float32)
    assert outputs.dtype == np.float32
    np.testing.assert_allclose(outputs, swiglu_expert(weights, rows, "gpt-oss"), rtol=1e-3, atol=1e-3)
