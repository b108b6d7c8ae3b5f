"""How launches are cut: every row of every expert in exactly one tile of its own slot."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.hw.triton_kernels.tiles import INPUTS, TILES, check_groups, row_tiles, tile_for
from hideaway.sim.errors import InputError


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 70)), max_size=12), st.sampled_from([1, 16, 64]))
def test_each_row_is_in_one_tile_of_its_experts_slot(experts: list[tuple[int, int]], tile_rows: int) -> None:
    slots = [slot for slot, _ in experts]
    offsets = np.cumsum([0, *(count for _, count in experts)]).tolist()
    tiles = row_tiles(slots, offsets, tile_rows)
    assert tiles.shape[1:] == (3,)
    assert tiles.dtype == np.int64
    found = []
    for slot, first, end in tiles.tolist():
        assert 0 < end - first <= tile_rows
        found += [(slot, row) for row in range(first, end)]
    wanted = [(slot, row) for i, slot in enumerate(slots) for row in range(offsets[i], offsets[i + 1])]
    assert found == wanted


@pytest.mark.parametrize("inputs", INPUTS)
def test_the_tile_grows_with_the_mean_rows_of_an_expert(inputs: str) -> None:
    few, some, many = TILES[inputs]
    assert [tile_for(rows, 1, inputs) for rows in (0, 1, 16, 17, 32, 33, 5000)] == [few] * 3 + [some] * 2 + [
        many
    ] * 2
    assert tile_for(8 * 16, 8, inputs) is few
    assert tile_for(8 * 16 + 1, 8, inputs) is some
    assert tile_for(0, 0, inputs) is few


def test_groups_that_leave_the_tensors_are_refused() -> None:
    check_groups([3, 0, 3], [0, 2, 2, 5], num_slots=4, num_rows=5)
    check_groups([], [0], num_slots=4, num_rows=0)
    with pytest.raises(InputError, match="slot -1 does not exist; there are slots 0 to 3"):
        check_groups([-1], [0, 5], num_slots=4, num_rows=5)
    with pytest.raises(InputError, match=r"offsets are \[0, 6\] but must lead from 0 to 5"):
        check_groups([1], [0, 6], num_slots=4, num_rows=5)
    with pytest.raises(InputError, match="in 1 steps"):
        check_groups([1], [], num_slots=4, num_rows=0)
