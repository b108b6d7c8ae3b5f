"""Reads that go past the page cache, so that what is measured is the disk and not the memory.

O_DIRECT wants page-aligned offsets, lengths and addresses; stores and arenas have them. Where the file system
refuses it, reads are buffered and the pages dropped after each one, and the reason stands in `fallback_reason`.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hideaway.hw.devices.base import PAGE_BYTES
from hideaway.sim.errors import InputError


class DirectReader:
    """One file, read with O_DIRECT where the file system allows it.

    Attributes
    ----------
    fallback_reason : str or None
        Why reads are buffered; None when they are direct.

    Raises
    ------
    InputError
        The file cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.place = str(Path(path))
        try:
            self._descriptor, self.fallback_reason = _open(self.place)
        except OSError as error:
            raise InputError(
                f"cannot read experts from {self.place}: {error.strerror or error}; check the path"
            ) from error

    def read_into(self, offset: int, into: npt.NDArray[np.uint8]) -> int:
        """Fill `into` from byte `offset` on and return how many bytes were read.

        Raises
        ------
        OSError
            The read failed.
        """
        count = os.preadv(self._descriptor, [into.data], offset)
        if self.fallback_reason is not None:
            os.posix_fadvise(self._descriptor, offset, count, os.POSIX_FADV_DONTNEED)
        return count

    def close(self) -> None:
        """Close the file; closing again does nothing. Changes state."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _open(path: str) -> tuple[int, str | None]:
    """Return a descriptor, for direct reads if possible, and otherwise the reason why not."""
    buffered = os.open(path, os.O_RDONLY)
    if not hasattr(os, "O_DIRECT"):
        return buffered, "this system has no O_DIRECT"
    try:
        direct = os.open(path, os.O_RDONLY | os.O_DIRECT)
    except OSError as error:
        return buffered, f"the file system refuses O_DIRECT ({error.strerror or error})"
    try:
        os.preadv(direct, [mmap.mmap(-1, PAGE_BYTES)], 0)
    except OSError as error:  # some file systems open but do not read
        os.close(direct)
        return buffered, f"the file system opens with O_DIRECT but does not read ({error.strerror or error})"
    os.close(buffered)
    return direct, None
