"""Milliseconds per FP4 expert on a GPU by rows: Triton kernels, torch look-ups, bf16 weights, and experts at once.

Needs a CUDA device and says so where there is none. Each sample is one call between two CUDA events, on an expert
that has left the second-level cache since its last use; ways take turns in random order, ratios are medians of rounds.
"""

from __future__ import annotations

import importlib.util
import statistics
from collections.abc import Callable

import numpy as np

from hideaway.console import note, print_table
from hideaway.sim.inputs.models import load_model

ROWS = (1, 4, 16, 64, 256)
SHAPES = (("gpt-oss-20b", "mxfp4"), ("Qwen3-30B-A3B", "mxfp4"), ("Qwen3-30B-A3B", "nvfp4"))
AT_ONCE = 8
ROUNDS = 31
CACHE_MULTIPLE = 4  # bytes of the slots, in second-level caches
OURS = "triton"


def report() -> None:
    """Print one table per shape, or why there is none."""
    if importlib.util.find_spec("torch") is None:
        note("Triton experts are timed only where torch is installed: pip install 'hideaway[hw,triton]'")
        return
    import torch

    if not torch.cuda.is_available():
        note("Triton experts are timed only on a CUDA device and torch finds none")
        return
    note(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    for model, expert_format in SHAPES:
        _report_shape(model, expert_format)


def _report_shape(model: str, expert_format: str) -> None:
    import torch

    from hideaway.hw.fp4.expert_weights import synthetic_expert
    from hideaway.hw.fp4.layouts import ExpertLayout

    layout = ExpertLayout.of(load_model(model, expert_format=expert_format))
    stride = -(-layout.expert_bytes // 4096) * 4096
    cache_bytes = torch.cuda.get_device_properties(0).L2_cache_size
    count = max(2 * AT_ONCE, -(-CACHE_MULTIPLE * cache_bytes // stride))
    rng = np.random.default_rng(0)
    host = np.zeros((count, stride), dtype=np.uint8)
    for slot in host:
        slot[: layout.expert_bytes] = synthetic_expert(layout, rng)
    slots = torch.from_numpy(host).cuda()
    lines: dict[str, list[str]] = {}
    for num_rows in ROWS:
        rows = torch.randn(num_rows, layout.hidden_size, device="cuda")
        samples = _rounds(_ways(layout, slots, rows), rng)
        for name, times in samples.items():
            ratio = statistics.median(a / b for a, b in zip(times, samples[OURS], strict=True))
            cells = lines.setdefault(name, [name])
            cells += [f"{statistics.median(times):.4f}", f"{ratio:.2f}"]
    columns = ["way", *(cell for rows in ROWS for cell in (f"{rows} rows", f"x {OURS}"))]
    title = (
        f"{model} {expert_format}, {layout.expert_bytes / 1e6:.1f} MB, ms per expert, {count} cycled through"
    )
    print_table(columns, list(lines.values()), title=title)


def _ways(layout, slots, rows) -> dict[str, Callable[[], float]]:
    """Return each way as a function from nothing to milliseconds an expert."""
    import torch

    from hideaway.hw.engine.device_expert import DeviceExpert
    from hideaway.hw.fp4.expert_weights import unpack_expert
    from hideaway.hw.fp4.torch_lookup import linear_expert
    from hideaway.hw.triton_kernels.triton_experts import TritonExperts

    device, count = slots.device, slots.shape[0]
    ours, look_up = TritonExperts(layout, device), DeviceExpert(layout, device)
    turn = iter(range(10**9))
    weights = unpack_expert(layout, slots[0].cpu().numpy())
    gate_up = torch.from_numpy(np.concatenate([weights.gate, weights.up])).to(device, torch.bfloat16)
    dense = [(gate_up.clone(), torch.from_numpy(weights.down).to(device, torch.bfloat16)) for _ in range(6)]

    def one(expert) -> Callable[[], float]:
        return lambda: _milliseconds(lambda: expert.forward(slots[next(turn) % count], rows))

    def at_once() -> float:
        first = next(turn) * AT_ONCE
        chosen = [(first + step) % count for step in range(AT_ONCE)]
        many = rows.repeat(AT_ONCE, 1)
        offsets = [step * rows.shape[0] for step in range(AT_ONCE + 1)]
        return _milliseconds(lambda: ours.forward_slots(slots, chosen, many, offsets)) / AT_ONCE

    def bf16() -> float:
        pair = dense[next(turn) % len(dense)]
        return _milliseconds(lambda: linear_expert(layout, slots[0], *pair, rows))

    ways: dict[str, Callable[[], float]] = {
        OURS: one(ours),
        f"triton, {AT_ONCE} experts at once": at_once,
        "torch look-ups": one(look_up),
        "bf16 weights": bf16,
    }
    if torch.cuda.get_device_capability(device)[0] == 12:
        ways["triton, FP4 x FP4"] = one(TritonExperts(layout, device, inputs="fp4"))
    return ways


def _milliseconds(work: Callable[[], object]) -> float:
    """Return the time of one call between two events of the current stream, with what launching it costs."""
    import torch

    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    work()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end))


def _rounds(ways: dict[str, Callable[[], float]], rng: np.random.Generator) -> dict[str, list[float]]:
    """Return the milliseconds of each way by round, after two rounds that compile and warm up."""
    samples: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(ROUNDS + 2):
        for name in rng.permutation(list(ways)).tolist():
            taken = ways[name]()
            if number >= 2:
                samples[name].append(taken)
    return samples
