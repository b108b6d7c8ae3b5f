"""How the compiled kernel comes to be: the C++ in `native/`, the machine's own compiler, a folder of the user's cache.

Needs a C++20 compiler (the one `CXX` names, else c++, g++ or clang++) and neither torch headers nor build tools. The
library is named by a hash of sources, compiler version and flags, so a change of any of these builds anew and
machines that share a home folder do not meet; it is compiled under another name and renamed, so a reader sees a whole
one or none.
`compiled_kernel.py` loads it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from hideaway.sim.errors import HideawayError

SOURCES = Path(__file__).resolve().parent / "native"
_COMMON_FLAGS = (
    "-O3",
    "-std=c++20",
    "-shared",
    "-fPIC",
    "-fvisibility=hidden",
    "-pthread",
    "-ffp-contract=off",  # a fused multiply-add is written where it is meant: bits must not depend on the compiler
    "-fno-math-errno",
    "-fno-trapping-math",
)
_COMPILE_SECONDS = 300


class KernelBuildError(HideawayError):
    """The compiled kernel cannot be had here; the message says why in one sentence."""


def build_kernel(variant: str | None = None) -> Path:
    """Return the path of the compiled library, building it if the cache has none.

    Parameters
    ----------
    variant
        "avx2" or "generic" (plain C++); by default the one for this processor.

    Raises
    ------
    KernelBuildError
        No compiler, a processor the kernel is not made for, a failed compilation, or a cache that cannot be written.
    """
    compiler = _compiler()
    flags = (*_COMMON_FLAGS, *_variant_flags(variant or _native_variant()))
    target = cache_folder() / f"fp4-{_key(compiler, flags)}.so"
    if target.exists():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            library = Path(folder) / target.name
            _compile([compiler, *flags, str(SOURCES / "kernel.cpp"), "-o", str(library)])
            os.replace(library, target)
    except OSError as error:
        raise KernelBuildError(
            f"the compiled kernel cannot be kept in {target.parent}: {error.strerror or error}; set XDG_CACHE_HOME to "
            "a folder you can write to"
        ) from error
    return target


def cache_folder() -> Path:
    """Return the folder that holds compiled kernels: `$XDG_CACHE_HOME/hideaway/kernels` or under `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "hideaway" / "kernels"


def _compiler() -> str:
    named = os.environ.get("CXX", "").strip()
    names = (named,) if named else ("c++", "g++", "clang++")
    for name in names:
        path = shutil.which(name)
        if path is not None:
            return path
    raise KernelBuildError(
        f"no C++ compiler was found ({', '.join(names)}); install g++ or set CXX to a C++20 compiler"
    )


def _native_variant() -> str:
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return "generic"
    if {"avx2", "fma"} <= _processor_flags():
        return "avx2"
    raise KernelBuildError(
        "this x86 processor does not report AVX2 and FMA, which the compiled kernel needs; use another machine"
    )


@cache
def _processor_flags() -> frozenset[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return frozenset()
    flags = next((line for line in lines if line.startswith("flags")), "")
    return frozenset(flags.partition(":")[2].split())


def _variant_flags(variant: str) -> tuple[str, ...]:
    if variant == "avx2":
        return ("-mavx2", "-mfma")
    # On x86 a fused multiply-add needs its instruction: the library function would be a hundred times slower.
    fused = ("-mfma",) if "fma" in _processor_flags() else ()
    return ("-DHIDEAWAY_GENERIC", *fused)


def _key(compiler: str, flags: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for source in sorted(SOURCES.iterdir()):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    digest.update("\0".join((_version(compiler), platform.machine(), *flags)).encode())
    return digest.hexdigest()[:16]


@cache
def _version(compiler: str) -> str:
    try:
        run = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise KernelBuildError(
            f"{compiler} does not run: {error.strerror or error}; set CXX to a C++20 compiler"
        ) from error
    return run.stdout


def _compile(command: list[str]) -> None:
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_COMPILE_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise KernelBuildError(
            f"{command[0]} took longer than {_COMPILE_SECONDS} s on the kernel; try another compiler with CXX"
        ) from error
    if run.returncode:
        first = next((line for line in run.stderr.splitlines() if "error" in line), run.stderr.strip()[:200])
        raise KernelBuildError(
            f"{command[0]} could not compile the kernel ({first}); set CXX to a C++20 compiler"
        )
