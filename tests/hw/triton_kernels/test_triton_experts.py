"""The Triton kernels from outside: what is said where they cannot run, and the GPU against the CPU expert.

`interpreted_kernels.py` is the twin without a GPU of the tests marked `gpu`.
"""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hideaway.hw.engine.device_expert import DeviceExpert, open_device_expert  # noqa: E402
from hideaway.hw.engine.row_groups import RowGroups  # noqa: E402
from hideaway.hw.engine.torch_work import TorchWork  # noqa: E402
from hideaway.hw.fp4.cpu_expert import CpuExpert, SlowExpertWarning  # noqa: E402
from hideaway.hw.fp4.kernel_error import output_error_deviation  # noqa: E402
from hideaway.hw.triton_kernels.requirements import (  # noqa: E402
    check_capability,
    check_driver,
    check_inputs,
    triton_or_error,
)
from hideaway.hw.triton_kernels.triton_experts import TritonExperts  # noqa: E402
from hideaway.sim.errors import InputError  # noqa: E402
from tests.hw.small_experts import KINDS, expert_of, layout_of, rows_of  # noqa: E402

HAS_CUDA = torch.cuda.is_available()
HAS_BLOCK_SCALED = HAS_CUDA and torch.cuda.get_device_capability()[0] == 12
on_gpu = pytest.mark.skipif(
    not HAS_CUDA, reason="no CUDA device; the interpreted and the offline tests are the twins"
)


