"""Bytes and offsets of an expert's parts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hideaway.hw.fp4.layouts import ExpertLayout
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.models import builtin_model_names, load_model


@pytest.mark.parametrize("expert_format", ["mxfp4", "nvfp4"])
@pytest.mark.parametrize("name", builtin_model_names())
def test_an_expert_has_the_bytes_the_model_says(name: str, expert_format: str) -> None:
    model = load_model(name, expert_format=expert_format)
    layout = ExpertLayout.of(model)
    assert layout.expert_bytes == model.expert_bytes
    assert layout.swiglu == ("gpt-oss" if "gpt-oss" in name else "plain")


def test_gpt_oss_and_qwen3_experts_have_the_bytes_known_from_their_checkpoints() -> None:
    assert ExpertLayout.of(load_model("gpt-oss-20b")).expert_bytes == 13_236_480
    assert ExpertLayout.of(load_model("Qwen3-30B-A3B", expert_format="mxfp4")).expert_bytes == 2_506_752
    assert ExpertLayout.of(load_model("Qwen3-30B-A3B", expert_format="nvfp4")).expert_bytes == 2_654_220


@pytest.mark.parametrize("expert_format", ["mxfp4", "nvfp4"])
def test_parts_follow_one_another_without_gaps(expert_format: str) -> None:
    layout = ExpertLayout(
        hidden_size=100, intermediate_size=40, expert_format=expert_format, swiglu="gpt-oss"
    )
    offset = 0
    for part in layout.parts.values():
        assert part.offset == offset
        assert part.span == slice(offset, offset + part.num_bytes)
        offset += part.num_bytes
    assert offset == layout.expert_bytes


def test_the_parts_of_gpt_oss_are_those_of_its_checkpoint() -> None:
    layout = ExpertLayout.of(load_model("gpt-oss-20b"))
    shapes = {name: part.shape for name, part in layout.parts.items()}
    assert shapes == {
        "gate_up_blocks": (5760, 90, 16),
        "gate_up_scales": (5760, 90),
        "gate_up_bias": (5760,),
        "down_blocks": (2880, 90, 16),
        "down_scales": (2880, 90),
        "down_bias": (2880,),
    }


def test_experts_that_are_not_fp4_are_refused() -> None:
    with pytest.raises(InputError, match="FP4 is one of mxfp4, nvfp4"):
        ExpertLayout.of(load_model("OLMoE-1B-7B-0924"))


def test_bytes_of_no_known_layout_are_refused() -> None:
    with pytest.raises(InputError, match="has 13219200 or 13236480 bytes but the model says 1; correct"):
        ExpertLayout.of(replace(load_model("gpt-oss-20b"), expert_bytes=1))


def test_an_unknown_swiglu_and_an_empty_shape_are_refused() -> None:
    with pytest.raises(InputError, match="must be one of plain, gpt-oss"):
        ExpertLayout(hidden_size=32, intermediate_size=32, expert_format="mxfp4", swiglu="relu")
    with pytest.raises(InputError, match="both must be at least 1"):
        ExpertLayout(hidden_size=32, intermediate_size=0, expert_format="mxfp4")
