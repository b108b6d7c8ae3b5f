"""Reading a store: open it, read single experts, find damage.

Opening looks at the index and the size of the data file only; checksums are compared where asked. Devices read the
data file themselves, at `offset_bytes`.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hideaway.hw.store.description import StoreDescription
from hideaway.hw.store.header import LENGTH_BYTES
from hideaway.hw.store.index_file import DATA_NAME, INDEX_NAME, StoreIndex, read_index
from hideaway.sim.errors import InputError

Bytes = npt.NDArray[np.uint8]


class ExpertStore:
    """Experts of one model in a folder, one contiguous page-aligned blob each.

    Parameters
    ----------
    path : str or path
        The folder that `hideaway pack` wrote.

    Raises
    ------
    InputError
        The folder is not a store, or its files contradict each other.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not (self.path / INDEX_NAME).is_file():
            raise InputError(
                f"{str(path)!r} is not an expert store (no {INDEX_NAME}); make one with `hideaway pack`"
            )
        self._index: StoreIndex = read_index(self.path)
        self.data_path = self.path / DATA_NAME
        self._check_data_file()

    @property
    def description(self) -> StoreDescription:
        """What the store holds."""
        return self._index.description

    @property
    def stride_bytes(self) -> int:
        """Bytes of one expert with its padding: what a device moves and a slot holds."""
        return self.description.stride_bytes

    def offset_bytes(self, layer: int, expert: int) -> int:
        """Return where an expert starts in the data file, a multiple of a page."""
        return self._index.data_offset_bytes + self.description.position(layer, expert) * self.stride_bytes

    def checksum(self, layer: int, expert: int) -> int:
        """Return the CRC-32 that an expert with its padding must have."""
        return self._index.checksums[self.description.position(layer, expert)]

    def mismatch(self, layer: int, expert: int, stored: Bytes) -> str | None:
        """Return what is wrong with the bytes of an expert (`stride_bytes` or more of them), None if nothing is."""
        found = zlib.crc32(stored[: self.stride_bytes].data)
        expected = self.checksum(layer, expert)
        return None if found == expected else f"corrupt data, checksum {found:08x} instead of {expected:08x}"

    def read(self, layer: int, expert: int, *, verify: bool = False) -> Bytes:
        """Return an expert without its padding, shape (expert_bytes,), read through the page cache.

        Raises
        ------
        InputError
            The file cannot be read or, if `verify`, the expert is damaged.
        """
        into = np.empty(self.stride_bytes, dtype=np.uint8)
        self.read_into(layer, expert, into, verify=verify)
        return into[: self.description.expert_bytes]

    def read_into(self, layer: int, expert: int, into: Bytes, *, verify: bool = False) -> None:
        """Fill `into`, shape (stride_bytes,), with an expert and its padding; errors as `read`."""
        try:
            with open(self.data_path, "rb", buffering=0) as stream:
                count = _fill(stream.fileno(), into, self.offset_bytes(layer, expert))
        except OSError as error:
            raise InputError(
                f"cannot read {self.data_path}: {error.strerror or error}; check the disk"
            ) from error
        problem = f"the file ends after {count} bytes" if count != into.nbytes else None
        if problem is None and verify:
            problem = self.mismatch(layer, expert, into)
        if problem is not None:
            raise InputError(
                f"layer {layer} expert {expert} in {self.data_path} is damaged ({problem}); pack it again"
            )

    def verify(self, progress: Callable[[], None] | None = None) -> tuple[tuple[int, int], ...]:
        """Return the (layer, expert) whose checksum is wrong, after reading everything.

        Parameters
        ----------
        progress : callable, optional
            Called after every expert.
        """
        damaged = []
        into = np.empty(self.stride_bytes, dtype=np.uint8)
        for layer in range(self.description.num_layers):
            for expert in range(self.description.num_experts):
                self.read_into(layer, expert, into)
                if self.mismatch(layer, expert, into) is not None:
                    damaged.append((layer, expert))
                if progress is not None:
                    progress()
        return tuple(damaged)

    def _check_data_file(self) -> None:
        start = self._index.data_offset_bytes
        expected = start + self.description.total_bytes
        try:
            size = self.data_path.stat().st_size
            with open(self.data_path, "rb") as stream:
                length = stream.read(LENGTH_BYTES)
        except OSError as error:
            raise InputError(
                f"cannot read {self.data_path}: {error.strerror or error}; the store lacks its data, pack it again"
            ) from error
        if size != expected:
            raise InputError(
                f"{self.data_path} has {size} bytes but the index says {expected}; pack the store again"
            )
        if struct.unpack("<Q", length)[0] != start - LENGTH_BYTES:
            raise InputError(f"{self.data_path} does not start where the index says; pack the store again")


def _fill(descriptor: int, into: Bytes, offset: int) -> int:
    """Read until `into` is full or the file ends; return the bytes read."""
    done = 0
    while done < into.nbytes:
        count = os.preadv(descriptor, [into[done:].data], offset + done)
        if count == 0:
            break
        done += count
    return done
