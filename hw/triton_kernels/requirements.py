"""Whether the kernels can run: Triton's version, the GPU's, and what each kind of input needs; one sentence if not."""

from __future__ import annotations

import re
import subprocess
from typing import Any

from hideaway.hw.fp4.layouts import ExpertLayout
from hideaway.hw.triton_kernels.tiles import INPUTS
from hideaway.sim.errors import InputError

OLDEST_TRITON = (3, 8)
"""Before 3.8 the NVFP4 product does not compile for sm_90, and interpreted FP4 products fail."""

OLDEST_CAPABILITY = (8, 0)
"""bfloat16 matrix instructions start with sm_80."""

BLOCK_SCALED_MAJOR = 12
"""Major compute capability with `mma ... block_scale` on FP4 from registers (PTX ISA, "Warp-level block scaling")."""

MOST_EXPERT_BYTES = 2**31
"""Offsets within an expert are 32-bit."""


def triton_or_error() -> Any:  # noqa: ANN401
    """Return the triton module.

    Raises
    ------
    InputError
        It cannot be imported or is too old.
    """
    try:
        import triton
    except ImportError as error:
        raise InputError(
            f"the Triton kernels need triton, which cannot be imported ({error}); pip install 'hideaway[triton]'"
        ) from error
    version = str(triton.__version__)
    found = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if found < OLDEST_TRITON:
        raise InputError(
            f"triton is {version} but the Triton kernels need {'.'.join(map(str, OLDEST_TRITON))} or later; "
            "pip install 'hideaway[triton]'"
        )
    return triton


def check_driver(triton: Any) -> None:  # noqa: ANN401
    """Refuse where Triton cannot talk to a GPU: it compiles a small C module for that when it is first needed.

    Raises
    ------
    InputError
        It cannot, and why.
    """
    try:
        triton.runtime.driver.active.get_current_target()
    except (RuntimeError, OSError, ImportError, subprocess.CalledProcessError) as error:
        raise InputError(
            f"Triton cannot reach a GPU ({error}); it needs a CUDA driver, a C compiler and Python's headers, for "
            "example from gcc and python3-dev"
        ) from error


def check_inputs(layout: ExpertLayout, inputs: str, *, interpreted: bool) -> None:
    """Refuse inputs that do not exist or that the interpreter would get wrong, and experts too large.

    Raises
    ------
    InputError
        As said.
    """
    if inputs not in INPUTS:
        raise InputError(f"inputs is {inputs!r} but must be one of {', '.join(INPUTS)}; choose one")
    if interpreted and inputs == "fp4" and layout.expert_format == "nvfp4":
        raise InputError(
            "Triton's interpreter takes NVFP4 scales for powers of two and gives wrong products; use fp4-decoded there"
        )
    if layout.expert_bytes >= MOST_EXPERT_BYTES:
        raise InputError(
            f"an expert has {layout.expert_bytes} bytes but the Triton kernels address fewer than "
            f"{MOST_EXPERT_BYTES}; use another kernel"
        )


def check_capability(capability: tuple[int, int], name: str, inputs: str) -> None:
    """Refuse a GPU that lacks the instructions.

    Raises
    ------
    InputError
        It does; `name` is the GPU's.
    """
    found = ".".join(map(str, capability))
    if capability < OLDEST_CAPABILITY:
        raise InputError(
            f"{name} has compute capability {found} but the Triton kernels need "
            f"{'.'.join(map(str, OLDEST_CAPABILITY))} or later; use torch look-ups (DeviceExpert)"
        )
    if inputs == "fp4" and capability[0] != BLOCK_SCALED_MAJOR:
        raise InputError(
            f"{name} has compute capability {found} but FP4 inputs need the block-scaled instruction of "
            f"{BLOCK_SCALED_MAJOR}.x; use bfloat16 inputs"
        )
