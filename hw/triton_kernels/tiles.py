"""How a launch is cut: the size of a program's tile, and which rows of which slot each row tile takes. Numpy only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hideaway.sim.errors import InputError

Tiles = npt.NDArray[np.int64]

INPUTS = ("bfloat16", "fp4", "fp4-decoded")
"""What rows and activations are multiplied as: bfloat16; FP4 by the block-scaled instruction of sm_120; the same FP4
values, decoded and multiplied in bfloat16, which shows on any machine what the instruction computes."""


@dataclass(frozen=True, slots=True)
class Tile:
    """Output features, rows and summed features that one program takes at a time, its warps and pipeline stages."""

    features: int
    rows: int
    columns: int
    warps: int
    stages: int


_FEW = Tile(features=32, rows=16, columns=128, warps=4, stages=3)
_SOME = Tile(features=64, rows=32, columns=64, warps=4, stages=3)
_MANY = Tile(features=64, rows=64, columns=64, warps=8, stages=3)
_FEW_FP4 = Tile(features=32, rows=16, columns=256, warps=4, stages=3)
_SOME_FP4 = Tile(features=64, rows=32, columns=128, warps=4, stages=3)
_MANY_FP4 = Tile(features=64, rows=128, columns=128, warps=8, stages=3)

TILES = {
    "bfloat16": (_FEW, _SOME, _MANY),
    "fp4-decoded": (_FEW, _SOME, _MANY),
    "fp4": (_FEW_FP4, _SOME_FP4, _MANY_FP4),
}
"""By kind of input, in ascending rows. Few rows read weights and little else, so narrow tiles make many programs.
With gpt-oss-20b's widths nothing spills on sm_90 and sm_120; no GPU has tuned them yet."""


def tile_for(num_rows: int, num_experts: int, inputs: str) -> Tile:
    """Return the tile of a launch: the smallest that holds the mean rows of an expert, or the largest.

    The mean, because an expert with more rows than a tile takes several, while one with fewer wastes the rest.
    """
    tiles = TILES[inputs]
    return next((tile for tile in tiles if num_rows <= tile.rows * max(num_experts, 1)), tiles[-1])


def row_tiles(slots: Sequence[int], offsets: Sequence[int], tile_rows: int) -> Tiles:
    """Return (tiles, 3): slot, first row and end row of each tile; experts without rows have none.

    Parameters
    ----------
    slots
        The slot of each expert, in any order.
    offsets
        Rows of expert i are offsets[i] up to offsets[i + 1]; one longer than `slots`.
    tile_rows
        The most rows of a tile.
    """
    bounds = np.asarray(offsets, dtype=np.int64)
    counts = -(-np.diff(bounds) // tile_rows)
    expert = np.repeat(np.arange(len(slots)), counts)
    within = np.arange(expert.size) - np.repeat(np.cumsum(counts) - counts, counts)
    first = bounds[expert] + within * tile_rows
    end = np.minimum(first + tile_rows, bounds[expert + 1])
    return np.stack([np.asarray(slots, dtype=np.int64)[expert], first, end], axis=1)


def check_groups(slots: Sequence[int], offsets: Sequence[int], num_slots: int, num_rows: int) -> None:
    """Refuse what would read or write outside the tensors.

    Raises
    ------
    InputError
        A slot does not exist, or the offsets do not lead from 0 to `num_rows` in one more step than there are slots.
    """
    wrong = [slot for slot in slots if not 0 <= slot < num_slots]
    if wrong:
        raise InputError(f"slot {wrong[0]} does not exist; there are slots 0 to {num_slots - 1}")
    bounds = np.asarray(offsets, dtype=np.int64)
    if (
        bounds.shape != (len(slots) + 1,)
        or bounds[0] != 0
        or bounds[-1] != num_rows
        or (np.diff(bounds) < 0).any()
    ):
        raise InputError(
            f"offsets are {bounds.tolist()} but must lead from 0 to {num_rows}, the number of rows, never "
            f"falling, in {len(slots)} steps; give the first row of each expert and the end"
        )
