"""Threads that move what `transfer_queue.py` decides, and every fault on the way turned into a failed arrival.

A unit that is taken from the queue is *submitted*: a mover thread moves its pieces one by one and can be told of
neither promotion nor cancelling. It does nothing else, so that the link is idle between two pieces only as long as
Python needs to start the next. The settler thread takes what has moved, checks it, reports it and submits more.

An attempt that fails is repeated; a mover that is killed is replaced and its attempt counts as failed; after the
stated number of attempts the transfer ends as an arrival with `failure` set, and the others go on. One lock guards
the queue and the arrivals; it is never held while bytes move. `worker_device.py` is what callers see.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from hideaway.hw.devices.base import Arrival, Copy, Transfer
from hideaway.hw.devices.mover import CopyError, Mover
from hideaway.hw.devices.transfer_queue import Piece, TransferQueue
from hideaway.sim.commands import Band


@dataclass(slots=True, eq=False)
class _Part:
    """A piece on its way: what `Mover.begin` returned (or raised), how it ended."""

    piece: Piece
    begun: object = None
    is_begun: bool = False
    failed_attempts: int = 0
    copy: Copy | None = None
    failure: str | None = None
    ends_unit: bool = False


_Unit = deque[_Part]


class WorkerPool:
    """Threads, the queue they serve and what they have finished.

    Parameters
    ----------
    mover : Mover
        Moves one piece.
    queue : TransferQueue
        Decides what is submitted next; touched only while `lock` is held.
    transfer_bytes : int
        Size of every transfer.
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
        queue: TransferQueue,
        *,
        transfer_bytes: int,
        num_movers: int,
        retries: int,
        verify: bool,
    ) -> None:
        self.queue = queue
        self.lock = threading.Lock()
        self.landed = threading.Condition(self.lock)
        self.arrived: deque[Arrival] = deque()
        self._mover = mover
        self._transfer_bytes = transfer_bytes
        self._retries = retries
        self._verify = verify
        self._submitted: SimpleQueue[_Unit | None] = SimpleQueue()
        self._moved: SimpleQueue[_Part | None] = SimpleQueue()
        self._refusal: str | None = None
        self._movers: set[threading.Thread] = set()
        self._settler = threading.Thread(target=self._settle_all, name="settles transfers", daemon=True)
        self._settler.start()
        with self.lock:
            for _ in range(num_movers):
                self._start_mover()

    def feed(self) -> None:
        """Submit units, and start them, while the device has room; the lock is held. Changes state."""
        if self._refusal is not None:
            self._fail_queued(self._refusal)
        while pieces := self.queue.take():
            unit = deque([_Part(piece) for piece in pieces])
            unit[-1].ends_unit = True
            for part in unit:
                self._begin(part)
            self._submitted.put(unit)

    def close(self) -> None:
        """Fail what is queued, let what is submitted end, stop the threads. Changes state."""
        with self.lock:
            self._refusal = self._refusal or "the device is closed"
            self.feed()
        self._submitted.put(None)
        while True:
            with self.lock:
                mover = next(iter(self._movers), None)
            if mover is None:
                break
            mover.join()
        self._moved.put(None)
        self._settler.join()

    def _fail_queued(self, reason: str, *, even_submitted: bool = False) -> None:
        """End what is queued as failed; the lock is held."""

        def sentence(transfer: Transfer) -> str:
            return f"{self._name(transfer)} was not moved: {reason}"

        for transfer in self.queue.fail_queued(sentence, even_submitted=even_submitted):
            self._report(self.queue.retire(transfer))

    def _start_mover(self, unit: _Unit | None = None) -> None:
        """Start a mover, which may inherit a unit; without any mover everything fails. The lock is held."""
        thread = threading.Thread(target=self._move_all, args=(unit,), name="moves transfers", daemon=True)
        self._movers.add(thread)
        try:
            thread.start()
        except RuntimeError as error:
            self._movers.discard(thread)
            if unit:
                self._submitted.put(unit)
            if not self._movers:
                self._refusal = f"no thread could be started to move it ({error})"
                self._fail_submitted(self._refusal)
                self._fail_queued(self._refusal)

    def _fail_submitted(self, reason: str) -> None:
        while not self._submitted.empty():
            for part in self._submitted.get() or ():
                part.failure = f"{self._name(part.piece.transfer)} was not moved: {reason}"
                self._moved.put(part)

    # --- on a mover thread

    def _move_all(self, unit: _Unit | None) -> None:
        """Move units until told to stop; whatever else ends this thread, another takes over."""
        reason = "its thread was killed"
        try:
            while unit is not None or (unit := self._submitted.get()) is not None:
                while unit:
                    if self._move(unit[0]):
                        self._moved.put(unit.popleft())
                unit = None
            self._submitted.put(None)  # for the other movers
        except BaseException as error:
            reason = f"its thread was killed by {type(error).__name__}"
        finally:
            self._leave(unit, reason)

    def _leave(self, unit: _Unit | None, reason: str) -> None:
        """Take leave of the current mover; what it held goes to another, as one more failed attempt."""
        with self.lock:
            self._movers.discard(threading.current_thread())
            if unit:
                for part in unit:
                    part.is_begun = False
                if self._attempt_failed(unit[0], reason):
                    self._moved.put(unit.popleft())
            if unit or self._refusal is None:
                self._start_mover(unit)

    def _move(self, part: _Part) -> bool:
        """Make one attempt at a piece and return whether it has ended, well or badly."""
        try:
            part.copy = self._attempt(part)
        except Exception as error:
            return self._attempt_failed(part, _reason(error))
        return True

    def _attempt(self, part: _Part) -> Copy:
        if not part.is_begun:
            with self.lock:
                self._begin(part)
        begun, part.is_begun = part.begun, False
        if isinstance(begun, Exception):
            raise begun
        start_seconds, end_seconds = self._mover.end(part.piece, begun)
        return Copy(start_seconds, end_seconds, part.piece.num_bytes)

    def _begin(self, part: _Part) -> None:
        """Start one piece; what it raises is kept for the attempt that ends it. The lock is held."""
        try:
            part.begun = self._mover.begin(part.piece)
        except Exception as error:
            part.begun = error
        part.is_begun = True

    def _attempt_failed(self, part: _Part, reason: str) -> bool:
        """Count a failed attempt and return whether it was the last."""
        if part.failed_attempts == self._retries:
            attempts = f"{self._retries + 1} attempts" if self._retries else "1 attempt"
            part.failure = f"{self._name(part.piece.transfer)} could not be moved in {attempts}: {reason}"
            return True
        part.failed_attempts += 1
        return False

    # --- on the settler thread

    def _settle_all(self) -> None:
        """Settle pieces until told to stop; if anything else ends this thread, every transfer fails."""
        try:
            while (part := self._moved.get()) is not None:
                self._settle(part)
        except BaseException as error:
            with self.lock:
                self._refusal = f"the thread that settles transfers was killed by {_reason(error)}"
                self._fail_queued(self._refusal, even_submitted=True)

    def _settle(self, part: _Part) -> None:
        """Note the end of a piece, report its transfer if that was the last, and submit more."""
        transfer = part.piece.transfer
        with self.lock:
            ended = self.queue.moved(
                part.piece, part.copy, retries=part.failed_attempts, failure=part.failure
            )
            if part.ends_unit:
                self.queue.unit_ended()
                self.feed()
            unchecked = ended and self._verify and not self.queue.has_failed(transfer)
        if ended:
            again = self._checked(part) if unchecked else _Part(part.piece)
            with self.lock:
                self._report(
                    self.queue.retire(transfer, retries=again.failed_attempts, failure=again.failure)
                )

    def _checked(self, part: _Part) -> _Part:
        """Return how the check of an expert ended, after moving it again where it was corrupt."""
        transfer, earlier = part.piece.transfer, part.failed_attempts
        again = _Part(Piece(transfer, Band.ON_DEMAND, 0, self._transfer_bytes), failed_attempts=earlier)
        ended = False
        while not ended:
            try:
                if again.failed_attempts > earlier:
                    self._attempt(again)
                self._mover.check(transfer.layer, transfer.expert, transfer.slot)
                ended = True
            except BaseException as error:  # also what would end this thread
                ended = self._attempt_failed(again, _reason(error))
        again.failed_attempts -= earlier
        return again

    def _report(self, arrival: Arrival) -> None:
        self.arrived.append(arrival)
        self.landed.notify_all()

    def _name(self, transfer: Transfer) -> str:
        place, slot = self._mover.place, transfer.slot
        return f"layer {transfer.layer} expert {transfer.expert} from {place} to slot {slot}"


def _reason(error: BaseException) -> str:
    """Return why an attempt failed, as a clause."""
    if isinstance(error, CopyError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
