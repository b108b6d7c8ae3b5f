"""What a run's forwards hold: the one noun behind which replayed traces and real tokens look alike to the engine.

`replayed.py` reads routing and acceptance from traces, as the simulator does; `generated.py` has tokens, and finds out
from the model what they read and how many are kept.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Protocol

from hideaway.hw.engine.work import ForwardWork
from hideaway.sim.commands import Forward, Route


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a forward led to; the fields are those of `ForwardDone`."""

    committed: tuple[tuple[int, int], ...]
    last_rows: tuple[int, ...]
    kept_rows: tuple[int, ...]


class Content(Protocol):
    """Rows of one run, forward by forward."""

    def drafting(self, seq_ids: tuple[int, ...]) -> None:
        """Take note that the drafter is about to run for these sequences. Changes state."""

    def named(self, work: Route) -> tuple[tuple[int, ...], ...]:
        """Return what a route pass that has just run names for each sequence's block, one mask a layer."""

    def begin(self, work: Forward) -> ForwardWork:
        """Return the rows of a forward. Changes state."""

    def ahead(self, layer: int) -> tuple[int, ...]:
        """Return the predicted unions of the next layers, nearest first, as far as the prefetch policy asks."""

    def readers(self, layer: int, expert: int) -> Set[int]:
        """Return the sequences of the forward with a row that reads an expert of a layer whose router has run."""

    def end(self, work: Forward, failed: Set[int]) -> Outcome:
        """Return what the forward led to; sequences that failed in it commit nothing. Changes state."""
