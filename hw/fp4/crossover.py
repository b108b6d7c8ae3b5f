"""At how many rows one way of computing an expert overtakes another, measured on this machine.

Three ways: `few` reads the codes for each row (cost per row), `panel` decodes them once to float32 for 64 rows, and
`dense` dequantises the whole expert and calls torch's `linear`, in bfloat16 where the processor multiplies that
natively. Which wins beyond a few rows depends on the processor, so it is timed once per process for each shape, on
an expert with the real features in and at most 512 between.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import torch

from hideaway.hw.fp4.compiled_kernel import CompiledKernel, ExpertShape
from hideaway.hw.fp4.expert_weights import synthetic_expert
from hideaway.hw.fp4.layouts import ExpertLayout
from hideaway.hw.fp4.torch_lookup import linear_expert
from hideaway.sim.errors import InputError

_ROWS = (4, 8, 12, 16, 24, 32, 64, 128)
_FEW_ROWS_AT_MOST = 32
_REPEATS = 5
_INTERMEDIATE_AT_MOST = 512


@dataclass(frozen=True, slots=True)
class Crossover:
    """Which way takes how many rows.

    Parameters
    ----------
    few_rows_at_most
        Up to this many rows go through `few`, more through `panel`.
    dense_rows_at_least
        From this many rows on `dense` is used; None for never.
    dense_dtype
        "bfloat16" or "float32", the dtype of `dense`.
    """

    few_rows_at_most: int
    dense_rows_at_least: int | None = None
    dense_dtype: str = "float32"

    def __post_init__(self) -> None:
        if self.few_rows_at_most < 0 or self.dense_dtype not in ("bfloat16", "float32"):
            raise InputError(
                f"few_rows_at_most is {self.few_rows_at_most} and dense_dtype {self.dense_dtype!r}; give a number of "
                "rows from 0 on and bfloat16 or float32"
            )
        if self.dense_rows_at_least is not None and self.dense_rows_at_least <= self.few_rows_at_most:
            raise InputError(
                f"dense_rows_at_least is {self.dense_rows_at_least} but must exceed few_rows_at_most, "
                f"{self.few_rows_at_most}; raise it or give None"
            )


class DenseExpert:
    """The `dense` way: one scratch pair of matrices, written anew for each expert."""

    def __init__(self, kernel: CompiledKernel, layout: ExpertLayout, dtype: str) -> None:
        self._kernel = kernel
        self._layout = layout
        self._shape = ExpertShape.of(layout)
        self._bfloat16 = dtype == "bfloat16"
        chosen = torch.bfloat16 if self._bfloat16 else torch.float32
        self._gate_up = torch.empty(2 * layout.intermediate_size, layout.hidden_size, dtype=chosen)
        self._down = torch.empty(layout.hidden_size, layout.intermediate_size, dtype=chosen)

    def forward(self, expert: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Return the outputs, float32 (rows, hidden)."""
        self._kernel.weights(
            self._shape,
            expert.data_ptr(),
            self._gate_up.data_ptr(),
            self._down.data_ptr(),
            bfloat16=self._bfloat16,
        )
        return linear_expert(self._layout, expert, self._gate_up, self._down, rows)


def native_dense_dtype() -> str:
    """Return "bfloat16" where torch multiplies it with the processor's own instructions, else "float32"."""
    return "bfloat16" if torch.ops.mkldnn._is_mkldnn_bf16_supported() else "float32"


@cache
def measured_crossover(kernel: CompiledKernel, layout: ExpertLayout) -> Crossover:
    """Return the crossover of a kernel's threads and a layout, timed at the first call (about a second)."""
    small = replace(layout, intermediate_size=min(layout.intermediate_size, _INTERMEDIATE_AT_MOST))
    shape = ExpertShape.of(small)
    expert = torch.from_numpy(synthetic_expert(small, np.random.default_rng(0)))
    dtype = native_dense_dtype()
    dense = DenseExpert(kernel, small, dtype)

    def compiled(rows: torch.Tensor, any_rows: bool) -> None:
        out = torch.empty_like(rows)
        kernel.expert(
            shape, expert.data_ptr(), rows.data_ptr(), rows.shape[0], out.data_ptr(), any_rows=any_rows
        )

    few_rows_at_most, dense_rows_at_least = 1, None
    few_wins = True
    for count in _ROWS:
        rows = torch.randn(count, small.hidden_size, generator=torch.Generator().manual_seed(0))
        ways: dict[str, Callable[[], object]] = {"panel": lambda rows=rows: compiled(rows, True)}  # type: ignore[misc]
        if few_wins and count <= _FEW_ROWS_AT_MOST:
            ways["few"] = lambda rows=rows: compiled(rows, False)  # type: ignore[misc]
        if count >= _ROWS[1]:
            ways["dense"] = lambda rows=rows: dense.forward(expert, rows)  # type: ignore[misc]
        seconds = _least_seconds(ways)
        fastest = min(seconds, key=lambda name: seconds[name])
        few_wins = few_wins and fastest == "few"
        if few_wins:
            few_rows_at_most = count
        dense_rows_at_least = (dense_rows_at_least or count) if fastest == "dense" else None
    return Crossover(few_rows_at_most, dense_rows_at_least, dtype)


def _least_seconds(ways: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the least seconds of each way, timed in turns after one unmeasured call; other work only adds time."""
    for run in ways.values():
        run()
    samples: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(_REPEATS):
        for name, run in ways.items():
            start = time.perf_counter()
            run()
            samples[name].append(time.perf_counter() - start)
    return {name: min(times) for name, times in samples.items()}
