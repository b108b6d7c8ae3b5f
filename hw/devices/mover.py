"""What moves the bytes of one piece: the only part in which the three devices differ.

`workers.py` calls `begin` when a piece is submitted, in the order of the queue, and `end` on a mover thread. Tests
wrap a mover's reader to inject faults; nothing here knows of that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from hideaway.hw.devices.transfer_queue import Piece
from hideaway.sim.errors import HideawayError

if TYPE_CHECKING:
    import torch


Begun = TypeVar("Begun")


class CopyError(HideawayError):
    """One attempt to move a piece failed; the message is the reason, a clause without a full stop."""


class Reader(Protocol):
    """Where expert bytes come from."""

    @property
    def place(self) -> str:
        """What to call it in an error: a path, or a description of the memory."""

    def read_into(self, offset: int, into: npt.NDArray[np.uint8]) -> int:
        """Fill `into` from byte `offset` on and return how many bytes were read.

        Raises
        ------
        OSError
            The read failed.
        """


class Mover(Protocol[Begun]):
    """Moves pieces into slots; `Begun` is what it hands from `begin` to `end`."""

    @property
    def place(self) -> str:
        """Where the bytes come from, for errors."""

    @property
    def num_slots(self) -> int:
        """Slots of the arena."""

    @property
    def slot_bytes(self) -> int:
        """Bytes of a slot."""

    def slot_tensor(self, slot: int) -> torch.Tensor:
        """Return the bytes of a slot as a uint8 tensor, without a copy."""

    def now_seconds(self) -> float:
        """Return the time on the clock of the copies."""

    def begin(self, piece: Piece) -> Begun:
        """Start a piece, or prepare it, and return at once."""

    def end(self, piece: Piece, begun: Begun) -> tuple[float, float]:
        """Finish a piece and return when it started and ended.

        Raises
        ------
        CopyError, OSError
            The attempt failed; the slot holds nothing of use.
        """

    def check(self, layer: int, expert: int, slot: int) -> None:
        """Raise CopyError if the slot does not hold the expert that it should."""
