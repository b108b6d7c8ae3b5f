"""The Triton kernels, interpreted, against float64. Not collected by itself: `test_interpreted.py` runs it in a process
where Triton was told to interpret before its import.

Each kernel is held to float64 products of the very inputs it was given, so that bounds are those of one product: a
float32 sum of K terms in any order is within (K + 2) u sum |w x|, u = 2^-24 (Higham, Accuracy and Stability, section
4.2), two for NVFP4's scales. Activations are then cut to bfloat16, by the interpreter without rounding: within 2^-7.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch

from hideaway.hw.fp4.expert_weights import ExpertWeights, part_views, synthetic_expert, unpack_expert
from hideaway.hw.fp4.fp4_tensor import Fp4Tensor, dequantise
from hideaway.hw.fp4.layouts import ExpertLayout
from hideaway.hw.fp4.mxfp4 import quantise_mxfp4
from hideaway.hw.fp4.nvfp4 import quantise_nvfp4
from hideaway.hw.fp4.swiglu import activate
from hideaway.hw.triton_kernels.triton_experts import TritonExperts
from hideaway.sim.errors import InputError
from tests.hw.small_experts import KINDS, layout_of, rows_of

CPU = torch.device("cpu")
UNIT = 2.0**-24
SLOPE = 1.1  # the most that z sigmoid(a z) rises
SLOTS, OFFSETS = [4, 2, 0, 3], [0, 3, 3, 20, 21]  # 3, no, 17 and 1 rows


class Recording(TritonExperts):
    """Keeps what each kernel was given and what it wrote."""

    def _product(self, kernel, inputs, slots, tile, tiles, outputs):
        super()._product(kernel, inputs, slots, tile, tiles, outputs)
        if not hasattr(self, "made"):
            self.made = {}
        self.made[kernel] = (inputs, outputs.to(torch.float64).numpy())


def slots_of(layout: ExpertLayout) -> torch.Tensor:
    """Five experts and what lies behind them; in NVFP4 with three unlike factors and some subnormal scales."""
    rng = np.random.default_rng(0)
    slots = torch.full((5, layout.expert_bytes + 64), 255, dtype=torch.uint8)
    for slot in slots:
        expert = synthetic_expert(layout, rng)
        if layout.expert_format == "nvfp4":
            parts = part_views(layout, expert)
            parts["tensor_scales"][...] = (1.1e-3, 0.7e-3, 1.3e-3)
            for name in ("gate_up_scales", "down_scales"):
                parts[name][:4] = rng.integers(1, 8, parts[name][:4].shape)
        slot[: layout.expert_bytes] = torch.from_numpy(expert)
    return slots


def weights_in(layout: ExpertLayout, slots: torch.Tensor, slot: int) -> ExpertWeights:
    return unpack_expert(layout, slots[slot].numpy())


def exact_inputs(layout: ExpertLayout, inputs: tuple, columns: int) -> np.ndarray:
    values, scales, factors = inputs
    if scales is None:
        return values.to(torch.float64).numpy()
    blocks = scales.shape[1]
    packed = values.numpy().reshape(len(values), blocks, -1)
    rows = [
        dequantise(
            Fp4Tensor(
                packed=packed[row : row + 1],
                scales=scales[row : row + 1].numpy(),
                shape=(1, columns),
                format=layout.expert_format,
                tensor_scale=1.0 if factors is None else float(factors[row]),
            )
        )
        for row in range(len(values))
    ]
    return np.concatenate(rows).astype(np.float64)


def product(x: np.ndarray, matrix: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The exact product and the most that float32 may be away from it."""
    weights = matrix.T.astype(np.float64)
    exact = x @ weights + bias
    most = (len(weights) + 4) * UNIT * (np.abs(x) @ np.abs(weights)) + UNIT * np.abs(exact)
    return exact, most


