"""What an engine asks of the compute stream and of the clock. No torch here.

`torch_work.py` computes; the tests' fake work only lets time pass. Both get the same calls in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hideaway.sim.world.forward_rows import Rows


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
    reused_layers : int
        Layers whose attention a route pass has done for the seats.
    """

    seats: tuple[Seat, ...]
    prefill: Seat | None
    rows: Rows
    reused_layers: int = 0

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

    def route(self, seats: tuple[Seat, ...], exact_depth: int) -> None:
        """Find out which experts the blocks read: every router, and attention where `exact_depth` is above 1."""

    def begin(self, forward: ForwardWork) -> None:
        """Take up a forward."""

    def dense(self, layer: int) -> None:
        """Compute attention, dense parts and router of an MoE layer."""

    def learn_routing(self, layer: int) -> None:
        """Bring the routed ids to the host."""

    def hits(self, layer: int, experts: dict[int, int]) -> None:
        """Compute the resident experts that rows need, ascending; the values are their slots."""

    def arrival(self, layer: int, expert: int, slot: int) -> None:
        """Compute one expert that has just arrived."""

    def finish_layer(self, layer: int) -> None:
        """Sum what the experts computed, in an order that does not depend on when each came."""

    def finish_forward(self) -> None:
        """Compute what is left: layers without routed experts, and the head."""

    def forget(self, seq_id: int) -> None:
        """Give back the cache of a sequence; one that is not known is no fault."""
