"""Disk and paced-memory devices with real threads: what arrives, in which order, and what each fault becomes."""

from __future__ import annotations

import ctypes
import errno
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from hideaway.hw.devices import direct_reader
from hideaway.hw.devices.base import Arrival, Transfer
from hideaway.hw.devices.choose import open_device
from hideaway.hw.devices.direct_reader import DirectReader
from hideaway.hw.devices.disk import DiskDevice
from hideaway.hw.devices.memory_reader import MemoryReader
from hideaway.hw.devices.paced_memory import PacedMemoryDevice
from hideaway.hw.devices.worker_device import WorkerDevice
from hideaway.hw.store import ExpertStore
from hideaway.sim.commands import Band
from hideaway.sim.errors import HideawayError, InputError
from hideaway.sim.masks import mask_of
from hideaway.sim.world.copies import LinkOptions
from tests.hw.small_stores import WrappedReader, blob, make_store

EXPERT_BYTES = 70_000  # 18 pages with padding
MANY_SECONDS = 20.0


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> ExpertStore:
    return make_store(tmp_path_factory.mktemp("devices") / "store", 3, 8, EXPERT_BYTES)


def disk(store: ExpertStore, num_slots: int = 24, **options: object) -> DiskDevice:
    return DiskDevice(store, num_slots, **options)


def paced(store: ExpertStore, num_slots: int = 24, **options: object) -> PacedMemoryDevice:
    return PacedMemoryDevice(store, num_slots, bytes_per_second=1e9, latency_seconds=1e-5, **options)


def all_transfers() -> list[Transfer]:
    return [Transfer(layer, expert, 8 * layer + expert) for layer in range(3) for expert in range(8)]


def collect(device: WorkerDevice, count: int) -> list[Arrival]:
    arrivals: list[Arrival] = []
    while len(arrivals) < count:
        new = device.wait(MANY_SECONDS)
        assert new, "nothing arrived"
        arrivals += new
    return arrivals


def stored_expert(device: WorkerDevice, slot: int) -> np.ndarray:
    return device._mover._arena.array(slot)[:EXPERT_BYTES]


@pytest.mark.parametrize("make", [disk, paced])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"options": LinkOptions(submitted_depth=1, chunk_bytes=4 * 4096), "verify": True},
        {"options": LinkOptions(batched=True), "verify": True},
    ],
)
def test_experts_arrive_in_their_slots_with_their_times(
    store: ExpertStore, make: Callable[..., WorkerDevice], options: dict[str, object]
) -> None:
    with make(store, **options) as device:
        before = device.now_seconds()
        device.submit(all_transfers(), Band.ROUTE_AHEAD)
        arrivals = collect(device, 24)
        after = device.now_seconds()
        assert device.wait() == []
        for arrival in arrivals:
            assert arrival.failure is None
            assert arrival.bytes == store.stride_bytes
            assert before <= arrival.start_seconds < arrival.end_seconds <= after
            np.testing.assert_array_equal(
                stored_expert(device, arrival.slot), blob(arrival.layer, arrival.expert, EXPERT_BYTES)
            )
        ends = [arrival.end_seconds for arrival in arrivals]
        assert ends == sorted(ends)
        assert [(arrival.layer, arrival.expert) for arrival in arrivals] == [
            (transfer.layer, transfer.expert) for transfer in all_transfers()
        ]


