"""The disk device beside bare O_DIRECT reads, reads overlapped with computing, and the emulated link's own speed.

Within a round every way runs once, in random order, over the same experts; a ratio is the median over rounds of two
times of the same round, with its 95 % interval from order statistics. A round starts when the machine is idle.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from hideaway.console import note, print_table
from hideaway.hw.devices.arena import HostArena
from hideaway.hw.devices.base import Transfer
from hideaway.hw.devices.disk import DiskDevice
from hideaway.hw.devices.memory_reader import MemoryReader
from hideaway.hw.devices.paced_memory import PacedMemoryDevice
from hideaway.hw.devices.worker_device import WorkerDevice
from hideaway.hw.store import ExpertStore, StoreDescription, StoredTensor, StoreWriter
from hideaway.hw.store.pack import pack_experts
from hideaway.hw.store.synthetic import SyntheticExperts
from hideaway.sim.commands import Band
from hideaway.sim.units import GB, MIB

ROUNDS = 60
FEWEST_ROUNDS = 20
MOST_SECONDS = 75.0
TOTAL_BYTES = 256 * MIB
BLOCK_BYTES = (MIB, 4 * MIB, 13_238_272, 16 * MIB)
SHAPE = "gpt-oss-20b"
OVERLAPPED_EXPERTS = 24
ROWS = (1, 4, 8)
PACED_BYTES_PER_SECOND = (1 * GB, 2 * GB, 4 * GB)


def report() -> None:
    """Print the three tables."""
    with tempfile.TemporaryDirectory() as folder:
        _report_bandwidth(Path(folder))
        if importlib.util.find_spec("torch") is None:
            note(
                "overlap with computing is measured only where torch is installed: pip install 'hideaway[hw]'"
            )
        else:
            _report_overlap(Path(folder))
        _report_paced(Path(folder))


def _report_bandwidth(folder: Path) -> None:
    lines = []
    for block_bytes in BLOCK_BYTES:
        with _store_of(folder, block_bytes) as store:
            num_experts = store.description.num_experts
            arena = HostArena(num_experts, store.stride_bytes)
            descriptor = os.open(store.data_path, os.O_RDONLY | os.O_DIRECT)
            with DiskDevice(store, num_experts) as device:

                def bare(order: list[int]) -> None:
                    for expert in order:
                        os.preadv(descriptor, [arena.array(expert).data], store.offset_bytes(0, expert))  # noqa: B023

                def through_device(order: list[int]) -> None:
                    _move(device, order)

                samples = _rounds({"bare": bare, "device": through_device}, num_experts)
                direct = device.facts()["direct"]
            os.close(descriptor)
        rate = num_experts * store.stride_bytes / statistics.median(samples["bare"]) / GB
        shares = [bare / own for bare, own in zip(samples["bare"], samples["device"], strict=True)]
        lines.append((f"{block_bytes / MIB:.1f}", f"{rate:.2f}", *_median(shares), len(shares), str(direct)))
    columns = (
        "MiB a block",
        "bare O_DIRECT GB/s",
        "device / bare, median",
        "95 % interval",
        "rounds",
        "direct",
    )
    print_table(columns, lines, title="disk device, one reader")


def _report_overlap(folder: Path) -> None:
    """Read, compute with one thread, and both at once; the ideal hides the shorter but for one expert's share."""
    import torch

    from hideaway.hw.fp4.cpu_expert import CpuExpert

    lines = []
    store = pack_experts(SyntheticExperts(SHAPE, num_layers=1, seed=1), folder / "overlap")
    kernel = CpuExpert(store.description.layout, threads=1)
    with DiskDevice(store, OVERLAPPED_EXPERTS) as device:
        for num_rows in ROWS:
            rows = torch.randn(num_rows, store.description.hidden_size)

            def compute(slot: int) -> None:
                kernel.forward(device.slot_tensor(slot), rows)  # noqa: B023

            def compute_all(order: list[int]) -> None:
                for expert in order:
                    compute(expert)  # noqa: B023

            ways: dict[str, Callable[[list[int]], None]] = {
                "read": lambda order: _move(device, order),
                "compute": compute_all,
                "both": lambda order: _move(device, order, compute),  # noqa: B023
            }
            samples = _rounds(ways, OVERLAPPED_EXPERTS)
            shares = [
                max(read + compute / OVERLAPPED_EXPERTS, compute + read / OVERLAPPED_EXPERTS) / both
                for read, compute, both in zip(*samples.values(), strict=True)
            ]
            each = [
                f"{statistics.median(times) / OVERLAPPED_EXPERTS * 1e3:.2f}" for times in samples.values()
            ]
            lines.append((num_rows, *each, *_median(shares), len(shares)))
    columns = (
        "rows",
        "read ms",
        "compute ms",
        "both ms",
        "share of ideal, median",
        "95 % interval",
        "rounds",
    )
    title = f"reads beside 1-thread compute, {OVERLAPPED_EXPERTS} experts of {SHAPE} ({kernel.kernel_name} kernel)"
    print_table(columns, lines, title=title)


