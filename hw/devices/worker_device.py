"""A device made of a queue, worker threads and something that moves bytes: what disk, paced memory and CUDA share.

Here are the checks of what is asked and the facts for a result file; `workers.py` runs the threads.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hideaway.hw.devices.base import Arrival, Transfer
from hideaway.hw.devices.mover import Mover
from hideaway.hw.devices.transfer_queue import TransferQueue
from hideaway.hw.devices.workers import WorkerPool
from hideaway.sim.commands import Band
from hideaway.sim.number_checks import whole_number
from hideaway.sim.world.copies import LinkOptions

if TYPE_CHECKING:
    import torch

DEFAULT_RETRIES = 2
"""Attempts after the first; transient read errors are gone by then, and a broken sector costs three reads."""


class WorkerDevice:
    """A device (`hideaway.hw.devices.base.TransferDevice`) whose pieces are moved by threads.

    Parameters
    ----------
    mover : Mover
        Moves one piece.
    num_layers, num_experts : int
        What can be asked for.
    transfer_bytes : int
        Size of every transfer, at most a slot.
    options : LinkOptions, optional
        Batching, submitted depth, chunks, streams.
    num_movers : int
        Mover threads.
    retries : int
        Attempts after the first before a transfer is reported as failed.
    verify : bool
        Check every expert after its last piece; a mismatch counts as a failed attempt.
    """

    def __init__(
        self,
        mover: Mover[Any],
        *,
        num_layers: int,
        num_experts: int,
        transfer_bytes: int,
        options: LinkOptions | None = None,
        num_movers: int = 1,
        retries: int = DEFAULT_RETRIES,
        verify: bool = False,
    ) -> None:
        self.options = options or LinkOptions()
        self._mover = mover
        self._num_layers, self._num_experts = num_layers, num_experts
        self._transfer_bytes = whole_number(
            "transfer_bytes", transfer_bytes, minimum=1, maximum=mover.slot_bytes
        )
        self._retries = whole_number("retries", retries)
        self._verify = verify
        self._pool = WorkerPool(
            mover,
            TransferQueue(transfer_bytes, self.options),
            transfer_bytes=transfer_bytes,
            num_movers=whole_number("num_movers", num_movers, minimum=1),
            retries=self._retries,
            verify=verify,
        )

    @property
    def num_slots(self) -> int:
        """Slots of the arena."""
        return self._mover.num_slots

    @property
    def slot_bytes(self) -> int:
        """Bytes of a slot, a multiple of a page."""
        return self._mover.slot_bytes

    def now_seconds(self) -> float:
        """Return the time on the clock that arrivals carry."""
        return self._mover.now_seconds()

    def slot_tensor(self, slot: int) -> torch.Tensor:
        """Return the bytes of a slot as a uint8 tensor of shape (slot_bytes,), without a copy."""
        return self._mover.slot_tensor(slot)

    def facts(self) -> dict[str, object]:
        """Return the options that a result file must state; devices add what is theirs."""
        return {
            "place": self._mover.place,
            "num_slots": self.num_slots,
            "slot_bytes": self.slot_bytes,
            "submitted_depth": self.options.submitted_depth,
            "chunk_bytes": self.options.chunk_bytes,
            "batched": self.options.batched,
            "streams": self.options.streams,
            "retries": self._retries,
            "verified": self._verify,
        }

    def submit(self, transfers: Sequence[Transfer], band: Band) -> None:
        """Queue transfers; a queued one is promoted to `band`, one in flight is joined. Changes state.

        Raises
        ------
        InputError
            An expert or a slot does not exist.
        HideawayError
            A slot is the target of another transfer.
        """
        limits = {"layer": self._num_layers, "expert": self._num_experts, "slot": self.num_slots}
        for name, limit in limits.items():
            largest = max((getattr(transfer, name) for transfer in transfers), default=0)
            whole_number(name, largest, maximum=limit - 1)
        with self._pool.lock:
            self._pool.queue.submit(transfers, band)
            self._pool.feed()
        time.sleep(0)  # hand Python's lock to a mover now: this thread may keep it for milliseconds

    def promote(self, layer: int, experts: int) -> None:
        """Move queued transfers to the on-demand band; submitted ones stay where they are. Changes state."""
        with self._pool.lock:
            self._pool.queue.promote(layer, experts)

    def cancel(self, layer: int, experts: int) -> int:
        """Drop queued transfers of which nothing was submitted; return their mask. Changes state."""
        with self._pool.lock:
            dropped = self._pool.queue.cancel(layer, experts)
            self._pool.landed.notify_all()  # somebody may wait for what will now never arrive
            return dropped

    def outstanding(self) -> int:
        """Return how many transfers have neither ended nor been cancelled; changes nothing."""
        with self._pool.lock:
            return len(self._pool.queue)

    def poll(self) -> list[Arrival]:
        """Take what has arrived, in order of arrival; never blocks. Changes state."""
        with self._pool.lock:
            return self._take_arrived()

    def wait(self, timeout_seconds: float | None = None) -> list[Arrival]:
        """Take what has arrived, after blocking until there is something. Changes state.

        Returns an empty list when nothing is outstanding or the timeout has passed.
        """
        pool = self._pool
        with pool.lock:
            pool.landed.wait_for(lambda: pool.arrived or not len(pool.queue), timeout_seconds)
            return self._take_arrived()

    def close(self) -> None:
        """Fail what is queued, let what is submitted end, stop the workers. Changes state."""
        self._pool.close()

    def __enter__(self) -> WorkerDevice:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take_arrived(self) -> list[Arrival]:
        taken = list(self._pool.arrived)
        self._pool.arrived.clear()
        return taken
