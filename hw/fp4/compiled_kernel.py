"""The compiled kernel as Python functions on addresses; `cpu_expert.py` is what people call.

Calls go through ctypes, which releases the interpreter lock, so a reader thread fills the next slot meanwhile. One
pool of worker threads per number of threads, shared by all experts of the process; a call that finds it busy runs on
its own thread alone.
"""

from __future__ import annotations

import ctypes
from functools import cache

from hideaway.hw.fp4.build import KernelBuildError, build_kernel
from hideaway.hw.fp4.layouts import ExpertLayout
from hideaway.hw.fp4.swiglu import GPT_OSS_ALPHA, GPT_OSS_LIMIT
from hideaway.sim.errors import HideawayError


class ExpertShape(ctypes.Structure):
    """What `native/expert.h` calls ExpertShape; the fields follow it one by one."""

    _fields_ = (
        ("hidden", ctypes.c_int64),
        ("intermediate", ctypes.c_int64),
        ("gate_up_blocks", ctypes.c_int64),
        ("gate_up_scales", ctypes.c_int64),
        ("gate_up_bias", ctypes.c_int64),
        ("down_blocks", ctypes.c_int64),
        ("down_scales", ctypes.c_int64),
        ("down_bias", ctypes.c_int64),
        ("tensor_scales", ctypes.c_int64),
        ("is_nvfp4", ctypes.c_int32),
        ("interleaved", ctypes.c_int32),
        ("clamped", ctypes.c_int32),
        ("limit", ctypes.c_float),
        ("alpha", ctypes.c_float),
    )

    @classmethod
    def of(cls, layout: ExpertLayout) -> ExpertShape:
        """Return the shape of a layout's experts; absent parts have offset -1."""
        names = [name for name, _ in cls._fields_[2:9]]
        offsets = [layout.parts[name].offset if name in layout.parts else -1 for name in names]
        return cls(
            layout.hidden_size,
            layout.intermediate_size,
            *offsets,
            layout.expert_format == "nvfp4",
            layout.interleaved,
            layout.swiglu == "gpt-oss",
            GPT_OSS_LIMIT,
            GPT_OSS_ALPHA,
        )


class CompiledKernel:
    """The loaded library and a pool of `threads` threads. Addresses must stay valid during a call, not after."""

    def __init__(self, library: ctypes.CDLL, threads: int) -> None:
        self._library = library
        self._pool = library.hideaway_new_pool(threads)
        if not self._pool:
            raise KernelBuildError(
                f"{threads} threads could not be started; ask for fewer or raise the limit"
            )
        self.threads = threads
        self.lanes: str = library.hideaway_lanes().decode()

    def expert(
        self, shape: ExpertShape, expert: int, rows: int, num_rows: int, out: int, *, any_rows: bool
    ) -> None:
        """Write one expert's float32 outputs to `out`; `any_rows` takes the kernel whose rows never depend on others.

        Parameters
        ----------
        shape
            Shape of the expert.
        expert, rows, out
            Addresses of the expert's bytes, (num_rows, hidden) float32 and the same of outputs.
        num_rows
            At least 1.
        any_rows
            The panel kernel (`native/panel.h`) in place of the one for few rows (`native/few_rows.h`).
        """
        failed = self._library.hideaway_expert(
            ctypes.byref(shape), expert, rows, num_rows, int(any_rows), out, self._pool
        )
        if failed:
            raise HideawayError(
                f"memory ran out while {num_rows} rows went through an expert; send fewer at once"
            )

    def weights(self, shape: ExpertShape, expert: int, gate_up: int, down: int, *, bfloat16: bool) -> None:
        """Write the expert's weights, gate rows before up rows, as float32 or bfloat16 to two addresses."""
        failed = self._library.hideaway_weights(
            ctypes.byref(shape), expert, int(bfloat16), gate_up, down, self._pool
        )
        if failed:
            raise HideawayError("memory ran out while an expert was dequantised; use fewer threads")

    def read(self, address: int, num_bytes: int) -> None:
        """Read memory once with the pool's threads and keep nothing: what a kernel could reach at best."""
        self._library.hideaway_read(address, num_bytes, self._pool)


@cache
def load_kernel(threads: int, variant: str | None = None) -> CompiledKernel:
    """Return the kernel with a pool of `threads` threads, built if need be; `variant` as in `build_kernel`.

    Raises
    ------
    KernelBuildError
        It cannot be built or loaded here.
    """
    return CompiledKernel(_library(variant), threads)


@cache
def _library(variant: str | None) -> ctypes.CDLL:
    path = build_kernel(variant)
    try:
        library = ctypes.CDLL(str(path))
    except OSError:
        path.unlink(missing_ok=True)  # left by a full disk or another system: once more from the sources
        path = build_kernel(variant)
        try:
            library = ctypes.CDLL(str(path))
        except OSError as error:
            raise KernelBuildError(
                f"the compiled kernel does not load ({error}); set CXX to the system's compiler"
            ) from error
    pointer, length, flag = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int
    shape = ctypes.POINTER(ExpertShape)
    library.hideaway_lanes.restype = ctypes.c_char_p
    library.hideaway_new_pool.argtypes = [flag]
    library.hideaway_new_pool.restype = pointer
    library.hideaway_expert.argtypes = [shape, pointer, pointer, length, flag, pointer, pointer]
    library.hideaway_weights.argtypes = [shape, pointer, flag, pointer, pointer, pointer]
    library.hideaway_read.argtypes = [pointer, length, pointer]
    library.hideaway_read.restype = ctypes.c_uint64
    return library