def _report_paced(folder: Path) -> None:
    """Print what the emulated link really does: rate and fixed cost of a line through the times of its copies."""
    lines = []
    for rate in PACED_BYTES_PER_SECOND:
        seconds: dict[int, float] = {}
        lateness = 0.0
        for block_bytes in BLOCK_BYTES:
            with _store_of(folder, block_bytes) as store:
                num_experts = store.description.num_experts
                with PacedMemoryDevice(
                    store, num_experts, bytes_per_second=rate, reader=MemoryReader(store)
                ) as device:
                    start = time.perf_counter()
                    _move(device, list(range(num_experts)))
                    seconds[store.stride_bytes] = (time.perf_counter() - start) / num_experts
                    lateness = max(lateness, float(str(device.facts()["worst_lateness_seconds"])))
        slope, fixed = np.polyfit(list(seconds), list(seconds.values()), 1)
        lines.append(
            (f"{rate / GB:.0f}", f"{1 / slope / GB:.3f}", f"{fixed * 1e6:.0f}", f"{lateness * 1e6:.0f}")
        )
    columns = ("set GB/s", "found GB/s", "fixed microseconds a copy", "latest copy, microseconds late")
    print_table(columns, lines, title="emulated link (its speed is set, not measured)")


def _rounds(ways: dict[str, Callable[[list[int]], None]], num_experts: int) -> dict[str, list[float]]:
    """Return the seconds of each way by round, without those of a first round.

    A round waits until the machine is idle, but not beyond `MOST_SECONDS` in all.
    """
    rng = np.random.default_rng(1)
    samples: dict[str, list[float]] = {name: [] for name in ways}
    stop = time.monotonic() + MOST_SECONDS
    for number in range(ROUNDS + 1):
        while time.monotonic() < stop and not _is_idle():
            pass
        for name in rng.permutation(list(ways)).tolist():
            start = time.perf_counter()
            ways[name](list(range(num_experts)))
            if number:
                samples[name].append(time.perf_counter() - start)
        if time.monotonic() > stop and number >= FEWEST_ROUNDS:
            break
    return samples


def _is_idle() -> bool:
    """Return whether the processors did next to nothing for a moment."""
    before = _processor_ticks()
    time.sleep(0.1)
    idle, total = (after - earlier for after, earlier in zip(_processor_ticks(), before, strict=True))
    return idle >= 0.9 * total


def _processor_ticks() -> tuple[int, int]:
    """Return idle ticks (waiting for the disk included) and all ticks of all processors, as Linux counts them."""
    ticks = [
        int(word) for word in Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]
    ]
    return ticks[3] + ticks[4], sum(ticks)


def _move(device: WorkerDevice, order: list[int], compute: Callable[[int], None] | None = None) -> None:
    """Bring experts of layer 0 into the slots of their own number, and compute each as it arrives."""
    device.submit([Transfer(0, expert, expert) for expert in order], Band.ON_DEMAND)
    left = len(order)
    while left:
        for arrival in device.wait():
            if arrival.failure is not None:
                raise RuntimeError(arrival.failure)
            if compute is not None:
                compute(arrival.slot)
            left -= 1


@contextmanager
def _store_of(folder: Path, block_bytes: int) -> Iterator[ExpertStore]:
    """Make a store of `TOTAL_BYTES` in random blocks; it is removed at the end."""
    num_experts = TOTAL_BYTES // block_bytes
    path = folder / f"blocks-{block_bytes}"
    description = StoreDescription(
        model="benchmark/blocks",
        source="random bytes",
        expert_format="mxfp4",
        swiglu="plain",
        num_layers=1,
        num_experts=num_experts,
        top_k=1,
        hidden_size=1,
        expert_intermediate_size=1,
        layer_indices=(0,),
        tensors=(
            StoredTensor(name="bytes", offset=0, bytes=block_bytes, dtype="uint8", shape=(block_bytes,)),
        ),
    )
    words = np.random.SFC64(1)
    with StoreWriter(path, description) as writer:
        for expert in range(num_experts):
            writer.write(0, expert, words.random_raw(block_bytes // 8).view(np.uint8))
    store = ExpertStore(path)
    try:
        yield store
    finally:
        shutil.rmtree(path)


def _median(values: list[float]) -> tuple[str, str]:
    """Return a median and its 95 % interval from order statistics: ranks n/2 -+ 1.96 sqrt(n)/2."""
    ordered = sorted(values)
    reach = 1.96 * len(ordered) ** 0.5 / 2
    low, high = ordered[int(len(ordered) / 2 - reach)], ordered[int(len(ordered) / 2 + reach)]
    return f"{statistics.median(ordered):.3f}", f"{low:.3f} to {high:.3f}"
