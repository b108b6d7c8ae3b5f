"""Files that are whole or absent: written to a temporary neighbour, then renamed; read with errors that help."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from hideaway.sim.errors import InputError


def write_text_atomically(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` to `path` so that a reader sees the old file or the new one, never a part.

    Raises
    ------
    InputError
        The folder cannot be written.
    """
    write_bytes_atomically(path, text.encode())


def write_bytes_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write `data` to `path` so that a reader sees the old file or the new one, never a part.

    Raises
    ------
    InputError
        The folder cannot be written.
    """
    target = Path(path)
    temporary: str | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
        temporary = None
    except OSError as error:
        raise InputError(
            f"cannot write {target}: {error.strerror or error}; choose a folder you can write to"
        ) from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def write_json_atomically(path: str | os.PathLike[str], value: object) -> None:
    """Write `value` as indented JSON with a final newline; NaN and infinity are refused."""
    write_text_atomically(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def read_text(path: str | os.PathLike[str], what: str) -> str:
    """Return the text of `path`; `what` names the kind of file in the error.

    Raises
    ------
    InputError
        The file is absent, unreadable, a folder or not UTF-8.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"cannot read {what} {os.fspath(path)!r}: {error.strerror or error}; check the path"
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{what} {os.fspath(path)!r} is not UTF-8 text; give a text file") from error
    except ValueError as error:  # a path with a null byte
        raise InputError(f"{os.fspath(path)!r} is not a path: {error}; check the path") from error


def read_json(path: str | os.PathLike[str], what: str) -> Any:  # noqa: ANN401
    """Return the value in a JSON file; `what` names the kind of file in the error.

    Raises
    ------
    InputError
        The file cannot be read or is not JSON.
    """
    text = read_text(path, what)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError also covers integers of thousands of digits
        raise InputError(f"{what} {os.fspath(path)!r} is not JSON: {error}; repair the file") from error
