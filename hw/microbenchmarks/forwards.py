"""Forwards made for a benchmark: whose rows, and which experts they choose."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hideaway.hw.engine.work import ForwardWork, Seat
from hideaway.sim.world.forward_rows import Rows


def forward_of(num_rows: int) -> ForwardWork:
    """Return a forward of one sequence without context."""
    rows = Rows([(0, num_rows)], (), [], (), [(num_rows, num_rows)], num_rows, num_rows)
    return ForwardWork((Seat(0, num_rows, num_rows, 0),), None, rows)


def spread_ids(num_experts: int, rows_each: int, top_k: int) -> npt.NDArray[np.int16]:
    """Return choices (rows, top_k) by which experts 0 to `num_experts` - 1 serve `rows_each` rows each.

    A row never chooses an expert twice; choices left over are -1.
    """
    width = min(num_experts, top_k)
    pairs = num_experts * rows_each
    num_rows = -(-pairs // width)
    flat = np.full(num_rows * width, -1, dtype=np.int16)
    flat[:pairs] = np.arange(pairs) % num_experts
    ids = np.full((num_rows, top_k), -1, dtype=np.int16)
    ids[:, :width] = flat.reshape(num_rows, width)
    return ids