@pytest.mark.parametrize("make", [disk, paced])
def test_several_threads_may_submit_and_wait(store: ExpertStore, make: Callable[..., WorkerDevice]) -> None:
    arrived: list[Arrival] = []

    def take() -> None:
        while len(arrived) < 24:
            arrived.extend(device.wait(0.05))

    with make(store, options=LinkOptions(chunk_bytes=8 * 4096)) as device:
        threads = [threading.Thread(target=take)]
        threads += [
            threading.Thread(target=device.submit, args=([transfer], Band(transfer.expert % 3)))
            for transfer in all_transfers()
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(MANY_SECONDS)
        assert sorted((arrival.layer, arrival.expert) for arrival in arrived) == [
            (transfer.layer, transfer.expert) for transfer in all_transfers()
        ]


def test_several_readers_deliver_chunked_experts_whole(store: ExpertStore) -> None:
    options = LinkOptions(submitted_depth=6, chunk_bytes=3 * 4096, streams=3)
    with disk(store, options=options, verify=True) as device:
        device.submit(all_transfers(), Band.ON_DEMAND)
        assert all(arrival.failure is None for arrival in collect(device, 24))


def test_slots_can_be_computed_from_as_tensors_without_a_copy(store: ExpertStore) -> None:
    torch = pytest.importorskip("torch")
    with disk(store) as device:
        tensor = device.slot_tensor(5)
        device.submit([Transfer(1, 2, 5)], Band.ON_DEMAND)
        collect(device, 1)
        assert tensor.shape == (store.stride_bytes,)
        assert tensor.data_ptr() % 4096 == 0
        assert torch.equal(tensor[:EXPERT_BYTES], torch.from_numpy(blob(1, 2, EXPERT_BYTES)))


class Gate:
    """A reader's `before` that stops every read until it is opened, and says when one is stopped."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.reached = threading.Event()

    def __call__(self, offset: int, size: int) -> None:
        self.reached.set()
        assert self.open.wait(MANY_SECONDS)


@pytest.fixture
def gated(store: ExpertStore) -> Iterator[tuple[DiskDevice, Gate]]:
    gate = Gate()
    reader = WrappedReader(DirectReader(store.data_path), gate)
    with disk(store, options=LinkOptions(submitted_depth=2), reader=reader) as device:
        yield device, gate
        gate.open.set()


def test_bands_promotion_and_cancelling_act_on_what_is_not_submitted(gated: tuple[DiskDevice, Gate]) -> None:
    device, gate = gated
    device.submit([Transfer(0, expert, expert) for expert in range(6)], Band.BACKGROUND)
    device.submit([Transfer(1, 0, 8)], Band.ROUTE_AHEAD)
    assert gate.reached.wait(MANY_SECONDS)
    device.submit([Transfer(2, 0, 16)], Band.ON_DEMAND)
    device.promote(0, mask_of([0, 4]))
    assert device.cancel(0, mask_of([0, 1, 2, 7])) == mask_of([2])
    assert device.outstanding() == 7
    assert device.poll() == []
    gate.open.set()
    arrivals = collect(device, 7)
    assert [(arrival.layer, arrival.expert) for arrival in arrivals] == [
        (0, 0), (0, 1), (2, 0), (0, 4), (1, 0), (0, 3), (0, 5),
    ]  # fmt: skip
    assert [arrival.band for arrival in arrivals] == [2, 2, 0, 0, 1, 2, 2]


def test_waiting_ends_when_the_last_transfer_is_cancelled(gated: tuple[DiskDevice, Gate]) -> None:
    device, gate = gated
    device.submit([Transfer(0, 0, 0), Transfer(0, 1, 1), Transfer(0, 2, 2)], Band.BACKGROUND)
    assert gate.reached.wait(MANY_SECONDS)
    start = time.monotonic()
    assert device.wait(0.02) == []
    assert time.monotonic() - start < MANY_SECONDS
    gate.open.set()
    collect(device, 3)
    assert device.wait() == []


def test_closing_fails_what_is_queued_and_lets_what_moves_end(gated: tuple[DiskDevice, Gate]) -> None:
    device, gate = gated
    device.submit([Transfer(0, expert, expert) for expert in range(4)], Band.BACKGROUND)
    assert gate.reached.wait(MANY_SECONDS)
    closer = threading.Thread(target=device.close)
    closer.start()
    failed = collect(device, 2)
    assert [(arrival.expert, arrival.failure) for arrival in failed] == [
        (
            expert,
            f"layer 0 expert {expert} from {device._mover.place} to slot {expert} was not moved: the device is closed",
        )
        for expert in (2, 3)
    ]
    gate.open.set()
    closer.join(MANY_SECONDS)
    assert [(arrival.expert, arrival.failure) for arrival in device.poll()] == [(0, None), (1, None)]
    device.submit([Transfer(0, 7, 7)], Band.ON_DEMAND)
    assert "the device is closed" in str(device.wait()[0].failure)


@pytest.mark.parametrize("make", [disk, paced])
def test_what_does_not_exist_cannot_be_asked_for(
    store: ExpertStore, make: Callable[..., WorkerDevice]
) -> None:
    with make(store, 4) as device:
        for transfer, sentence in [
            (Transfer(3, 0, 0), "layer is 3 but must be at most 2"),
            (Transfer(0, 8, 0), "expert is 8 but must be at most 7"),
            (Transfer(0, 0, 4), "slot is 4 but must be at most 3"),
        ]:
            with pytest.raises(InputError, match=sentence):
                device.submit([transfer], Band.ON_DEMAND)
        with pytest.raises(InputError, match="slot is -1"):
            Transfer(0, 0, -1)
        device.submit([Transfer(0, 0, 0)], Band.BACKGROUND)


def test_slots_that_do_not_fit_into_memory_are_refused(store: ExpertStore) -> None:
    with pytest.raises(
        InputError, match=r"slots of 73728 bytes take .* GB of memory is available; ask for fewer"
    ):
        disk(store, 10**9)
    with pytest.raises(InputError, match="num_slots is 0"):
        disk(store, 0)


# --- faults


def faulty(
    store: ExpertStore,
    before: Callable[[int, int], int | None] = lambda offset, size: None,
    after: Callable[[int, np.ndarray], None] = lambda offset, into: None,
    **options: object,
) -> tuple[DiskDevice, WrappedReader]:
    reader = WrappedReader(DirectReader(store.data_path), before, after)
    return disk(store, reader=reader, **options), reader


def fail_first(times: int, offset: int, fault: Callable[[], int | None]) -> Callable[[int, int], int | None]:
    """Return a reader's `before` whose first `times` reads at `offset` have `fault`."""
    left = [times]

    def before(at: int, size: int) -> int | None:
        if at == offset and left[0] > 0:
            left[0] -= 1
            return fault()
        return None

    return before


def io_error() -> int:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def killed() -> int:
    raise SystemExit


FAULTS = {
    "io error": (io_error, "Input/output error"),
    "short read": (lambda: 8192, r"short read, 8192 of 73728 bytes at offset \d+"),
    "end of file": (lambda: 0, r"short read, 0 of 73728 bytes at offset \d+"),
    "killed worker": (killed, "its thread was killed by SystemExit"),
}


@pytest.mark.parametrize("name", list(FAULTS))
def test_a_passing_fault_is_retried_and_nobody_notices(store: ExpertStore, name: str) -> None:
    fault, _ = FAULTS[name]
    device, _ = faulty(store, fail_first(2, store.offset_bytes(0, 1), fault), retries=2)
    with device:
        device.submit(all_transfers()[:4], Band.ON_DEMAND)
        arrivals = collect(device, 4)
        assert [(arrival.expert, arrival.failure, arrival.retries) for arrival in arrivals] == [
            (0, None, 0),
            (1, None, 2),
            (2, None, 0),
            (3, None, 0),
        ]
        np.testing.assert_array_equal(stored_expert(device, 1), blob(0, 1, EXPERT_BYTES))


@pytest.mark.parametrize("name", list(FAULTS))
@pytest.mark.parametrize("batched", [False, True])
def test_a_lasting_fault_ends_as_one_sentence_and_the_others_go_on(
    store: ExpertStore, name: str, batched: bool
) -> None:
    fault, reason = FAULTS[name]
    before = fail_first(1000, store.offset_bytes(0, 1), fault)
    device, reader = faulty(store, before, retries=2, options=LinkOptions(batched=batched))
    with device:
        device.submit(all_transfers()[:4], Band.ON_DEMAND)
        arrivals = {arrival.expert: arrival for arrival in collect(device, 4)}
        failure = arrivals.pop(1).failure
        assert [arrival.failure for arrival in arrivals.values()] == [None] * 3
        assert failure is not None
        pattern = (
            f"layer 0 expert 1 from {store.data_path} to slot 1 could not be moved in 3 attempts: {reason}"
        )
        with pytest.raises(HideawayError, match=pattern):
            raise HideawayError(failure)
        assert [offset for offset, _ in reader.reads].count(store.offset_bytes(0, 1)) == 3
        device.submit([Transfer(2, 5, 1)], Band.ON_DEMAND)  # the slot can be used again
        assert collect(device, 1)[0].failure is None


def test_a_chunk_that_fails_ends_its_transfer_once(store: ExpertStore) -> None:
    chunk = 4 * 4096
    before = fail_first(1000, store.offset_bytes(0, 1) + 2 * chunk, io_error)
    options = LinkOptions(submitted_depth=3, chunk_bytes=chunk)
    device, _ = faulty(store, before, options=options, retries=1)
    with device:
        device.submit(all_transfers()[:3], Band.ON_DEMAND)
        arrivals = collect(device, 3)
        assert sorted((arrival.expert, arrival.failure is None) for arrival in arrivals) == [
            (0, True),
            (1, False),
            (2, True),
        ]
        assert device.wait() == []


def corrupt(times: int, offset: int) -> Callable[[int, np.ndarray], None]:
    left = [times]

    def after(at: int, into: np.ndarray) -> None:
        if at == offset and left[0] > 0:
            left[0] -= 1
            into[100] ^= 1

    return after


@pytest.mark.parametrize("chunk_bytes", [0, 8 * 4096])
def test_corrupt_data_is_read_again_where_verification_is_on(store: ExpertStore, chunk_bytes: int) -> None:
    options = LinkOptions(chunk_bytes=chunk_bytes)
    for times, verify, correct, retries in [(2, True, True, 2), (1, False, False, 0)]:
        device, _ = faulty(
            store, after=corrupt(times, store.offset_bytes(1, 3)), verify=verify, options=options
        )
        with device:
            device.submit([Transfer(1, 3, 0)], Band.ON_DEMAND)
            (arrival,) = collect(device, 1)
            assert (arrival.failure, arrival.retries) == (None, retries)
            assert np.array_equal(stored_expert(device, 0), blob(1, 3, EXPERT_BYTES)) is correct


def test_lasting_corruption_ends_as_one_sentence(store: ExpertStore) -> None:
    device, _ = faulty(store, after=corrupt(100, store.offset_bytes(1, 3)), verify=True)
    with device:
        device.submit([Transfer(1, 3, 0), Transfer(1, 4, 1)], Band.ON_DEMAND)
        bad, good = collect(device, 2)
        assert good.failure is None
        assert bad.failure is not None
        assert "layer 1 expert 3" in bad.failure
        assert "in 3 attempts: corrupt data, checksum" in bad.failure


def test_a_mover_that_dies_while_reading_is_replaced(gated: tuple[DiskDevice, Gate]) -> None:
    """An exception is thrown into the thread from outside, as nothing in the code can."""
    device, gate = gated

    def kill() -> threading.Thread:
        (worker,) = device._pool._movers
        assert (
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(worker.ident), ctypes.py_object(SystemExit)
            )
            == 1
        )
        return worker

    device.submit([Transfer(0, 0, 0), Transfer(0, 1, 1)], Band.ON_DEMAND)
    assert gate.reached.wait(MANY_SECONDS)
    worker = kill()
    gate.open.set()
    assert [arrival.failure for arrival in collect(device, 2)] == [None, None]
    worker.join(MANY_SECONDS)
    assert not worker.is_alive()
    device.submit([Transfer(0, 2, 2)], Band.ON_DEMAND)
    assert collect(device, 1)[0].failure is None


