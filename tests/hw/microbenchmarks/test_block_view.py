"""A store's file seen as blocks of another size: the same bytes, and no more of them than asked."""

from __future__ import annotations

import numpy as np
import pytest

from hideaway.hw.microbenchmarks.block_view import BlockView
from hideaway.sim.errors import InputError
from tests.hw.small_stores import make_store

PAGE = 4096


def test_blocks_are_the_files_bytes_one_after_another(tmp_path) -> None:
    store = make_store(tmp_path / "store", num_layers=2, num_experts=4)
    view = BlockView(store, 2 * PAGE)
    whole = store.data_path.read_bytes()[store.offset_bytes(0, 0) :]
    assert view.description.num_experts == store.description.total_bytes // (2 * PAGE)
    for number in range(view.description.num_experts):
        into = np.empty(2 * PAGE, dtype=np.uint8)
        view.read_into(0, number, into, verify=True)
        assert into.tobytes() == whole[number * 2 * PAGE : (number + 1) * 2 * PAGE]


def test_a_view_holds_no_more_than_asked(tmp_path) -> None:
    store = make_store(tmp_path / "store")
    assert BlockView(store, PAGE, 3 * PAGE + 1).description.num_experts == 3


def test_a_block_larger_than_the_store_is_refused(tmp_path) -> None:
    store = make_store(tmp_path / "store", num_layers=1, num_experts=1)
    with pytest.raises(InputError, match="does not fit into a store of"):
        BlockView(store, 100 * PAGE)
