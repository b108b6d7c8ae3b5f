"""Building and caching the compiled kernel: what goes wrong is said, what is there is not built again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hideaway.hw.fp4 import build
from hideaway.hw.fp4.build import KernelBuildError, build_kernel, cache_folder


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    return tmp_path


def fake_compiler(folder: Path, body: str) -> Path:
    """A compiler that says its version and otherwise does `body`, with the output's path in $out."""
    path = folder / "fake-compiler"
    path.write_text(
        '#!/bin/sh\nif [ "$1" = --version ]; then echo fake 1; exit 0; fi\n'
        f'for argument; do out=$argument; done\necho run >> "{folder}/runs"\n{body}\n'
    )
    path.chmod(0o755)
    return path


def test_a_kernel_is_built_once_and_found_again(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", str(fake_compiler(own_cache, 'echo library > "$out"')))
    first = build_kernel("generic")
    assert first.read_text() == "library\n"
    assert first.parent == cache_folder() == own_cache / "hideaway" / "kernels"
    assert build_kernel("generic") == first
    assert (own_cache / "runs").read_text() == "run\n"
    assert [path.name for path in first.parent.iterdir()] == [first.name]


def test_another_compiler_flags_or_sources_make_another_library(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", str(fake_compiler(own_cache, 'echo library > "$out"')))
    names = {build_kernel("generic").name, build_kernel("avx2").name}
    sources = own_cache / "native"
    sources.mkdir()
    (sources / "kernel.cpp").write_text("// other")
    monkeypatch.setattr(build, "SOURCES", sources)
    names.add(build_kernel("generic").name)
    assert len(names) == 3


def test_no_compiler_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(
        KernelBuildError, match=r"no C\+\+ compiler was found \(c\+\+, g\+\+, clang\+\+\); install"
    ):
        build_kernel("generic")


def test_a_compiler_that_fails_is_quoted_and_leaves_nothing(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = fake_compiler(own_cache, 'echo part > "$out"; echo "x.cpp:1: error: no such thing" >&2; exit 1')
    monkeypatch.setenv("CXX", str(script))
    with pytest.raises(
        KernelBuildError, match=r"could not compile the kernel \(x.cpp:1: error: no such thing\)"
    ):
        build_kernel("generic")
    assert not list(cache_folder().iterdir())


def test_a_cache_that_cannot_be_written_is_said(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (own_cache / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(own_cache / "file"))
    monkeypatch.setenv("CXX", str(fake_compiler(own_cache, 'echo library > "$out"')))
    with pytest.raises(KernelBuildError, match="set XDG_CACHE_HOME to a folder you can write to"):
        build_kernel("generic")


def test_an_x86_processor_without_avx2_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr(build, "_processor_flags", lambda: frozenset({"sse2"}))
    with pytest.raises(KernelBuildError, match="does not report AVX2 and FMA"):
        build_kernel()


def test_a_damaged_library_is_built_again(own_cache: Path) -> None:
    pytest.importorskip("ctypes")
    if not any(os.access(f"/usr/bin/{name}", os.X_OK) for name in ("c++", "g++")):
        pytest.skip("no C++ compiler here")
    source = own_cache / "kernel.cpp"
    probe = f"""
import sys
from pathlib import Path
from hideaway.hw.fp4 import build, compiled_kernel
build._compile = lambda command: Path(command[-1]).write_bytes(Path({str(source)!r}).read_bytes())
path = build.build_kernel("generic")
try:
    compiled_kernel.load_kernel(1, "generic")
except build.KernelBuildError as error:
    print(error)
"""
    source.write_text("not a library")
    run = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert "the compiled kernel does not load" in run.stdout


def test_number_formats_import_without_torch() -> None:
    probe = (
        "import sys, hideaway.hw, hideaway.hw.fp4.mxfp4, hideaway.hw.fp4.nvfp4, hideaway.hw.fp4.expert_weights, "
        "hideaway.hw.fp4.swiglu, hideaway.hw.fp4.build; print('torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
