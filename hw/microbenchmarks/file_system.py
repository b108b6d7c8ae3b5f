"""On what kind of file system a store lies."""

from __future__ import annotations

from pathlib import Path


def file_system_of(path: Path) -> str | None:
    """Return the type of the file system that holds a path, None where Linux does not say."""
    try:
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError):
        return None
    place = path.resolve()
    inside = [(len(fields[1]), fields[2]) for fields in mounts if place.is_relative_to(fields[1])]
    return max(inside, default=(0, None))[1]
