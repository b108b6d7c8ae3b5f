"""The CUDA device: experts in pinned host memory, copied to slots in device memory on streams of their own.

Copies are issued in queue order by the thread that submits (or by the worker when one ends) and timed with CUDA
events on the stream that does the work. Importing this module imports no torch; making a `CudaDevice` needs torch
with CUDA and says so in one sentence where it is missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple

from hideaway.hw.devices.base import Transfer
from hideaway.hw.devices.memory_reader import MemoryReader
from hideaway.hw.devices.transfer_queue import Piece
from hideaway.hw.devices.worker_device import DEFAULT_RETRIES, WorkerDevice
from hideaway.hw.store.reader import ExpertStore
from hideaway.sim.commands import Band
from hideaway.sim.errors import InputError
from hideaway.sim.number_checks import whole_number
from hideaway.sim.units import GB, MILLISECOND
from hideaway.sim.world.copies import LinkOptions

if TYPE_CHECKING:
    import torch

_OTHERS = "use the disk or the paced-memory device"


class CudaDevice(WorkerDevice):
    """Copies experts of a store from pinned host memory into `num_slots` slots of device memory.

    Parameters
    ----------
    store : ExpertStore
        Where the experts are; all of them are loaded, checked and pinned.
    num_slots : int
        Slots in device memory, one expert each.
    device_index : int
        Which CUDA device.
    options : LinkOptions, optional
        Batching, submitted depth, chunks, and copy streams, on which copies take turns.
    retries : int
        Attempts after the first before a transfer is reported as failed.
    progress : callable, optional
        Called once an expert while they are loaded.

    Raises
    ------
    InputError
        There is no torch with CUDA, no such device, or no room in device memory or for pinning.
    """

    def __init__(
        self,
        store: ExpertStore,
        num_slots: int,
        *,
        device_index: int = 0,
        options: LinkOptions | None = None,
        retries: int = DEFAULT_RETRIES,
        progress: Callable[[], None] | None = None,
    ) -> None:
        torch = torch_with_cuda(device_index)
        whole_number("num_slots", num_slots, minimum=1)
        options = options or LinkOptions()
        self._cuda = _CudaMover(
            torch, store, MemoryReader(store, progress=progress), num_slots, device_index, options.streams
        )
        super().__init__(
            self._cuda,
            num_layers=store.description.num_layers,
            num_experts=store.description.num_experts,
            transfer_bytes=store.stride_bytes,
            options=options,
            retries=retries,
        )

    @property
    def slots(self) -> torch.Tensor:
        """Every slot, (num_slots, slot_bytes) uint8 in device memory."""
        slots: torch.Tensor = self._cuda.slots
        return slots

    def submit(self, transfers: Sequence[Transfer], band: Band) -> None:
        """Queue transfers; their copies wait for what the calling thread's stream has been given so far.

        A kernel that still reads the old expert in a slot is on that stream. Changes state; errors as for every
        device.
        """
        self._cuda.note_slots_free([transfer.slot for transfer in transfers])
        super().submit(transfers, band)

    def facts(self) -> dict[str, object]:
        """Return what a result file must say: the card, the streams, and that host memory is pinned."""
        return {
            "kind": "cuda",
            **super().facts(),
            "device": self._cuda.name,
            "pinned": True,
        }

    def close(self) -> None:
        """Fail what is queued, let what is submitted end, stop the workers, unpin. Changes state."""
        super().close()
        self._cuda.unpin()


def torch_with_cuda(device_index: int) -> Any:  # noqa: ANN401
    """Return the torch module if it can use this CUDA device.

    Raises
    ------
    InputError
        It cannot, and why.
    """
    try:
        import torch
    except ImportError as error:
        raise InputError(
            f"the cuda device needs torch, which cannot be imported ({error}); {_OTHERS}"
        ) from error
    if not torch.cuda.is_available():
        raise InputError(
            f"the cuda device needs a CUDA GPU but torch {torch.__version__} finds none; {_OTHERS}"
        )
    count = torch.cuda.device_count()
    if not 0 <= device_index < count:
        raise InputError(f"there is no CUDA device {device_index}; give a number from 0 to {count - 1}")
    return torch


class _Events(NamedTuple):
    start: torch.cuda.Event
    end: torch.cuda.Event


class _CudaMover:
    def __init__(
        self,
        torch: Any,  # noqa: ANN401
        store: ExpertStore,
        host: MemoryReader,
        num_slots: int,
        device_index: int,
        streams: int,
    ) -> None:
        self._torch = torch
        self._store = store
        self._host = host
        self._device = torch.device("cuda", device_index)
        self.name: str = torch.cuda.get_device_name(self._device)
        self.place = f"pinned {host.place}"
        self.num_slots = num_slots
        self.slot_bytes = store.stride_bytes
        self._pinned = False
        self._pin()
        try:
            self.slots: torch.Tensor = torch.empty(
                (num_slots, self.slot_bytes), dtype=torch.uint8, device=self._device
            )
        except torch.cuda.OutOfMemoryError as error:
            self.unpin()
            total = num_slots * self.slot_bytes / GB
            raise InputError(
                f"{num_slots} slots of {total:.2f} GB do not fit on {self.name}; ask for fewer"
            ) from error
        self._streams = cycle([torch.cuda.Stream(self._device) for _ in range(streams)])
        self._slot_free: dict[int, torch.cuda.Event] = {}
        self._reference = torch.cuda.Event(enable_timing=True)
        self._reference.record(torch.cuda.current_stream(self._device))
        self._reference.synchronize()
        self._reference_seconds = time.perf_counter()

    def note_slots_free(self, slots: Sequence[int]) -> None:
        """Let copies into these slots wait for everything the current stream has been given. Changes state."""
        event = self._torch.cuda.Event()
        event.record(self._torch.cuda.current_stream(self._device))
        self._slot_free.update(dict.fromkeys(slots, event))

    def slot_tensor(self, slot: int) -> torch.Tensor:
        whole_number("slot", slot, maximum=self.num_slots - 1)
        tensor: torch.Tensor = self.slots[slot]
        return tensor

    def now_seconds(self) -> float:
        return time.perf_counter()

    def begin(self, piece: Piece) -> _Events:
        transfer, end_bytes = piece.transfer, piece.offset_bytes + piece.num_bytes
        source = self._host.tensor(transfer.layer, transfer.expert)[piece.offset_bytes : end_bytes]
        start, end = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
        stream = next(self._streams)
        stream.wait_event(self._slot_free[transfer.slot])
        with self._torch.cuda.stream(stream):
            start.record(stream)
            self.slots[transfer.slot, piece.offset_bytes : end_bytes].copy_(source, non_blocking=True)
            end.record(stream)
        return _Events(start, end)

    def end(self, piece: Piece, begun: _Events) -> tuple[float, float]:
        start, end = begun
        end.synchronize()
        return self._seconds(start), self._seconds(end)

    def check(self, layer: int, expert: int, slot: int) -> None:
        """Nothing to do: the source was checked when it was loaded."""

    def unpin(self) -> None:
        """Give the host memory back to the system's care; again does nothing. Changes state."""
        if self._pinned:
            self._torch.cuda.synchronize(self._device)
            self._torch.cuda.cudart().cudaHostUnregister(self._host.tensor(0, 0).data_ptr())
            self._pinned = False

    def _pin(self) -> None:
        """Pin the experts where they are: torch's own pinned allocations are rounded up to powers of two."""
        first = self._host.tensor(0, 0)
        total_bytes = self._store.description.total_bytes
        error = self._torch.cuda.cudart().cudaHostRegister(first.data_ptr(), total_bytes, 0)
        self._pinned = int(error) == 0
        if not self._pinned:
            raise InputError(
                f"{total_bytes / GB:.2f} GB of host memory cannot be pinned (CUDA error "
                f"{int(error)}); raise the limit on locked memory or take fewer layers"
            )

    def _seconds(self, event: torch.cuda.Event) -> float:
        return self._reference_seconds + float(self._reference.elapsed_time(event)) * MILLISECOND
