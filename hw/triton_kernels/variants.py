"""Every kernel that can be launched, as data: its compile-time constants, and the types of its other arguments.

`triton_experts.py` launches with the constants; `offline.py` compiles with constants and types. No Triton here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hideaway.hw.fp4.layouts import SWIGLU_KINDS, ExpertLayout
from hideaway.hw.triton_kernels.tiles import TILES, Tile

Constants = Mapping[str, int | str]

QUANTISE_COLUMNS = 1024
"""Columns of a row at a time in `quantise_rows.py`."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One compiled kernel.

    Parameters
    ----------
    kernel : {"gate_up", "down", "quantise_rows"}
        Which; quantise_rows takes the hidden size as columns here.
    layout : ExpertLayout
        Of the experts.
    inputs : str
        One of `tiles.INPUTS`; not used by quantise_rows.
    tile : Tile
        Not used by quantise_rows.
    """

    kernel: str
    layout: ExpertLayout
    inputs: str
    tile: Tile

    @property
    def constants(self) -> Constants:
        """The compile-time constants of the kernel, by parameter."""
        if self.kernel == "quantise_rows":
            return quantise_constants(self.layout.hidden_size, self.layout.expert_format)
        return product_constants(self.kernel, self.layout, self.inputs, self.tile)

    @property
    def options(self) -> Mapping[str, int]:
        """What the compiler is told beside the constants."""
        return quantise_options() if self.kernel == "quantise_rows" else product_options(self.tile)

    @property
    def types(self) -> Mapping[str, str]:
        """Triton's types of the other parameters; "constexpr" for those passed as None."""
        rows = "*bf16" if self.inputs == "bfloat16" else "*u8"
        nvfp4 = self.layout.expert_format == "nvfp4"
        factors = "*fp32" if nvfp4 and self.inputs != "bfloat16" else "constexpr"
        if self.kernel == "quantise_rows":
            return {"rows": "*bf16", "codes": "*u8", "scales": "*u8", "factors": factors}
        return {
            "inputs": rows,
            "input_scales": "constexpr" if self.inputs == "bfloat16" else "*u8",
            "input_factors": factors,
            "slots": "*u8",
            "slot_bytes": "i32",
            "tiles": "*i64",
            "outputs": "*bf16" if self.kernel == "gate_up" else "*fp32",
        }

    def __str__(self) -> str:
        layout, tile = self.layout, self.tile
        named = f"{self.kernel} {layout.expert_format} {layout.swiglu}"
        if self.kernel == "quantise_rows":
            return named
        return f"{named} {self.inputs} {tile.features}x{tile.rows}x{tile.columns}"


def product_constants(kernel: str, layout: ExpertLayout, inputs: str, tile: Tile) -> Constants:
    """Return the constants of `gate_up_kernel` or `down_kernel` (`kernel` without its suffix)."""
    offsets = {name: part.offset for name, part in layout.parts.items()}
    hidden, inner = layout.hidden_size, layout.intermediate_size
    columns, features = (hidden, inner) if kernel == "gate_up" else (inner, hidden)
    return {
        "COLUMNS": columns,
        "FEATURES": features,
        "CODES": offsets[f"{kernel}_blocks"],
        "SCALES": offsets[f"{kernel}_scales"],
        "BIAS": offsets.get(f"{kernel}_bias", 0),
        "FACTORS": offsets.get("tensor_scales", 0),
        "FORMAT": layout.expert_format,
        "SWIGLU": layout.swiglu,
        "INPUTS": inputs,
        "TILE_FEATURES": tile.features,
        "TILE_ROWS": tile.rows,
        "TILE_COLUMNS": tile.columns,
    }


def quantise_constants(columns: int, expert_format: str) -> Constants:
    """Return the constants of `quantise_rows_kernel`."""
    return {"COLUMNS": columns, "FORMAT": expert_format, "TILE_COLUMNS": QUANTISE_COLUMNS}


def product_options(tile: Tile) -> Mapping[str, int]:
    """Return the compiler's options of the two products: multiplications and additions may be fused.

    Said because the default changes with Triton 3.10.
    """
    return {"num_warps": tile.warps, "num_stages": tile.stages, "enable_fp_fusion": True}


def quantise_options() -> Mapping[str, int]:
    """Return those of `quantise_rows_kernel`: nothing fused, for codes equal those of numpy bit for bit."""
    return {"num_warps": 4, "num_stages": 1, "enable_fp_fusion": False}


def all_variants(hidden_size: int, intermediate_size: int, *, native: bool) -> Iterator[Variant]:
    """Yield every variant of one shape: bfloat16 inputs, and where `native` FP4 inputs and their quantising too."""
    for expert_format in ("mxfp4", "nvfp4"):
        for swiglu in SWIGLU_KINDS:
            layout = ExpertLayout(
                hidden_size=hidden_size,
                intermediate_size=intermediate_size,
                expert_format=expert_format,
                swiglu=swiglu,
            )
            for inputs in ("bfloat16", "fp4") if native else ("bfloat16",):
                for tile in TILES[inputs]:
                    yield Variant("gate_up", layout, inputs, tile)
                    yield Variant("down", layout, inputs, tile)
        if native:
            yield Variant("quantise_rows", layout, "fp4", TILES["fp4"][0])
