"""The ways of computing one FP4 expert that `fp4_experts.py` compares, each on the same weights."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from benchmarks.fp4_libraries import ggml_way, openvino_way
from hideaway.hw.fp4.compiled_kernel import load_kernel
from hideaway.hw.fp4.cpu_expert import CpuExpert
from hideaway.hw.fp4.expert_weights import synthetic_expert, unpack_expert
from hideaway.hw.fp4.layouts import ExpertLayout
from hideaway.hw.fp4.swiglu import swiglu_expert
from hideaway.hw.fp4.torch_lookup import linear_expert
from hideaway.sim.inputs.models import load_model

CACHE_MULTIPLE = 4  # weights cycled through, in last-level caches
DENSE_EXPERTS = 3  # bf16 and OpenVINO's own copies: four times the bytes each

Way = Callable[[int, torch.Tensor], torch.Tensor]


class Ways:
    """All ways of one shape, format and number of threads."""

    def __init__(self, model: str, expert_format: str, threads: int) -> None:
        self.layout = ExpertLayout.of(load_model(model, expert_format=expert_format))
        self.expert_bytes = self.layout.expert_bytes
        self.threads = threads
        torch.set_num_threads(threads)
        count = max(DENSE_EXPERTS + 1, -(-CACHE_MULTIPLE * _last_level_cache_bytes() // self.expert_bytes))
        rng = np.random.default_rng(0)
        self._experts = [torch.from_numpy(synthetic_expert(self.layout, rng)) for _ in range(count)]
        self._reference = unpack_expert(self.layout, self._experts[0].numpy())
        self._ways = self._make()
        self._library_ways = (ggml_way, openvino_way)
        self._errors: dict[str, str] = {}

    def at(self, num_rows: int) -> dict[str, Callable[[int], object]]:
        """Return each way as a function of the round, for `num_rows` rows."""
        generator = torch.Generator().manual_seed(num_rows)
        rows = torch.randn(num_rows, self.layout.hidden_size, generator=generator)
        ways = dict(self._ways)
        for make in self._library_ways:
            made = make(self.layout, self._experts, num_rows, self.threads)
            if made is not None:
                ways[made[0]] = made[1]
        exact = swiglu_expert(self._reference, rows.numpy(), self.layout.swiglu)
        for name, way in ways.items():
            if name != "read":
                error = np.abs(way(0, rows).numpy() - exact).max() / np.abs(exact).max()
                self._errors[name] = f"{error:.0e}"
        return {name: lambda number, way=way: way(number, rows) for name, way in ways.items()}  # type: ignore[misc]

    def error(self, name: str, num_rows: int) -> str:
        """Return the largest error of a way at the rows of the last `at`, relative to the largest output."""
        return self._errors.get(name, "")

    def _make(self) -> dict[str, Way]:
        kernel = load_kernel(self.threads)
        ours = CpuExpert(self.layout, threads=self.threads, compiled=True)
        invariant = CpuExpert(self.layout, threads=self.threads, compiled=True, invariant=True)
        look_up = CpuExpert(self.layout, threads=self.threads, compiled=False)

        turn = itertools.count()

        def expert(number: int) -> torch.Tensor:
            if number == 0:
                return self._experts[0]  # the one whose exact outputs are known
            # Never one that another way has just brought into the cache.
            return self._experts[next(turn) % len(self._experts)]

        def read(number: int, rows: torch.Tensor) -> torch.Tensor:
            kernel.read(expert(number).data_ptr(), self.expert_bytes)
            return rows

        dense = [self._dense(index) for index in range(DENSE_EXPERTS)]

        def bf16(number: int, rows: torch.Tensor) -> torch.Tensor:
            index = number % DENSE_EXPERTS
            return linear_expert(self.layout, self._experts[index], *dense[index], rows)

        return {
            "read": read,
            "hideaway": lambda number, rows: ours.forward(expert(number), rows),
            "hideaway, row-count-invariant": lambda number, rows: invariant.forward(expert(number), rows),
            "torch look-up": lambda number, rows: look_up.forward(expert(number), rows),
            "bf16 weights": bf16,
        }

    def _dense(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        weights = unpack_expert(self.layout, self._experts[index].numpy())
        gate_up = torch.from_numpy(np.concatenate([weights.gate, weights.up]))
        return gate_up.bfloat16(), torch.from_numpy(weights.down).bfloat16()


def _last_level_cache_bytes() -> int:
    sizes = [32 * 2**20]
    for file in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = file.read_text().strip()
        if text.endswith("K"):
            sizes.append(int(text[:-1]) * 1024)
    return max(sizes)
