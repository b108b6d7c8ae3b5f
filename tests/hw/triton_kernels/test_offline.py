"""What the kernels compile to, without a GPU: the instruction meant for each, nothing spilled, memory within limits."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("triton")

from hideaway.hw.triton_kernels.offline import (
    REGISTERS,
    SHARED_BYTES,
    Compiled,
    compile_variant,
)
from hideaway.hw.triton_kernels.tiles import TILES
from hideaway.hw.triton_kernels.variants import Variant, all_variants
from tests.hw.small_experts import layout_of

GPT_OSS_WIDTH = 2880
FEW, SOME, MANY = range(3)

BLOCK_SCALED = {
    "mxfp4": ("OMMA.SF.16864.F32.E2M1.E2M1.E8", "mxf4nvf4.block_scale.scale_vec::2X"),
    "nvfp4": ("OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X", "mxf4nvf4.block_scale.scale_vec::4X"),
}
"""The machine's instruction and the virtual assembly's, for FP4 x FP4 with one scale per 32 or per 16."""


FEW_BYTES = 32
"""A few registers a thread; one variant of a Qwen3-30B-A3B expert spills 8 bytes on sm_120."""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))


def variant(kernel: str, expert_format: str, swiglu: str, inputs: str, tile: int) -> Variant:
    layout = layout_of(GPT_OSS_WIDTH, GPT_OSS_WIDTH, expert_format, swiglu)
    return Variant(kernel, layout, inputs, TILES[inputs][tile])


def check(made: Compiled, variant: Variant, capability: int, *, most_spilled_bytes: int = 0) -> None:
    assert made.spilled_bytes <= most_spilled_bytes
    assert made.registers <= REGISTERS
    assert made.shared_bytes <= SHARED_BYTES[capability]
    matrix = made.with_prefix("OMMA") + made.with_prefix("HGMMA") + made.with_prefix("HMMA")
    if variant.kernel == "quantise_rows":
        assert matrix == []
    elif variant.inputs == "fp4":
        instruction, virtual = BLOCK_SCALED[variant.layout.expert_format]
        assert matrix == [instruction]
        assert virtual in made.ptx
    elif capability == 90 and variant.tile.features == 64:
        assert [name.split(".")[0] for name in matrix] == ["HGMMA"]
        assert matrix[0].endswith("F32.BF16")
    else:
        assert matrix == ["HMMA.16816.F32.BF16"]


@pytest.mark.parametrize(
    ("capability", "kernel", "expert_format", "swiglu", "inputs", "tile"),
    [
        (90, "gate_up", "mxfp4", "gpt-oss", "bfloat16", MANY),
        (90, "down", "nvfp4", "plain", "bfloat16", SOME),
        (120, "gate_up", "mxfp4", "gpt-oss", "bfloat16", FEW),
        (120, "down", "nvfp4", "plain", "bfloat16", MANY),
        (120, "gate_up", "mxfp4", "gpt-oss", "fp4", FEW),
        (120, "down", "mxfp4", "plain", "fp4", MANY),
        (120, "gate_up", "nvfp4", "plain", "fp4", FEW),
        (120, "down", "nvfp4", "gpt-oss", "fp4", MANY),
        (120, "quantise_rows", "nvfp4", "plain", "fp4", FEW),
    ],
)
def test_compiles_to_the_instruction_meant(
    capability: int, kernel: str, expert_format: str, swiglu: str, inputs: str, tile: int
) -> None:
    chosen = variant(kernel, expert_format, swiglu, inputs, tile)
    check(compile_variant(chosen, capability), chosen, capability)


@pytest.mark.campaign
@pytest.mark.parametrize("capability", [80, 90, 120])
def test_every_variant_compiles_for_models_and_for_odd_widths(capability: int) -> None:
    for widths in ((GPT_OSS_WIDTH, GPT_OSS_WIDTH), (2048, 768), (33, 17)):
        for chosen in all_variants(*widths, native=capability == 120):
            most = 0 if widths[0] == GPT_OSS_WIDTH else FEW_BYTES
            check(compile_variant(chosen, capability), chosen, capability, most_spilled_bytes=most)
