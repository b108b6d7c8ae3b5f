"""What an engine asks of the compute stream and of the clock. No torch here.

`torch_work.py` computes a synthetic model, `model_work.py` a real one; the tests' fake work only lets time pass. The
work walks through a forward's layers by itself, since a real model does, and calls back at every layer with routed
experts: what happens from there on is the same for all three (`visitor.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from hideaway.sim.errors import HideawayError
from hideaway.sim.world.forward_rows import Rows

AtExperts = Callable[[int], None]
"""Told the number of a layer, among those with routed experts, whose router has run; returns when its experts are
summed."""


@dataclass(frozen=True, slots=True)
class Seat:
    """One sequence's rows in a piece of work.

    Parameters
    ----------
    context_tokens : int
        What the cost model takes the rows to attend to.
    tokens_before : int
        Tokens in the cache that stay; whatever lies beyond was drafted and rejected.
    """

    seq_id: int
    num_rows: int
    context_tokens: int
    tokens_before: int

    @classmethod
    def block(cls, seq_id: int, num_rows: int, context_tokens: int) -> Seat:
        """Return the seat of a drafted block, whose first row is the last committed token."""
        return cls(seq_id, num_rows, context_tokens, context_tokens - 1)

    @classmethod
    def chunk(cls, seq_id: int, num_rows: int, context_tokens: int) -> Seat:
        """Return the seat of a chunk of a prompt of which `context_tokens` are then read."""
        return cls(seq_id, num_rows, context_tokens, context_tokens - num_rows)


@dataclass(frozen=True, slots=True)
class ForwardWork:
    """One forward: who has rows in it, and what they read.

    Parameters
    ----------
    seats : tuple of Seat
        Verified or decoded sequences, in the order of their rows.
    prefill : Seat or None
        The prompt chunk, whose rows come last.
    rows : Rows or None
        What the rows replay from a trace; None where they hold real tokens.
    reused_layers : int
        Layers whose attention a route pass has done for the seats.
    """

    seats: tuple[Seat, ...]
    prefill: Seat | None
    rows: Rows | None = None
    reused_layers: int = 0

    @property
    def replayed(self) -> Rows:
        """What the rows replay."""
        if self.rows is None:
            raise HideawayError("a forward of real tokens replays no trace; this is a fault in the engine")
        return self.rows

    @property
    def every_seat(self) -> tuple[Seat, ...]:
        """The seats, and the prompt chunk after them."""
        return self.seats if self.prefill is None else (*self.seats, self.prefill)


class Clock(Protocol):
    """Seconds since the run began."""

    def now_seconds(self) -> float:
        """Return the time."""

    def sleep_until(self, at_seconds: float) -> None:
        """Let the time come; return at once when it has passed."""


class Work(Protocol):
    """The compute stream. Every call returns when its work is done."""

    def draft(self, seats: tuple[Seat, ...]) -> None:
        """Run the drafter once over the blocks of `seats`."""

    def route(self, seats: tuple[Seat, ...], exact_depth: int, num_layers: int) -> None:
        """Find out which experts the blocks read in the first layers: `num_layers` in all, `exact_depth` exactly."""

    def forward(self, work: ForwardWork, at_experts: AtExperts) -> None:
        """Run the target once, head included; calls `at_experts` for each layer with routed experts, in order."""

    def learn_routing(self, layer: int) -> None:
        """Bring the routed ids to the host."""

    def needed(self, layer: int) -> int:
        """Return the mask of the experts that the rows read in a layer whose router has run."""

    def hits(self, layer: int, experts: dict[int, int]) -> None:
        """Compute the resident experts that rows need, ascending; the values are their slots."""

    def arrival(self, layer: int, expert: int, slot: int) -> None:
        """Compute one expert that has just arrived."""

    def finish_layer(self, layer: int) -> None:
        """Sum what the experts computed, in an order that does not depend on when each came."""

    def forget(self, seq_id: int) -> None:
        """Give back the cache of a sequence; one that is not known is no fault."""


class LayeredWork:
    """Work that is done layer by layer: a base for what has no model that walks by itself."""

    num_layers: int
    """Layers with routed experts."""

    def begin(self, forward: ForwardWork) -> None:
        """Take up a forward."""
        raise NotImplementedError

    def dense(self, layer: int) -> None:
        """Compute attention, dense parts and router of a layer with routed experts."""
        raise NotImplementedError

    def finish_forward(self) -> None:
        """Compute what is left: layers without routed experts, and the head."""
        raise NotImplementedError

    def forward(self, work: ForwardWork, at_experts: AtExperts) -> None:
        """Run the target once. Changes state."""
        self.begin(work)
        for layer in range(self.num_layers):
            self.dense(layer)
            at_experts(layer)
        self.finish_forward()
