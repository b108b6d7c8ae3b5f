"""One malformed input: the words of the command, the files it reads, and what its sentence must name."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hideaway.main import main

MOST_CHARACTERS = 1500
"""A sentence that repeats a whole file is none."""
HANG_SECONDS = 120
SPARSE_BYTES = 2**31


@dataclass(frozen=True)
class Folder:
    """Stands for the content of a file that is a folder."""


@dataclass(frozen=True)
class LinkToItself:
    """Stands for the content of a file that is a symbolic link to itself."""


@dataclass(frozen=True)
class SparseFile:
    """Stands for a content of `SPARSE_BYTES` zero bytes that take no room on the disk."""


Content = bytes | Folder | LinkToItself | SparseFile


@dataclass(frozen=True)
class Case:
    """A command that must be refused.

    `names` are texts of which the sentence must hold one: the spoilt file, key or flag. `kind` says what was spoilt
    and how, for the counts of a campaign.
    """

    kind: str
    argv: tuple[str, ...]
    files: tuple[tuple[str, Content], ...] = ()
    names: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        return self.kind.partition(":")[0]

    @property
    def runs_as_process(self) -> bool:
        return not any("\0" in word for word in self.argv)


def lay_out(case: Case, folder: Path) -> None:
    for name, content in case.files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        match content:
            case Folder():
                path.mkdir()
            case LinkToItself():
                path.symlink_to(path.name)
            case SparseFile():
                with path.open("wb") as stream:
                    stream.truncate(SPARSE_BYTES)
            case _:
                path.write_bytes(content)


def everything_in(folder: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of change of every entry, so that neither a new file nor a changed one escapes."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_size, path.lstat().st_mtime_ns)
        for path in folder.rglob("*")
    }


def complaint_in_process(case: Case, folder: Path) -> str | None:
    """Run the case through `main` in `folder` and return what is wrong with its answer, or None."""
    lay_out(case, folder)
    before = everything_in(folder)
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        hang_guard(),
    ):
        try:
            code: object = main(list(case.argv))
        except BaseException as error:
            code = f"raised {type(error).__name__}: {error}"
    return complaint(case, code, out.getvalue(), err.getvalue(), before, everything_in(folder))


def complaint_as_process(case: Case, folder: Path) -> str | None:
    """Run the case as a process in `folder` and return what is wrong with its answer, or None."""
    lay_out(case, folder)
    before = everything_in(folder)
    done = subprocess.run(
        [sys.executable, "-m", "hideaway", *case.argv],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    return complaint(case, done.returncode, done.stdout, done.stderr, before, everything_in(folder))


def complaint(
    case: Case,
    code: object,
    out: str,
    err: str,
    before: dict[str, tuple[int, int]],
    after: dict[str, tuple[int, int]],
) -> str | None:
    found = []
    if code != 2:
        found.append(f"exit code {code!r}")
    if out:
        found.append(f"stdout {out[:200]!r}")
    if not err.startswith("hideaway: ") or not err.endswith("\n") or err.count("\n") != 1:
        found.append("stderr is not one line of hideaway")
    if "Traceback" in err:
        found.append("a traceback")
    if len(err) > MOST_CHARACTERS:
        found.append(f"a sentence of {len(err)} characters")
    if case.names and not any(name in err for name in case.names):
        found.append(f"names none of {case.names}")
    if before != after:
        found.append(f"left {sorted(set(after.items()) ^ set(before.items()))}")
    if not found:
        return None
    return f"{case.kind}: {'; '.join(found)}\n  {' '.join(map(repr, case.argv))[:600]}\n  {err[:600]!r}"


@contextlib.contextmanager
def hang_guard() -> Iterator[None]:
    """Turn an endless run into a failure; far beyond what any case takes, so nothing is timed."""

    def give_up(*_: object) -> None:
        raise TimeoutError(f"still running after {HANG_SECONDS} s")

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(HANG_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def device(name: str) -> str | None:
    """Return the path of a device file if the system has it."""
    path = f"/dev/{name}"
    return path if os.path.exists(path) else None
