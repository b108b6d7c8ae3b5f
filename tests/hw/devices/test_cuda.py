"""The CUDA device: what it says where there is none, and the same transfers as its CPU twins where there is one."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from hideaway.hw.devices.base import Transfer
from hideaway.hw.devices.cuda import CudaDevice
from hideaway.sim.commands import Band
from hideaway.sim.errors import InputError
from hideaway.sim.world.copies import LinkOptions
from tests.hw.small_stores import blob, make_store


def has_cuda() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


def test_without_torch_it_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        InputError, match=r"the cuda device needs torch, which cannot be imported .*; use the disk"
    ):
        CudaDevice(make_store(tmp_path / "store"), 4)


@pytest.mark.skipif(has_cuda(), reason="there is a CUDA device")
def test_without_a_gpu_it_is_one_sentence(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    with pytest.raises(
        InputError, match=r"needs a CUDA GPU but torch .* finds none; use the disk or the paced-memory"
    ):
        CudaDevice(make_store(tmp_path / "store"), 4)


@pytest.mark.gpu
@pytest.mark.skipif(
    not has_cuda(), reason="no CUDA device; tests/hw/devices/test_devices.py has the CPU twins"
)
@pytest.mark.parametrize("chunk_bytes", [0, 4096])
@pytest.mark.parametrize("streams", [1, 2])
def test_experts_arrive_in_device_memory(tmp_path: Path, chunk_bytes: int, streams: int) -> None:
    store = make_store(tmp_path / "store")
    options = LinkOptions(chunk_bytes=chunk_bytes, streams=streams)
    with CudaDevice(store, 8, options=options) as device:
        transfers = [Transfer(layer, expert, 4 * layer + expert) for layer in range(2) for expert in range(4)]
        device.submit(transfers, Band.ON_DEMAND)
        arrivals = []
        while len(arrivals) < 8:
            arrivals += device.wait(20.0)
        for arrival in arrivals:
            assert arrival.failure is None
            assert arrival.start_seconds <= arrival.end_seconds
            held = device.slot_tensor(arrival.slot)[:10_000].cpu().numpy()
            np.testing.assert_array_equal(held, blob(arrival.layer, arrival.expert))
        with pytest.raises(InputError, match="there is no CUDA device 99"):
            CudaDevice(store, 8, device_index=99)
