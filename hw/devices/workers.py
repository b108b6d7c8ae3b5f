"""Threads that move what `transfer_queue.py` decides, and every fault on the way turned into a failed arrival.

A unit that is taken from the queue is *submitted*: it waits for a worker and can be neither promoted nor cancelled.
A worker moves its pieces one by one, then settles the transfer: checks it and reports its end. An attempt that fails
is repeated; a worker that is killed is replaced and its attempt counts as failed; after the stated number of
attempts the transfer ends as an arrival with `failure` set, and the others go on. One lock guards all state; it is
never held while bytes move. `worker_device.py` is what callers see.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

from hideaway.hw.devices.base import Arrival, Copy, Transfer
from hideaway.hw.devices.mover import CopyError, Mover
from hideaway.hw.devices.transfer_queue import Piece, TransferQueue
from hideaway.sim.commands import Band


@dataclass(slots=True, eq=False)
class _Part:
    piece: Piece
    begun: object = None
    is_begun: bool = False


@dataclass(slots=True, eq=False)
class _Unit:
    """What one worker holds: pieces to move, then the transfer to settle; attempts of the present one that failed."""

    parts: deque[_Part]
    settling: Transfer | None = None
    failed_attempts: int = 0


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
    retries : int
        Attempts after the first before a transfer is reported as failed.
    verify : bool
        Check every expert after its last piece; a mismatch counts as a failed attempt.
    """

    def __init__(
        self, mover: Mover, queue: TransferQueue, *, transfer_bytes: int, num_workers: int, retries: int, verify: bool
    ) -> None:
        self.queue = queue
        self.lock = threading.Lock()
        self.landed = threading.Condition(self.lock)
        self.arrived: deque[Arrival] = deque()
        self._mover = mover
        self._transfer_bytes = transfer_bytes
        self._retries = retries
        self._verify = verify
        self._submitted: deque[_Unit] = deque()
        self._work = threading.Condition(self.lock)
        self._closing = False
        self._broken: str | None = None
        self._workers: set[threading.Thread] = set()
        with self.lock:
            for _ in range(num_workers):
                self._start_worker()

    def feed(self) -> None:
        """Submit units, and start them, while the device has room; the lock is held. Changes state."""
        refused = "the device is closed" if self._closing else self._broken
        if refused is not None:
            self.fail_queued(refused)
            return
        while pieces := self.queue.take():
            unit = _Unit(deque([_Part(piece) for piece in pieces]))
            for part in unit.parts:
                self._begin(part)
            self._submitted.append(unit)
            self._work.notify()

    def close(self) -> None:
        """Fail what is queued, let what is submitted end, stop the workers. Changes state."""
        with self.lock:
            self._closing = True
            self.feed()
            self._work.notify_all()
        while True:
            with self.lock:
                worker = next(iter(self._workers), None)
            if worker is None:
                return
            worker.join()

    def fail_queued(self, reason: str) -> None:
        """End what is queued as failed; the lock is held. Changes state."""

        def sentence(transfer: Transfer) -> str:
            return f"{self._name(transfer)} was not moved: {reason}"

        for transfer in self.queue.fail_queued(sentence):
            self.arrived.append(self.queue.retire(transfer))
        self.landed.notify_all()

    def _start_worker(self) -> None:
        """Start one worker; without any, everything fails at once. The lock is held."""
        worker = threading.Thread(target=self._serve, name=f"transfers from {self._mover.place}", daemon=True)
        self._workers.add(worker)
        try:
            worker.start()
        except RuntimeError as error:
            self._workers.discard(worker)
            if self._workers:
                return
            self._broken = f"no thread could be started to move it ({error})"
            self.fail_queued(self._broken)
            while self._submitted:
                unit = self._submitted.popleft()
                while unit.parts or unit.settling:
                    self._give_up(unit, self._broken)
                self.queue.unit_ended()

    def _serve(self) -> None:
        """Move units until the device closes. Whatever ends this thread is reported and another takes over."""
        unit: _Unit | None = None
        reason = "its worker thread was killed"
        try:
            while (unit := self._next_unit()) is not None:
                while unit.parts or unit.settling:
                    if unit.settling is None:
                        self._move_next(unit)
                    else:
                        self._settle(unit, unit.settling)
                with self.lock:
                    unit = None
                    self.queue.unit_ended()
                    self.feed()
        except BaseException as error:
            reason = f"its worker thread was killed by {type(error).__name__}"
        finally:
            self._leave(unit, reason)

    def _leave(self, unit: _Unit | None, reason: str) -> None:
        """End the current worker's part; what it held goes to another, as one more failed attempt."""
        with self.lock:
            self._workers.discard(threading.current_thread())
            if unit is not None:
                for part in unit.parts:
                    part.begun, part.is_begun = None, False
                unit.failed_attempts += 1
                if unit.failed_attempts > self._retries:
                    self._give_up(unit, reason)
                self._submitted.appendleft(unit)
            if self._submitted or not self._closing:
                self._start_worker()
            self.landed.notify_all()

    def _next_unit(self) -> _Unit | None:
        """Wait for a unit; None when the device closes."""
        with self.lock:
            while not self._submitted:
                if self._closing:
                    return None
                self._work.wait()
            return self._submitted.popleft()

    def _begin(self, part: _Part) -> None:
        """Start one piece; a failure is kept for the attempt that ends it. The lock is held."""
        try:
            part.begun = self._mover.begin(part.piece)
        except Exception as error:
            part.begun = error
        part.is_begun = True

    def _move_next(self, unit: _Unit) -> None:
        """Make one attempt at the first piece of a unit. Changes state."""
        part = unit.parts[0]
        with self.lock:
            if self.queue.has_failed(part.piece.transfer):
                self._end_piece(unit, None)
                return
        try:
            copy = self._attempt(part)
        except Exception as error:
            unit.failed_attempts += 1
            if unit.failed_attempts > self._retries:
                with self.lock:
                    self._give_up(unit, _reason(error))
            return
        with self.lock:
            self._end_piece(unit, copy)

    def _attempt(self, part: _Part) -> Copy:
        if not part.is_begun:
            with self.lock:
                self._begin(part)
        begun, part.is_begun = part.begun, False
        if isinstance(begun, Exception):
            raise begun
        start_seconds, end_seconds = self._mover.end(part.piece, begun)
        return Copy(start_seconds, end_seconds, part.piece.num_bytes)

    def _end_piece(self, unit: _Unit, copy: Copy | None, failure: str | None = None) -> None:
        """Take the first piece off a unit; the lock is held."""
        piece = unit.parts[0].piece
        if self.queue.moved(piece, copy, retries=unit.failed_attempts, failure=failure):
            unit.settling = piece.transfer
        unit.parts.popleft()
        unit.failed_attempts = 0

    def _settle(self, unit: _Unit, transfer: Transfer) -> None:
        """Check a transfer of which all has moved, move it again while it is corrupt, and report its end."""
        with self.lock:
            check = self._verify and not self.queue.has_failed(transfer)
        failure = self._checked(unit, transfer) if check else None
        with self.lock:
            self._retire(unit, transfer, failure)

    def _checked(self, unit: _Unit, transfer: Transfer) -> str | None:
        whole = _Part(Piece(transfer, Band.ON_DEMAND, 0, self._transfer_bytes))
        while True:
            try:
                if unit.failed_attempts:
                    self._attempt(whole)
                self._mover.check(transfer.layer, transfer.expert, transfer.slot)
                return None
            except Exception as error:
                unit.failed_attempts += 1
                if unit.failed_attempts > self._retries:
                    return self._sentence(transfer, _reason(error))

    def _retire(self, unit: _Unit, transfer: Transfer, failure: str | None) -> None:
        """Report the end of a transfer; the lock is held."""
        self.arrived.append(self.queue.retire(transfer, retries=unit.failed_attempts, failure=failure))
        unit.settling = None
        unit.failed_attempts = 0
        self.landed.notify_all()

    def _give_up(self, unit: _Unit, reason: str) -> None:
        """End the transfer that a unit is at as failed; the lock is held."""
        unit.failed_attempts = self._retries
        if unit.settling is not None:
            self._retire(unit, unit.settling, self._sentence(unit.settling, reason))
        else:
            self._end_piece(unit, None, self._sentence(unit.parts[0].piece.transfer, reason))

    def _sentence(self, transfer: Transfer, reason: str) -> str:
        attempts = f"{self._retries + 1} attempts" if self._retries else "1 attempt"
        return f"{self._name(transfer)} could not be moved in {attempts}: {reason}"

    def _name(self, transfer: Transfer) -> str:
        return f"layer {transfer.layer} expert {transfer.expert} from {self._mover.place} to slot {transfer.slot}"


def _reason(error: Exception) -> str:
    """Return why an attempt failed, as a clause."""
    if isinstance(error, CopyError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
