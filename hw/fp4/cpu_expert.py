"""The CPU path: one expert computed straight from its bytes, wherever they were read to.

    expert = CpuExpert(ExpertLayout.of(load_model("gpt-oss-20b")), threads=2)
    outputs = expert.forward(slot, rows)  # slot: expert_bytes or more, read in place; rows: (n, hidden)

A few rows read the codes directly, more share one decoding, very many go through torch's `linear` where the processor
is built for it; `crossover.py` measures where one overtakes the other, `kernel_error.py` says how large rounding
errors are. Without a compiled kernel everything is torch look-ups, with a `SlowExpertWarning`.

With `invariant=True` one way takes every call, in which a row's output is the same bits whatever the other rows and
however many threads: what a check that speculative decoding is lossless needs.
"""

from __future__ import annotations

import mmap
import os
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from hideaway.hw.fp4.build import KernelBuildError
from hideaway.hw.fp4.compiled_kernel import CompiledKernel, ExpertShape, load_kernel
from hideaway.hw.fp4.crossover import Crossover, DenseExpert, measured_crossover
from hideaway.hw.fp4.layouts import ExpertLayout
from hideaway.hw.fp4.torch_lookup import linear_expert, lookup_weights
from hideaway.sim.errors import InputError

ExpertBuffer = bytes | bytearray | memoryview | mmap.mmap | npt.NDArray[Any] | torch.Tensor
"""What can hold an expert's bytes: anything contiguous in memory."""

_ROWS_WITHOUT_QUESTION = 4
"""Rows that the few-rows kernel takes on every processor; no crossover is measured for them."""


class SlowExpertWarning(RuntimeWarning):
    """Experts are computed by torch look-ups, tens of times slower than the compiled kernel."""