def whole(layout: ExpertLayout, weights: ExpertWeights, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The exact outputs of rows not yet rounded, and the most that rounding and cutting may add up to."""
    gate, gate_most = product(rows, weights.gate, weights.gate_bias)
    up, up_most = product(rows, weights.up, weights.up_bias)
    gate_most += 2.0**-8 * np.abs(rows) @ np.abs(weights.gate.T)
    up_most += 2.0**-8 * np.abs(rows) @ np.abs(weights.up.T)
    inner = activate(gate, up, layout.swiglu)
    widest = np.abs(up) + up_most + (1 if layout.swiglu == "gpt-oss" else 0)
    inner_most = SLOPE * widest * gate_most + (np.abs(gate) + gate_most) * up_most
    inner_most += 1.01 * 2.0**-7 * (np.abs(inner) + inner_most)
    exact, most = product(inner, weights.down, weights.down_bias)
    return exact, 1.01 * most + inner_most @ np.abs(weights.down.T)


def check(
    layout: ExpertLayout, made: dict, slots: torch.Tensor, chosen: list[int], offsets: list[int]
) -> None:
    rows = exact_inputs(layout, made["gate_up"][0], layout.hidden_size)
    inner = exact_inputs(layout, made["down"][0], layout.intermediate_size)
    for number, slot in enumerate(chosen):
        group = slice(offsets[number], offsets[number + 1])
        weights = weights_in(layout, slots, slot)
        gate, gate_most = product(rows[group], weights.gate, weights.gate_bias)
        up, up_most = product(rows[group], weights.up, weights.up_bias)
        exact = activate(gate, up, layout.swiglu)
        widest = np.clip(np.abs(up), 0, 7) + 1 if layout.swiglu == "gpt-oss" else np.abs(up)
        most = SLOPE * widest * gate_most + np.abs(gate) * up_most + 8 * UNIT * np.abs(exact)
        error = np.abs(made["gate_up"][1][group] - exact)
        assert (error <= 1.01 * most + 2.0**-7 * np.abs(exact)).all()
        exact, most = product(inner[group], weights.down, weights.down_bias)
        assert (np.abs(made["down"][1][group] - exact) <= most).all()


@pytest.mark.parametrize(
    ("expert_format", "swiglu", "hidden", "inner"),
    [*((*kind, 33, 17) for kind in KINDS), ("mxfp4", "gpt-oss", 144, 40), ("nvfp4", "plain", 144, 40)],
)
def test_grouped_experts_agree_with_float64(expert_format: str, swiglu: str, hidden: int, inner: int) -> None:
    layout = layout_of(hidden, inner, expert_format, swiglu)
    slots, rows = slots_of(layout), rows_of(layout, 21)
    rows[::2] *= 8.0  # beyond the clamp of gpt-oss
    experts = Recording(layout, CPU)
    outputs = experts.forward_slots(slots, SLOTS, rows, OFFSETS)
    check(layout, experts.made, slots, SLOTS, OFFSETS)
    assert outputs.dtype == torch.float32
    for number, (slot, (begin, end)) in enumerate(zip(SLOTS, pairwise(OFFSETS), strict=True)):
        group = rows[begin:end].double().numpy()
        exact, most = whole(layout, weights_in(layout, slots, slot), group)
        assert (np.abs(outputs[begin:end].numpy() - exact) <= most).all(), number


@pytest.mark.parametrize("expert_format", ["mxfp4", "nvfp4"])
def test_wider_row_tiles_give_the_same(expert_format: str) -> None:
    layout = layout_of(33, 17, expert_format, "gpt-oss")
    slots, rows = slots_of(layout), rows_of(layout, 120)
    experts = Recording(layout, CPU)
    outputs = experts.forward_slots(slots, [1, 3], rows, [0, 70, 120])
    check(layout, experts.made, slots, [1, 3], [0, 70, 120])
    alone = experts.forward(slots[3], rows[70:72])
    np.testing.assert_allclose(alone.numpy(), outputs[70:72].numpy(), rtol=0, atol=0.02)


@pytest.mark.parametrize(
    ("expert_format", "inputs"), [("mxfp4", "fp4"), ("mxfp4", "fp4-decoded"), ("nvfp4", "fp4-decoded")]
)
def test_fp4_inputs_agree_with_float64_products_of_the_same_fp4_values(
    expert_format: str, inputs: str
) -> None:
    layout = layout_of(144, 24, expert_format, "gpt-oss" if inputs == "fp4" else "plain")
    slots, rows = slots_of(layout), rows_of(layout, 4)
    experts = Recording(layout, CPU, inputs=inputs)
    experts.forward_slots(slots, [3, 1], rows, [0, 3, 4])
    check(layout, experts.made, slots, [3, 1], [0, 3, 4])


@pytest.mark.parametrize("columns", [33, 1088])
@pytest.mark.parametrize("expert_format", ["mxfp4", "nvfp4"])
def test_rows_are_quantised_bit_for_bit_as_matrices_of_one_row(expert_format: str, columns: int) -> None:
    layout = layout_of(columns, 17, expert_format)
    rows = rows_of(layout, 7).to(torch.bfloat16)
    rows[1] *= 2.0**-120
    rows[2] *= 2.0**100
    rows[3] = 0.0
    rows[4, :16] = torch.arange(16) / 4.0  # ties
    rows[5, :] = -0.0
    rows[6, 3:] *= 2.0**-30  # blocks whose NVFP4 scale is subnormal or zero
    codes, scales, factors = TritonExperts(layout, CPU, inputs="fp4-decoded").quantised(rows)
    quantise = quantise_mxfp4 if expert_format == "mxfp4" else quantise_nvfp4
    for row in range(len(rows)):
        wanted = quantise(rows[row : row + 1].float().numpy())
        np.testing.assert_array_equal(codes[row].numpy(), wanted.packed.reshape(-1))
        np.testing.assert_array_equal(scales[row].numpy(), wanted.scales[0])
        assert factors is None or float(factors[row]) == wanted.tensor_scale


@pytest.mark.parametrize("expert_format", ["mxfp4", "nvfp4"])
def test_a_row_that_is_not_a_number_stays_so_and_touches_no_other(expert_format: str) -> None:
    layout = layout_of(33, 17, expert_format, "gpt-oss")
    slots, rows = slots_of(layout), rows_of(layout, 3)
    for inputs in ("bfloat16", "fp4-decoded"):
        experts = TritonExperts(layout, CPU, inputs=inputs)
        wanted = experts.forward(slots[0], rows)
        spoilt = rows.clone()
        spoilt[1, 5] = float("nan")
        with np.errstate(invalid="ignore"):
            outputs = experts.forward(slots[0], spoilt)
        assert outputs[1].isnan().all()
        assert torch.equal(outputs[[0, 2]], wanted[[0, 2]])


def test_no_rows_give_no_outputs() -> None:
    layout = layout_of(33, 17)
    slots = slots_of(layout)
    assert TritonExperts(layout, CPU).forward_slots(slots, [1, 2], rows_of(layout, 0), [0, 0, 0]).shape == (
        0,
        33,
    )
    assert TritonExperts(layout, CPU).forward_slots(slots, [], rows_of(layout, 0), [0]).shape == (0, 33)


def test_bad_arguments_are_refused_in_one_sentence() -> None:
    layout = layout_of(33, 17)
    experts, slots, rows = TritonExperts(layout, CPU), slots_of(layout), rows_of(layout, 2)
    with pytest.raises(InputError, match="slot 5 does not exist; there are slots 0 to 4"):
        experts.forward_slots(slots, [5], rows, [0, 2])
    for offsets in ([0, 1], [1, 2], [0, 1, 2], [0, 3, 2]):
        with pytest.raises(InputError, match="must lead from 0 to 2, the number of rows"):
            experts.forward_slots(slots, [1], rows, offsets)
    with pytest.raises(InputError, match=r"must be contiguous uint8 \(slots, \d+ or more\) on cpu"):
        experts.forward_slots(slots[:, :100], [1], rows, [0, 2])
    with pytest.raises(InputError, match=r"must be \(n, 33\) on cpu"):
        experts.forward_slots(slots, [1], rows[:, :32], [0, 2])
    with pytest.raises(InputError, match="takes NVFP4 scales for powers of two"):
        TritonExperts(layout_of(33, 17, "nvfp4"), CPU, inputs="fp4")
    with pytest.raises(InputError, match="inputs is 'fp8' but must be one of bfloat16, fp4, fp4-decoded"):
        TritonExperts(layout, CPU, inputs="fp8")
