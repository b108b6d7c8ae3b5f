"""Compiles a kernel for a GPU that need not be here and reads back what it takes: registers, memory, instructions.

Triton's wheel brings the assembler and the disassembler. Needs Triton 3.8 or later, neither torch nor a GPU.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from hideaway.hw.triton_kernels.expert_kernels import down_kernel, gate_up_kernel
from hideaway.hw.triton_kernels.quantise_rows import quantise_rows_kernel
from hideaway.hw.triton_kernels.variants import Variant

KERNELS: dict[str, Any] = {
    "gate_up": gate_up_kernel,
    "down": down_kernel,
    "quantise_rows": quantise_rows_kernel,
}

REGISTERS = 255
"""The most a thread can address (CUDA C++ Programming Guide, technical specifications per compute capability)."""

SHARED_BYTES = {80: 163 * 1024, 90: 227 * 1024, 120: 99 * 1024}
"""The most shared memory of a thread block, by compute capability times ten (same table)."""

_RESERVED_SHARED_BYTES = 1024
"""What the system keeps of a block's shared memory from sm_80 on (same guide); it counts against an SM, not a block."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """What a variant became.

    Parameters
    ----------
    registers : int
        Of a thread.
    spilled_bytes : int
        Stack of a thread; 0 where nothing was spilled to memory.
    shared_bytes : int
        Of a block.
    instructions : Counter
        Machine instructions by full name, for example `HGMMA.64x64x16.F32.BF16`.
    ptx : str
        The virtual assembly.
    """

    registers: int
    spilled_bytes: int
    shared_bytes: int
    instructions: Counter[str]
    ptx: str

    def with_prefix(self, prefix: str) -> list[str]:
        """Return the names of the instructions that start so, ascending."""
        return sorted(name for name in self.instructions if name.startswith(prefix))


def compile_variant(variant: Variant, capability: int) -> Compiled:
    """Return what `variant` compiles to for a compute capability times ten, such as 90 or 120.

    Pointers and the slot's bytes count as multiples of 16, as they are in a device's arena.
    """
    kernel = KERNELS[variant.kernel]
    types, constants = variant.types, variant.constants
    names = list(kernel.arg_names)
    values: dict[tuple[int], object] = {(names.index(name),): value for name, value in constants.items()}
    values |= {(names.index(name),): None for name, kind in types.items() if kind == "constexpr"}
    signature = {name: types.get(name, "constexpr") for name in names}
    aligned = {(index,): [["tt.divisibility", 16]] for index in range(len(names)) if (index,) not in values}
    made = triton.compile(
        ASTSource(kernel, signature, values, aligned),
        target=GPUTarget("cuda", capability, 32),
        options=dict(variant.options),
    )
    listing = _disassembled(made.asm["cubin"])
    found = re.search(r"REG:(\d+) STACK:(\d+)", listing)
    if found is None:
        raise RuntimeError(f"cuobjdump says nothing of the registers of {variant}")
    return Compiled(
        registers=int(found[1]),
        spilled_bytes=int(found[2]),
        shared_bytes=made.metadata.shared,
        instructions=Counter(re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\d+\s+)?([A-Z][\w.]+)", listing)),
        ptx=made.asm["ptx"],
    )


def _disassembled(cubin: bytes) -> str:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(cubin)
        command = [triton.knobs.nvidia.cuobjdump.path, "-sass", "-res-usage", str(file)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
