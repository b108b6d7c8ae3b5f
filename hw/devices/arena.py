"""Page-aligned slots in host memory, filled by a device and read by the experts' kernels without a copy."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hideaway.hw.devices.base import PAGE_BYTES
from hideaway.sim.errors import InputError
from hideaway.sim.number_checks import whole_number
from hideaway.sim.units import GB

if TYPE_CHECKING:
    import torch

Bytes = npt.NDArray[np.uint8]


class HostArena:
    """`num_slots` slots of `slot_bytes` each in one anonymous mapping, every page of it touched.

    Touching the pages first keeps page faults out of the first transfers. The mapping lives as long as anything
    looks at it.

    Raises
    ------
    InputError
        The slots are not whole pages, or do not fit into memory.
    """

    def __init__(self, num_slots: int, slot_bytes: int) -> None:
        self.num_slots = whole_number("num_slots", num_slots, minimum=1)
        self.slot_bytes = whole_number("slot_bytes", slot_bytes, minimum=1)
        if slot_bytes % PAGE_BYTES:
            raise InputError(
                f"slot_bytes is {slot_bytes} but must be a multiple of {PAGE_BYTES}; pad the experts"
            )
        total_bytes = num_slots * slot_bytes
        available = _available_bytes()
        if available is not None and total_bytes > available:
            raise InputError(
                f"{num_slots} slots of {slot_bytes} bytes take {total_bytes / GB:.2f} GB but only "
                f"{available / GB:.2f} GB of memory is available; ask for fewer slots"
            )
        self._memory = _mapping(total_bytes)
        self._bytes: Bytes = np.frombuffer(self._memory, dtype=np.uint8)
        self._bytes[::PAGE_BYTES] = 0

    def array(self, slot: int) -> Bytes:
        """Return the bytes of a slot, shape (slot_bytes,), without a copy."""
        whole_number("slot", slot, maximum=self.num_slots - 1)
        return self._bytes[slot * self.slot_bytes : (slot + 1) * self.slot_bytes]

    def tensor(self, slot: int) -> torch.Tensor:
        """Return the bytes of a slot as a uint8 tensor of shape (slot_bytes,), without a copy."""
        import torch

        whole_number("slot", slot, maximum=self.num_slots - 1)
        return torch.frombuffer(
            self._memory, dtype=torch.uint8, count=self.slot_bytes, offset=slot * self.slot_bytes
        )


def _mapping(total_bytes: int) -> mmap.mmap:
    """Return private anonymous memory, in huge pages where the system gives them (fewer pages to pin per read)."""
    try:
        memory = mmap.mmap(-1, total_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError, ValueError) as error:
        raise InputError(
            f"cannot reserve {total_bytes} bytes of memory: {error}; ask for fewer slots"
        ) from error
    if hasattr(mmap, "MADV_HUGEPAGE"):
        try:
            memory.madvise(mmap.MADV_HUGEPAGE)
        except OSError:
            pass  # a kernel without huge pages: only speed differs
    return memory


def _available_bytes() -> int | None:
    """Return the memory that can be taken without swapping, None where the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        return None
    return None
