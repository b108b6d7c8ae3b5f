"""A lock between processes (and threads) that guards one file while it is read, changed and replaced.

The lock is a file beside the guarded one, held with `flock` and removed at the end. A process that waited on
a lock file which was removed meanwhile sees that it holds a dead file and takes the lock anew.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hideaway.sim.errors import HideawayError, InputError


@contextmanager
def exclusive_lock(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold the lock of `path` while the block runs; waits for as long as another holds it.

    Raises
    ------
    InputError
        The folder cannot be written.
    HideawayError
        The system has no `flock`.
    """
    try:
        import fcntl
    except ImportError as error:
        raise HideawayError("this system has no file locks; append rows from one process only") from error
    target = Path(path)
    lock_path = target.with_name(f".{target.name}.lock") if target.name else target
    descriptor = -1
    while descriptor < 0:
        descriptor = _open_lock_file(lock_path)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if not _is_still_there(descriptor, lock_path):
            os.close(descriptor)
            descriptor = -1
    try:
        yield
    finally:
        lock_path.unlink(missing_ok=True)
        os.close(descriptor)


def _open_lock_file(lock_path: Path) -> int:
    try:
        lock_path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot lock {lock_path}: {reason}; choose a folder you can write to") from error


def _is_still_there(descriptor: int, lock_path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(lock_path))
    except FileNotFoundError:
        return False
