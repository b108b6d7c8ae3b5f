"""Times of copies read off arrivals: whole pieces only, gaps only where copies follow one another."""

from __future__ import annotations

import pytest

from hideaway.hw.devices.base import Arrival, Copy
from hideaway.hw.microbenchmarks.link import copy_seconds, gap_seconds
from hideaway.sim.commands import Band


def arrival(*copies) -> Arrival:
    return Arrival(0, 0, 0, Band.ON_DEMAND, tuple(Copy(*copy) for copy in copies))


def test_a_last_shorter_chunk_is_no_copy_of_a_piece() -> None:
    found = copy_seconds([arrival((0.0, 0.1, 4096), (0.1, 0.12, 100)), arrival((0.2, 0.35, 4096))], 4096)
    assert found == pytest.approx([0.1, 0.15])


def test_gaps_lie_between_copies_in_order_of_time() -> None:
    arrivals = [arrival((0.5, 0.6, 1)), arrival((0.0, 0.1, 1), (0.15, 0.3, 1))]
    assert gap_seconds(arrivals) == pytest.approx([0.05, 0.2])


def test_copies_that_overlap_or_touch_have_no_gap() -> None:
    assert gap_seconds([arrival((0.0, 0.2, 1), (0.1, 0.3, 1), (0.3, 0.4, 1))]) == []
    assert gap_seconds([]) == []
