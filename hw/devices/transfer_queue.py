"""Which transfer moves next: bands, promotion, joining, chunks and how much is submitted at once.

The order is that of `hideaway.sim.world.link.Link`, which a test holds the two to. There is no clock, no thread and
no I/O here: a device calls `take` whenever it can accept work and reports each piece with `moved`. A transfer passes
through *queued* (in a band, can be promoted and cancelled), *half moved* (some chunks submitted: can be promoted),
*submitted* (neither) and ends once, in `retire`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from hideaway.hw.devices.base import PAGE_BYTES, Arrival, Copy, Transfer
from hideaway.sim.commands import Band
from hideaway.sim.errors import HideawayError, InputError
from hideaway.sim.masks import experts_of
from hideaway.sim.number_checks import whole_number
from hideaway.sim.world.copies import LinkOptions


@dataclass(frozen=True, slots=True)
class Piece:
    """`num_bytes` of an expert from `offset_bytes` on: a whole transfer, or one chunk of it."""

    transfer: Transfer
    band: Band
    offset_bytes: int
    num_bytes: int


@dataclass(slots=True, eq=False)
class _Pending:
    transfer: Transfer
    band: Band
    left_bytes: int
    on_device: int = 0
    copies: list[Copy] = field(default_factory=list)
    retries: int = 0
    failure: str | None = None


class TransferQueue:
    """Transfers of one size in three bands; first in, first out inside a band, experts of a submission ascending.

    Parameters
    ----------
    transfer_bytes : int
        Size of every transfer.
    options : LinkOptions
        Batched issue (a unit is all that one submission asked of one layer; chunks are then not used), units on
        the device at once, and the size of a chunk.

    Raises
    ------
    InputError
        The chunk is not a multiple of a page.
    """

    def __init__(self, transfer_bytes: int, options: LinkOptions) -> None:
        whole_number("transfer_bytes", transfer_bytes, minimum=1)
        if options.chunk_bytes % PAGE_BYTES:
            raise InputError(
                f"chunk_bytes is {options.chunk_bytes} but must be a multiple of {PAGE_BYTES}, or 0 for whole experts"
            )
        self._transfer_bytes = transfer_bytes
        self._options = options
        self._bands: tuple[deque[list[_Pending]], ...] = tuple(deque() for _ in Band)
        self._known: dict[tuple[int, int], _Pending] = {}
        self._slots: dict[int, Transfer] = {}
        self._units_on_device = 0

    def __len__(self) -> int:
        return len(self._known)

    def submit(self, transfers: Sequence[Transfer], band: Band) -> None:
        """Queue transfers; a queued one moves to a more urgent `band`, one in flight is joined. Changes state.

        Raises
        ------
        HideawayError
            A slot is already the target of another transfer, or an expert is on its way to another slot; nothing
            is queued then.
        """
        self._check_slots(transfers)
        by_layer: dict[int, dict[int, Transfer]] = {}
        for transfer in transfers:
            by_layer.setdefault(transfer.layer, {})[transfer.expert] = transfer
        for layer, wanted in by_layer.items():
            joined = [expert for expert in wanted if (layer, expert) in self._known]
            fresh = [wanted[expert] for expert in sorted(wanted.keys() - joined)]
            if joined:
                self._raise_to(layer, joined, band)
            if fresh:
                entry = [_Pending(transfer, band, self._transfer_bytes) for transfer in fresh]
                self._bands[band].append(entry)
                for pending in entry:
                    self._known[layer, pending.transfer.expert] = pending
                    self._slots[pending.transfer.slot] = pending.transfer

    def promote(self, layer: int, experts: int) -> None:
        """Move queued experts to the on-demand band, half-moved ones first; submitted ones stay. Changes state."""
        self._raise_to(layer, experts_of(experts), Band.ON_DEMAND)

    def cancel(self, layer: int, experts: int) -> int:
        """Drop queued experts of which nothing was submitted and return their mask. Changes state."""
        dropped = 0
        for expert in experts_of(experts):
            pending = self._known.get((layer, expert))
            if pending is not None and pending.left_bytes == self._transfer_bytes:
                self._unqueue(pending)
                self._forget(pending)
                dropped |= 1 << expert
        return dropped

    def take(self) -> tuple[Piece, ...]:
        """Return the unit to submit now, or nothing when none is queued or the device is full. Changes state."""
        if self._units_on_device >= self._options.submitted_depth:
            return ()
        queue = next((queue for queue in self._bands if queue), None)
        if queue is None:
            return ()
        self._units_on_device += 1
        entry = queue[0]
        chosen = list(entry) if self._options.batched else entry[:1]
        pieces = tuple([self._piece(pending) for pending in chosen])
        del entry[: sum(pending.left_bytes == 0 for pending in chosen)]
        if not entry:
            queue.popleft()
        return pieces

    def moved(self, piece: Piece, copy: Copy | None, *, retries: int = 0, failure: str | None = None) -> bool:
        """Note the end of a piece and return whether its transfer is at its end and must be retired. Changes state.

        After a failure the chunks that are still queued are dropped; those already submitted are awaited, because
        they write into the slot.
        """
        pending = self._known[piece.transfer.layer, piece.transfer.expert]
        pending.on_device -= 1
        pending.retries += retries
        if copy is not None:
            pending.copies.append(copy)
        if failure is not None:
            pending.failure = pending.failure or failure
            if pending.left_bytes:
                self._unqueue(pending)
                pending.left_bytes = 0
        return pending.on_device == 0 and pending.left_bytes == 0

    def has_failed(self, transfer: Transfer) -> bool:
        """Return whether a piece of this transfer has failed; changes nothing."""
        return self._known[transfer.layer, transfer.expert].failure is not None

    def retire(self, transfer: Transfer, *, retries: int = 0, failure: str | None = None) -> Arrival:
        """End a transfer, with a failure found after its last piece if there is one. Changes state."""
        pending = self._known[transfer.layer, transfer.expert]
        self._forget(pending)
        return Arrival(
            transfer.layer,
            transfer.expert,
            transfer.slot,
            pending.band,
            tuple(pending.copies),
            pending.retries + retries,
            pending.failure or failure,
        )

    def unit_ended(self) -> None:
        """Note that all pieces of a unit have ended, so that another may be submitted. Changes state."""
        self._units_on_device -= 1

    def fail_queued(
        self, failure: Callable[[Transfer], str], *, even_submitted: bool = False
    ) -> list[Transfer]:
        """Fail what is queued and return the transfers that can be retired at once. Changes state.

        A half-moved transfer ends when the chunks that were submitted do, unless `even_submitted`: then all that is
        known ends, and nothing must be reported as moved any more.
        """
        ended = []
        for pending in list(self._known.values()):
            if pending.left_bytes:
                self._unqueue(pending)
                pending.left_bytes = 0
            elif not even_submitted:
                continue
            pending.failure = pending.failure or failure(pending.transfer)
            if even_submitted or not pending.on_device:
                ended.append(pending.transfer)
        return ended

    def _piece(self, pending: _Pending) -> Piece:
        whole = self._options.batched or not self._options.chunk_bytes
        size = pending.left_bytes if whole else min(self._options.chunk_bytes, pending.left_bytes)
        offset = self._transfer_bytes - pending.left_bytes
        pending.left_bytes -= size
        pending.on_device += 1
        return Piece(pending.transfer, pending.band, offset, size)

    def _raise_to(self, layer: int, experts: Iterable[int], band: Band) -> None:
        wanted = {id(self._known[layer, expert]) for expert in experts if (layer, expert) in self._known}
        if not wanted:
            return
        found = [
            pending
            for queue in self._bands[band + 1 :]
            for entry in queue
            for pending in entry
            if id(pending) in wanted
        ]
        started = [pending for pending in found if pending.left_bytes != self._transfer_bytes]
        whole = [pending for pending in found if pending.left_bytes == self._transfer_bytes]
        for pending in found:
            self._unqueue(pending)
            pending.band = band
        for pending in started:
            self._bands[band].append([pending])
        if whole:
            self._bands[band].append(sorted(whole, key=lambda pending: pending.transfer.expert))

    def _unqueue(self, pending: _Pending) -> None:
        queue = self._bands[pending.band]
        for entry in queue:
            if any(member is pending for member in entry):
                entry[:] = [member for member in entry if member is not pending]
                if not entry:
                    queue.remove(entry)
                return

    def _forget(self, pending: _Pending) -> None:
        del self._known[pending.transfer.layer, pending.transfer.expert]
        del self._slots[pending.transfer.slot]

    def _check_slots(self, transfers: Sequence[Transfer]) -> None:
        by_slot: dict[int, Transfer] = {}
        by_expert: dict[tuple[int, int], Transfer] = {}
        for transfer in transfers:
            key = (transfer.layer, transfer.expert)
            known = self._known.get(key)
            same = known.transfer if known is not None else by_expert.setdefault(key, transfer)
            if same.slot != transfer.slot:
                raise HideawayError(
                    f"layer {transfer.layer} expert {transfer.expert} is already on its way to slot {same.slot} and "
                    f"cannot go to slot {transfer.slot} too; wait for it or cancel it"
                )
            other = self._slots.get(transfer.slot) or by_slot.setdefault(transfer.slot, transfer)
            if other != transfer:
                raise HideawayError(
                    f"slot {transfer.slot} is the target of layer {other.layer} expert {other.expert} and cannot take "
                    f"layer {transfer.layer} expert {transfer.expert}; wait for that transfer or choose another slot"
                )