def test_importing_the_package_imports_no_triton() -> None:
    probe = (
        "import sys, hideaway.hw.triton_kernels.triton_experts, hideaway.hw.engine.open_device; "
        "print('triton' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "False"


def test_without_triton_it_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(InputError, match=r"need triton, which cannot be imported .*; pip install 'hideaway"):
        triton_or_error()


def test_an_old_triton_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", SimpleNamespace(__version__="3.7.1"))
    with pytest.raises(InputError, match=r"triton is 3.7.1 but the Triton kernels need 3.8 or later"):
        triton_or_error()
    new = SimpleNamespace(__version__="3.10.0+git1234")
    monkeypatch.setitem(sys.modules, "triton", new)
    assert triton_or_error() is new


@pytest.mark.skipif(HAS_CUDA, reason="there is a CUDA device")
def test_without_a_gpu_it_is_one_sentence() -> None:
    pytest.importorskip("triton")
    with pytest.raises(InputError, match="need a CUDA device but the experts are on cpu; use CpuExpert"):
        TritonExperts(layout_of(64, 64), torch.device("cpu"))
    with pytest.raises(InputError, match=r"Triton cannot reach a GPU \(.*\); it needs a CUDA driver"):
        TritonExperts(layout_of(64, 64), torch.device("cuda"))


def test_a_driver_that_cannot_be_built_is_one_sentence() -> None:
    def target() -> None:
        raise RuntimeError("Failed to find C compiler.")

    triton = SimpleNamespace(
        runtime=SimpleNamespace(driver=SimpleNamespace(active=SimpleNamespace(get_current_target=target)))
    )
    with pytest.raises(InputError, match=r"Failed to find C compiler.*gcc and python3-dev"):
        check_driver(triton)


def test_a_gpu_without_the_instructions_is_one_sentence() -> None:
    check_capability((8, 0), "A100", "bfloat16")
    check_capability((12, 0), "RTX 5090", "fp4")
    with pytest.raises(InputError, match=r"T4 has compute capability 7.5 but the Triton kernels need 8.0"):
        check_capability((7, 5), "T4", "bfloat16")
    with pytest.raises(InputError, match=r"H100 has compute capability 9.0 but FP4 inputs need .* 12.x"):
        check_capability((9, 0), "H100", "fp4")


def test_an_expert_beyond_32_bit_offsets_is_refused() -> None:
    check_inputs(layout_of(2880, 2880), "bfloat16", interpreted=False)
    with pytest.raises(InputError, match="address fewer than 2147483648; use another kernel"):
        check_inputs(layout_of(40_000, 40_000), "bfloat16", interpreted=False)


@pytest.mark.skipif(HAS_CUDA, reason="there is a CUDA device")
def test_the_engine_falls_back_to_look_ups_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.warns(SlowExpertWarning, match=r"torch look-ups, far slower: the Triton kernels need triton"):
        experts = open_device_expert(layout_of(64, 64), torch.device("cpu"))
    assert isinstance(experts, DeviceExpert)


def test_hits_at_once_are_the_hits_one_by_one() -> None:
    layout = layout_of(64, 64)
    slots = torch.from_numpy(np.stack([expert_of(layout, seed) for seed in range(4)]))
    cpu = CpuExpert(layout, compiled=False, invariant=True)
    calls = []

    def compute_slots(indices, rows, offsets):
        calls.append((list(indices), list(offsets)))
        parts = [
            cpu.forward(slots[slot], rows[offsets[i] : offsets[i + 1]]) for i, slot in enumerate(indices)
        ]
        return torch.cat(parts)

    tables = []
    for at_once in (None, compute_slots):
        work = TorchWork.__new__(TorchWork)
        work._compute_expert, work._slot_tensor, work._compute_slots = cpu.forward, slots.__getitem__, at_once
        work._device, work._inputs = torch.device("cpu"), rows_of(layout, 3)
        work._groups = [RowGroups(np.array([[5, 2], [2, 7], [7, -1]], dtype=np.int16))]
        work._table = torch.zeros(6, 64)
        work.hits(0, {2: 3, 5: 0, 7: 1})
        work.hits(0, {})
        tables.append(work._table)
    assert torch.equal(*tables)
    assert calls == [([3, 0, 1], [0, 2, 3, 5])]


def device_slots(layout, count):
    stride = -(-layout.expert_bytes // 4096) * 4096
    slots = torch.zeros(count, stride, dtype=torch.uint8)
    for slot in range(count):
        slots[slot, : layout.expert_bytes] = torch.from_numpy(expert_of(layout, slot))
    return slots


@pytest.mark.gpu
@on_gpu
@pytest.mark.parametrize(("hidden", "inner"), [(33, 17), (352, 304), (2880, 2880)])
@pytest.mark.parametrize(("expert_format", "swiglu"), KINDS)
def test_the_gpu_agrees_with_the_cpu(expert_format: str, swiglu: str, hidden: int, inner: int) -> None:
    layout = layout_of(hidden, inner, expert_format, swiglu)
    slots, rows = device_slots(layout, 5), rows_of(layout, 200).bfloat16()
    experts = TritonExperts(layout, torch.device("cuda"))
    cpu = CpuExpert(layout, invariant=True)
    for chosen, offsets in (([3, 0, 4], [0, 1, 1, 18]), ([2, 1], [0, 150, 200])):
        used = rows[: offsets[-1]]
        outputs = experts.forward_slots(slots.cuda(), chosen, used.cuda(), offsets).cpu()
        for slot, begin, end in zip(chosen, offsets, offsets[1:], strict=False):
            wanted = cpu.forward(slots[slot], used[begin:end])
            deviation = output_error_deviation(
                layout, slots[slot].numpy(), used[begin:end].float().numpy(), "dense-bfloat16"
            )
            relative = (outputs[begin:end] - wanted).numpy() / deviation
            assert np.abs(relative).max(initial=0.0) < 16.0  # eight deviations of rounding to 8 bits, not 9


@pytest.mark.gpu
@on_gpu
@pytest.mark.parametrize("expert_format", ["mxfp4", "nvfp4"])
def test_an_invariant_row_is_the_same_bits_alone_and_among_others(expert_format: str) -> None:
    layout = layout_of(352, 304, expert_format, "gpt-oss")
    slots, rows = device_slots(layout, 2).cuda(), rows_of(layout, 40).cuda()
    experts = TritonExperts(layout, torch.device("cuda"), invariant=True)
    whole = experts.forward_slots(slots, [1, 0], rows, [0, 30, 40])
    for row in range(30):
        assert torch.equal(experts.forward(slots[1], rows[row : row + 1])[0], whole[row])


@pytest.mark.gpu
@pytest.mark.skipif(
    not HAS_BLOCK_SCALED, reason="no device of compute capability 12; the offline tests look at the code"
)
@pytest.mark.parametrize(("expert_format", "swiglu"), KINDS)
def test_the_block_scaled_instruction_computes_what_decoded_fp4_does(expert_format: str, swiglu: str) -> None:
    layout = layout_of(352, 304, expert_format, swiglu)
    slots, rows = device_slots(layout, 3).cuda(), rows_of(layout, 60).cuda()
    made = [
        TritonExperts(layout, torch.device("cuda"), inputs=inputs).forward_slots(
            slots, [2, 0], rows, [0, 3, 60]
        )
        for inputs in ("fp4", "fp4-decoded")
    ]
    # Sums in another order differ by some 1e-6 and move about one activation in 1e5 across a boundary of FP4, by up
    # to half its size: sqrt(1e-5) / 2 of the norm, here with a factor of ten to spare.
    difference = (made[0] - made[1]).norm() / made[1].norm()
    assert float(difference) < 0.02
