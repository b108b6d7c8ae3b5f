"""Experts of a store held in host memory: the source of the paced-memory device and, pinned, of the CUDA device."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hideaway.hw.devices.arena import HostArena
from hideaway.hw.store.reader import ExpertStore

if TYPE_CHECKING:
    import torch


class MemoryReader:
    """All experts of a store in page-aligned memory, checked against their checksums while they are loaded.

    Reading is one `memcpy` without Python's lock.

    Raises
    ------
    InputError
        The experts do not fit into memory, or the store is damaged.
    """

    def __init__(self, store: ExpertStore, *, progress: Callable[[], None] | None = None) -> None:
        self.place = f"memory that holds {store.path}"
        self._stride_bytes = store.stride_bytes
        self._start_bytes = store.offset_bytes(0, 0)
        description = store.description
        self._position = description.position
        self._arena = HostArena(description.num_layers * description.num_experts, store.stride_bytes)
        for layer in range(description.num_layers):
            for expert in range(description.num_experts):
                store.read_into(layer, expert, self._arena.array(self._position(layer, expert)), verify=True)
                if progress is not None:
                    progress()

    def tensor(self, layer: int, expert: int) -> torch.Tensor:
        """Return the bytes of an expert with its padding as a uint8 tensor, without a copy."""
        return self._arena.tensor(self._position(layer, expert))

    def read_into(self, offset: int, into: npt.NDArray[np.uint8]) -> int:
        """Copy into `into` what stands at byte `offset` of the store's data file; return the bytes copied.

        A copy never crosses the end of an expert: devices ask for experts and chunks of them.
        """
        slot, begin = divmod(offset - self._start_bytes, self._stride_bytes)
        source = self._arena.array(slot)[begin : begin + into.nbytes]
        np.copyto(into[: source.nbytes], source)
        return source.nbytes