def available_threads() -> int:
    """Return how many processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class CpuExpert:
    """Computes experts of one layout from their bytes.

    Parameters
    ----------
    layout
        Of every expert that will be passed in.
    threads
        Threads of the compiled kernel; by default those this process may run on. The torch parts use torch's own.
    invariant
        Whether a row's output must not depend, to the last bit, on the number of rows.
    compiled
        None to use the compiled kernel if it can be had and warn otherwise; True to insist; False for torch.
    crossover
        Which way takes how many rows; by default measured at the first call of more than a few rows.

    Raises
    ------
    KernelBuildError
        `compiled` is True and the kernel cannot be built.
    InputError
        `threads` is below 1.

    Notes
    -----
    One instance serves one calling thread at a time: it keeps scratch memory between calls.
    """

    def __init__(
        self,
        layout: ExpertLayout,
        *,
        threads: int | None = None,
        invariant: bool = False,
        compiled: bool | None = None,
        crossover: Crossover | None = None,
    ) -> None:
        if threads is not None and threads < 1:
            raise InputError(f"threads is {threads} but must be at least 1")
        self.layout = layout
        self.threads = threads or available_threads()
        self.invariant = invariant
        self._shape = ExpertShape.of(layout)
        self._kernel: CompiledKernel | None = None
        if compiled is not False:
            self._kernel = _kernel_or_warning(self.threads, insist=compiled is True)
        self._crossover = crossover
        self._dense: DenseExpert | None = None

    @property
    def kernel_name(self) -> str:
        """What computes: "avx2" or "generic" (the compiled kernel's instructions), or "torch"."""
        return self._kernel.lanes if self._kernel is not None else "torch"

    def way_of(self, num_rows: int) -> str:
        """Return which way a call of so many rows takes: "few", "panel", "dense" or "lookup".

        May measure the crossover, which takes about a second once per process and shape.
        """
        if self._kernel is None:
            return "lookup"
        if self.invariant:
            return "panel"
        if self._crossover is None and num_rows <= _ROWS_WITHOUT_QUESTION:
            return "few"
        crossover = self._measured(self._kernel)
        if crossover.dense_rows_at_least is not None and num_rows >= crossover.dense_rows_at_least:
            return "dense"
        return "few" if num_rows <= crossover.few_rows_at_most else "panel"

    def forward(self, buffer: ExpertBuffer, rows: torch.Tensor) -> torch.Tensor:
        """Return the expert's outputs, float32 (n, hidden).

        Parameters
        ----------
        buffer
            The expert's bytes, at the start of any buffer in memory; read in place during the call, not kept.
        rows
            (n, hidden), float32 or bfloat16.

        Raises
        ------
        InputError
            The buffer is too small, not contiguous or not on the CPU, or the rows have the wrong shape.
        """
        hidden = self.layout.hidden_size
        if rows.ndim != 2 or rows.shape[1] != hidden or rows.device.type != "cpu":
            raise InputError(
                f"rows have shape {tuple(rows.shape)} on {rows.device} but must be (n, {hidden}) on cpu; "
                "flatten batch and sequence first"
            )
        expert = _bytes_of(buffer, self.layout.expert_bytes)
        # Both are no-ops for what the engine passes; each costs a microsecond even so.
        values = rows if rows.dtype == torch.float32 else rows.to(torch.float32)
        values = values if values.is_contiguous() else values.contiguous()
        num_rows = rows.shape[0]
        outputs = torch.empty(num_rows, hidden)
        if num_rows == 0:
            return outputs
        way = self.way_of(num_rows)
        if self._kernel is None:
            return self._look_up(_as_tensor(expert), values)
        if way == "dense":
            return self._dense_way(self._kernel).forward(_as_tensor(expert), values)
        self._kernel.expert(
            self._shape,
            _address_of(expert),
            values.data_ptr(),
            num_rows,
            outputs.data_ptr(),
            any_rows=way == "panel",
        )
        return outputs

    def _look_up(self, expert: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        gate_up, down = lookup_weights(self.layout, expert)
        if not self.invariant:
            return linear_expert(self.layout, expert, gate_up, down, rows)
        # Row by row: `linear` picks its order of summation by the number of rows.
        return torch.cat(
            [linear_expert(self.layout, expert, gate_up, down, row) for row in rows.unsqueeze(1)]
        )

    def _measured(self, kernel: CompiledKernel) -> Crossover:
        if self._crossover is None:
            self._crossover = measured_crossover(kernel, self.layout)
        return self._crossover

    def _dense_way(self, kernel: CompiledKernel) -> DenseExpert:
        if self._dense is None:
            self._dense = DenseExpert(kernel, self.layout, self._measured(kernel).dense_dtype)
        return self._dense


def _kernel_or_warning(threads: int, *, insist: bool) -> CompiledKernel | None:
    try:
        return load_kernel(threads)
    except KernelBuildError as error:
        if insist:
            raise
        warnings.warn(
            f"experts are computed by torch look-ups, tens of times slower than the compiled kernel: {error}",
            SlowExpertWarning,
            stacklevel=3,
        )
        return None


def _bytes_of(buffer: ExpertBuffer, num_bytes: int) -> torch.Tensor | npt.NDArray[np.uint8]:
    """Return a view of a whole buffer that has at least `num_bytes`, as uint8."""
    if isinstance(buffer, torch.Tensor):
        if buffer.dtype != torch.uint8 or buffer.device.type != "cpu" or not buffer.is_contiguous():
            raise InputError(
                f"the expert is a {buffer.dtype} tensor on {buffer.device} but must be contiguous uint8 on cpu; "
                "pass its bytes"
            )
        size = buffer.numel()
        whole: torch.Tensor | npt.NDArray[np.uint8] = buffer
    else:
        try:
            whole = np.frombuffer(buffer, dtype=np.uint8)
        except (TypeError, ValueError, BufferError) as error:
            raise InputError(
                f"the expert's bytes cannot be read in place: {error}; pass a contiguous buffer"
            ) from error
        size = whole.size
    if size < num_bytes:
        raise InputError(
            f"the buffer has {size} bytes but an expert of this layout has {num_bytes}; pass all of it"
        )
    return whole


def _address_of(whole: torch.Tensor | npt.NDArray[np.uint8]) -> int:
    if isinstance(whole, torch.Tensor):
        return whole.data_ptr()
    return int(whole.__array_interface__["data"][0])


def _as_tensor(whole: torch.Tensor | npt.NDArray[np.uint8]) -> torch.Tensor:
    if isinstance(whole, torch.Tensor):
        return whole.reshape(-1)
    with warnings.catch_warnings():
        # torch warns of read-only memory, which nobody writes here.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(whole)
