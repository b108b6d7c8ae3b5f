"""The engine around nothing: a device whose transfers arrive at once and work that computes nothing.

What is left is the host's own time: scheduler, slots, transfers' book-keeping, the loop. `scheduling.py` times it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch

from hideaway.hw.devices.base import PAGE_BYTES, Arrival, Copy, Transfer
from hideaway.hw.engine.work import ForwardWork, LayeredWork, Seat
from hideaway.sim.commands import Band

MOST_SLOTS = 10**6


class InstantDevice:
    """A transfer device (`hideaway.hw.devices.base.TransferDevice`) over nothing."""

    num_slots = MOST_SLOTS
    slot_bytes = PAGE_BYTES

    def __init__(self) -> None:
        self._arrived: list[Arrival] = []

    def facts(self) -> dict[str, object]:
        """Return what it is."""
        return {"kind": "instant"}

    def now_seconds(self) -> float:
        """Return the time."""
        return time.perf_counter()

    def slot_tensor(self, slot: int) -> torch.Tensor:
        """Return an empty slot; nobody computes from it."""
        return torch.empty(self.slot_bytes, dtype=torch.uint8)

    def submit(self, transfers: Sequence[Transfer], band: Band) -> None:
        """Let transfers arrive. Changes state."""
        now = self.now_seconds()
        copies = (Copy(now, now, self.slot_bytes),)
        self._arrived += [Arrival(each.layer, each.expert, each.slot, band, copies) for each in transfers]

    def promote(self, layer: int, experts: int) -> None:
        """Do nothing: nothing is queued."""

    def cancel(self, layer: int, experts: int) -> int:
        """Return 0: nothing is queued."""
        return 0

    def outstanding(self) -> int:
        """Return 0: everything has arrived."""
        return 0

    def poll(self) -> list[Arrival]:
        """Take what has arrived. Changes state."""
        taken, self._arrived = self._arrived, []
        return taken

    def wait(self, timeout_seconds: float | None = None) -> list[Arrival]:
        """Take what has arrived. Changes state."""
        return self.poll()

    def close(self) -> None:
        """Do nothing."""


class IdleWork(LayeredWork):
    """Work (`hideaway.hw.engine.work.Work`) that computes nothing and notes what passes between its calls.

    Parameters
    ----------
    num_layers : int
        Layers with routed experts.
    sweep : callable
        Called where dense work would be done: reads memory, so that the engine's own finds the cache as cold as
        after real work.

    Attributes
    ----------
    answers, between_visits, between_forwards : list of float
        Seconds from the end of the router to the first expert or the layer's end; from a layer's end to the next
        layer; from a forward's end to the first layer of the next, draft and route left out. The first forward,
        in which everything is met for the first time, is left out.
    """

    def __init__(self, num_layers: int, sweep: Callable[[], object]) -> None:
        self.num_layers = num_layers
        self._needed: tuple[int, ...] = ()
        self._sweep = sweep
        self.answers: list[float] = []
        self.between_visits: list[float] = []
        self.between_forwards: list[float] = []
        self._counts = False
        self._left = 0.0
        self._routed = self._visit_over = self._forward_over = False

    def draft(self, seats: tuple[Seat, ...]) -> None:
        """Do nothing."""

    def route(self, seats: tuple[Seat, ...], exact_depth: int, num_layers: int) -> None:
        """Do nothing."""

    def begin(self, forward: ForwardWork) -> None:
        """Note whether the forward counts. Changes state."""
        self._counts = forward.prefill is None
        self._needed = forward.replayed.needed

    def dense(self, layer: int) -> None:
        """Note what passed since the last layer or forward, and read memory. Changes state."""
        passed = time.perf_counter() - self._left
        if self._counts and self._forward_over:
            self.between_forwards.append(passed)
        elif self._counts and self._visit_over:
            self.between_visits.append(passed)
        self._forward_over = self._visit_over = False
        self._sweep()
        self._routed = True
        self._left = time.perf_counter()

    def learn_routing(self, layer: int) -> None:
        """Do nothing."""

    def needed(self, layer: int) -> int:
        """Return the replayed mask."""
        return self._needed[layer]

    def hits(self, layer: int, experts: dict[int, int]) -> None:
        """Note when the answer came. Changes state."""
        self._answered()

    def arrival(self, layer: int, expert: int, slot: int) -> None:
        """Note when the answer came. Changes state."""
        self._answered()

    def finish_layer(self, layer: int) -> None:
        """Note when the layer ended. Changes state."""
        self._answered()
        self._visit_over = True
        self._left = time.perf_counter()

    def finish_forward(self) -> None:
        """Note when the forward ended. Changes state."""
        self._forward_over = True
        self._left = time.perf_counter()

    def forget(self, seq_id: int) -> None:
        """Do nothing."""

    def _answered(self) -> None:
        if self._routed and self._counts:
            self.answers.append(time.perf_counter() - self._left)
        self._routed = False
