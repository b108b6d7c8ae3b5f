"""Packing an expert into its bytes and reading them back."""

from __future__ import annotations

import numpy as np
import pytest

from hideaway.hw.fp4.expert_weights import pack_expert, part_views, synthetic_expert, unpack_expert
from hideaway.hw.fp4.fp4_tensor import Fp4Tensor, dequantise
from hideaway.hw.fp4.layouts import ExpertLayout
from hideaway.hw.fp4.mxfp4 import quantise_mxfp4
from hideaway.hw.fp4.nvfp4 import quantise_nvfp4
from hideaway.sim.errors import InputError

HIDDEN, INNER = 72, 40
QUANTISE = {"mxfp4": quantise_mxfp4, "nvfp4": quantise_nvfp4}


def layout_of(expert_format: str, swiglu: str) -> ExpertLayout:
    return ExpertLayout(
        hidden_size=HIDDEN, intermediate_size=INNER, expert_format=expert_format, swiglu=swiglu
    )


def matrices(expert_format: str) -> tuple[Fp4Tensor, Fp4Tensor, Fp4Tensor]:
    rng = np.random.default_rng(0)
    wide, tall = (INNER, HIDDEN), (HIDDEN, INNER)
    quantise = QUANTISE[expert_format]
    return (
        quantise(rng.standard_normal(wide)),
        quantise(2 * rng.standard_normal(wide)),
        quantise(3 * rng.standard_normal(tall)),
    )


@pytest.mark.parametrize("swiglu", ["plain", "gpt-oss"])
@pytest.mark.parametrize("expert_format", ["mxfp4", "nvfp4"])
def test_an_expert_comes_back_as_packed(expert_format: str, swiglu: str) -> None:
    layout = layout_of(expert_format, swiglu)
    gate, up, down = matrices(expert_format)
    biases = {}
    if layout.has_bias:
        gate_up_bias = np.arange(2 * INNER, dtype=np.float32) / 2
        biases = {"gate_up_bias": gate_up_bias, "down_bias": -np.arange(HIDDEN, dtype=np.float32)}
    expert = pack_expert(layout, gate_up=(gate, up), down=down, **biases)
    assert expert.nbytes == layout.expert_bytes
    weights = unpack_expert(layout, expert)
    np.testing.assert_array_equal(weights.gate, dequantise(gate))
    np.testing.assert_array_equal(weights.up, dequantise(up))
    np.testing.assert_array_equal(weights.down, dequantise(down))
    if layout.has_bias:
        np.testing.assert_array_equal(weights.gate_bias, gate_up_bias[0::2])
        np.testing.assert_array_equal(weights.up_bias, gate_up_bias[1::2])
        np.testing.assert_array_equal(weights.down_bias, biases["down_bias"])
    else:
        assert not weights.gate_bias.any()


def test_tensors_of_a_gpt_oss_checkpoint_are_taken_as_they_are() -> None:
    layout = layout_of("mxfp4", "gpt-oss")
    gate, up, down = matrices("mxfp4")
    stored = quantise_mxfp4(np.stack([dequantise(gate), dequantise(up)], axis=1).reshape(2 * INNER, HIDDEN))
    bits = np.arange(2 * INNER, dtype=np.uint16)
    biases = {"gate_up_bias": bits, "down_bias": np.zeros(HIDDEN, np.uint16)}
    whole = pack_expert(layout, gate_up=stored, down=down, **biases)
    np.testing.assert_array_equal(whole, pack_expert(layout, gate_up=(gate, up), down=down, **biases))
    parts = part_views(layout, whole)
    np.testing.assert_array_equal(parts["gate_up_blocks"], stored.packed)
    np.testing.assert_array_equal(parts["gate_up_bias"], bits)


def test_biases_round_to_the_nearest_bfloat16() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    layout = layout_of("mxfp4", "gpt-oss")
    gate, up, down = matrices("mxfp4")
    bias = np.random.default_rng(1).standard_normal(2 * INNER).astype(np.float32)
    expert = pack_expert(
        layout, gate_up=(gate, up), down=down, gate_up_bias=bias, down_bias=np.ones(HIDDEN, np.float32)
    )
    theirs = bias.astype(ml_dtypes.bfloat16).view(np.uint16)
    np.testing.assert_array_equal(part_views(layout, expert)["gate_up_bias"], theirs)


def test_what_does_not_fit_the_layout_is_refused() -> None:
    layout = layout_of("mxfp4", "plain")
    gate, up, down = matrices("mxfp4")
    with pytest.raises(InputError, match=r"down is mxfp4 of shape \(40, 72\) but the layout wants"):
        pack_expert(layout, gate_up=(gate, up), down=gate)
    with pytest.raises(InputError, match="gate is nvfp4"):
        pack_expert(layout, gate_up=matrices("nvfp4")[:2], down=down)
    with pytest.raises(InputError, match="the layout has no gate_up_bias"):
        pack_expert(layout, gate_up=(gate, up), down=down, gate_up_bias=np.zeros(2 * INNER, np.float32))
    with pytest.raises(InputError, match="the layout has a gate_up_bias"):
        pack_expert(layout_of("mxfp4", "gpt-oss"), gate_up=(gate, up), down=down)
    with pytest.raises(InputError, match="nvfp4 needs gate and up apart"):
        pack_expert(layout_of("nvfp4", "plain"), gate_up=gate, down=down)


def test_too_few_bytes_are_refused() -> None:
    layout = layout_of("mxfp4", "plain")
    with pytest.raises(InputError, match="pass the expert's own bytes"):
        unpack_expert(layout, np.zeros(layout.expert_bytes - 1, np.uint8))


@pytest.mark.parametrize("expert_format", ["mxfp4", "nvfp4"])
def test_synthetic_experts_keep_a_row_about_as_large_as_it_was(expert_format: str) -> None:
    layout = ExpertLayout(hidden_size=256, intermediate_size=512, expert_format=expert_format)
    weights = unpack_expert(layout, synthetic_expert(layout, np.random.default_rng(0)))
    for matrix in (weights.gate, weights.up, weights.down):
        gain = float(np.sqrt(np.mean(matrix.astype(np.float64) ** 2) * matrix.shape[1]))
        assert 0.5 < gain < 2


def test_the_same_seed_gives_the_same_synthetic_expert() -> None:
    layout = layout_of("nvfp4", "gpt-oss")
    first, second, other = (synthetic_expert(layout, np.random.default_rng(seed)) for seed in (4, 4, 5))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)