def test_when_no_thread_can_be_started_everything_fails_at_once(
    gated: tuple[DiskDevice, Gate], monkeypatch: pytest.MonkeyPatch
) -> None:
    device, gate = gated
    device.submit([Transfer(0, expert, expert) for expert in range(4)], Band.ON_DEMAND)
    assert gate.reached.wait(MANY_SECONDS)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    (worker,) = device._pool._movers
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(worker.ident), ctypes.py_object(SystemExit))
    gate.open.set()
    arrivals = collect(device, 4)
    assert all("no thread could be started to move it" in str(arrival.failure) for arrival in arrivals)
    device.submit([Transfer(0, 5, 5)], Band.ON_DEMAND)
    assert "no thread could be started" in str(device.wait()[0].failure)


def test_when_the_settler_dies_everything_fails_at_once(
    gated: tuple[DiskDevice, Gate], monkeypatch: pytest.MonkeyPatch
) -> None:
    device, gate = gated
    device.submit([Transfer(0, expert, expert) for expert in range(4)], Band.ON_DEMAND)

    def broken(*_: object, **__: object) -> bool:
        raise KeyError("a fault of ours")

    monkeypatch.setattr(device._pool.queue, "moved", broken)
    gate.open.set()
    arrivals = collect(device, 4)
    assert all("settles transfers was killed by KeyError" in str(arrival.failure) for arrival in arrivals)
    device.submit([Transfer(0, 5, 5)], Band.ON_DEMAND)
    assert "settles transfers was killed" in str(device.wait()[0].failure)


# --- direct reads and the emulated link


def test_direct_reads_are_recorded(store: ExpertStore) -> None:
    with disk(store) as device:
        facts = device.facts()
    assert facts["kind"] == "disk"
    assert facts["direct"] is (facts["fallback_reason"] is None)


@pytest.mark.parametrize("where", ["open", "read"])
def test_refused_direct_reads_fall_back_with_a_recorded_reason(
    store: ExpertStore, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    real_open, real_read = os.open, os.preadv
    direct: set[int] = set()
    dropped: list[tuple[int, int]] = []

    def refusing_open(path: str, flags: int, *rest: int) -> int:
        if flags & os.O_DIRECT and where == "open":
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        descriptor = real_open(path, flags & ~os.O_DIRECT, *rest)
        if flags & os.O_DIRECT:
            direct.add(descriptor)
        else:
            direct.discard(descriptor)
        return descriptor

    def refusing_read(descriptor: int, buffers: list[object], offset: int) -> int:
        if descriptor in direct:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return real_read(descriptor, buffers, offset)

    monkeypatch.setattr(direct_reader.os, "open", refusing_open)
    monkeypatch.setattr(direct_reader.os, "preadv", refusing_read)
    monkeypatch.setattr(
        direct_reader.os, "posix_fadvise", lambda _, offset, size, advice: dropped.append((offset, size))
    )
    with disk(store, verify=True) as device:
        device.submit([Transfer(2, 6, 0)], Band.ON_DEMAND)
        assert collect(device, 1)[0].failure is None
        facts = device.facts()
    assert facts["direct"] is False
    assert "O_DIRECT" in str(facts["fallback_reason"])
    assert dropped == [(store.offset_bytes(2, 6), store.stride_bytes)]


def test_a_data_file_that_vanished_is_one_sentence(tmp_path: Path) -> None:
    gone = make_store(tmp_path / "store")
    gone.data_path.unlink()
    with pytest.raises(
        InputError, match=r"cannot read experts from .*: No such file or directory; check the path"
    ):
        disk(gone)


def test_the_emulated_link_says_so_and_is_never_faster_than_set(store: ExpertStore) -> None:
    rate, latency = 2e8, 1e-3
    with PacedMemoryDevice(store, 24, bytes_per_second=rate, latency_seconds=latency) as device:
        device.submit(all_transfers(), Band.ON_DEMAND)
        arrivals = collect(device, 24)
        facts = device.facts()
    assert facts["kind"] == "emulated link"
    assert (facts["set_bytes_per_second"], facts["set_latency_seconds"]) == (rate, latency)
    assert float(str(facts["worst_lateness_seconds"])) >= 0.0
    first = arrivals[0].start_seconds
    each = latency + store.stride_bytes / rate
    for index, arrival in enumerate(arrivals):
        assert arrival.end_seconds - first >= (index + 1) * each * (1 - 1e-9)
        assert arrival.start_seconds - first >= index * each * (1 - 1e-9)


def test_memory_that_is_shared_between_devices_is_loaded_once(store: ExpertStore) -> None:
    loaded: list[None] = []
    reader = MemoryReader(store, progress=lambda: loaded.append(None))
    assert len(loaded) == 24
    for _ in range(2):
        with paced(store, reader=reader, verify=True) as device:
            device.submit([Transfer(2, 7, 3)], Band.ON_DEMAND)
            assert collect(device, 1)[0].failure is None
    assert len(loaded) == 24


def test_loading_a_damaged_store_into_memory_is_refused(tmp_path: Path) -> None:
    damaged = make_store(tmp_path / "store")
    data = bytearray(damaged.data_path.read_bytes())
    data[damaged.offset_bytes(1, 1)] ^= 1
    damaged.data_path.write_bytes(data)
    with pytest.raises(InputError, match=r"layer 1 expert 1 in .* is damaged"):
        MemoryReader(damaged)


@pytest.mark.parametrize(
    ("rate", "latency"), [(0.0, 0.0), (float("nan"), 0.0), (1e9, -1.0), (float("inf"), 0.0)]
)
def test_a_meaningless_speed_is_refused(store: ExpertStore, rate: float, latency: float) -> None:
    with pytest.raises(InputError, match="must be a finite number"):
        PacedMemoryDevice(store, 2, bytes_per_second=rate, latency_seconds=latency)


def test_devices_are_opened_by_name(store: ExpertStore) -> None:
    for kind, speed in [("disk", None), ("paced-memory", 1e9)]:
        with open_device(kind, store, 3, bytes_per_second=speed, verify=True) as device:
            device.submit([Transfer(2, 7, 2)], Band.ON_DEMAND)
            assert collect(device, 1)[0].failure is None
    with pytest.raises(InputError, match="device is 'tape' but must be one of cuda, disk, paced-memory"):
        open_device("tape", store, 3)
    with pytest.raises(InputError, match="the paced-memory device needs a bandwidth"):
        open_device("paced-memory", store, 3)
    with pytest.raises(InputError, match="the disk device has a bandwidth of its own"):
        open_device("disk", store, 3, bytes_per_second=1e9)


def test_streams_of_the_emulated_link_hide_latency_and_share_the_bandwidth(store: ExpertStore) -> None:
    rate, latency = 2e8, 2e-3
    options = LinkOptions(submitted_depth=2, streams=2)
    with PacedMemoryDevice(
        store, 24, bytes_per_second=rate, latency_seconds=latency, options=options
    ) as device:
        device.submit(all_transfers(), Band.ON_DEMAND)
        arrivals = collect(device, 24)
    first = arrivals[0].start_seconds
    bytes_seconds = store.stride_bytes / rate
    for index, arrival in enumerate(arrivals):
        assert arrival.end_seconds - first >= (latency + (index + 1) * bytes_seconds) * (1 - 1e-9)
        assert arrival.end_seconds - arrival.start_seconds >= (latency + bytes_seconds) * (1 - 1e-9)
