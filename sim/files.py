"""Files that are whole or absent: written to a temporary neighbour, then renamed; read with errors that help.

Long work asks `check_writable` first, so that a wrong output path is refused before the work and not after it.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from hideaway.sim.errors import InputError

MAX_TEXT_BYTES = 2**30
"""A larger text is refused rather than read into memory whole; the longest public trace in use has 0.7 GB."""


def check_writable(path: str | os.PathLike[str], *, folder: bool = False) -> None:
    """Refuse a path to which a file (or, with `folder`, a folder of files) cannot be written; changes nothing.

    Folders that are missing are made when the file is written.

    Raises
    ------
    InputError
        The path is empty, is a folder (or a file where a folder is due), or lies where nothing can be written.
    """
    shown = os.fspath(path)
    if not shown or "\0" in shown:
        raise InputError(f"{shown!r} is not a path; name a {'folder' if folder else 'file'} to write to")
    if not folder and (shown.endswith(("/", os.sep)) or os.path.isdir(shown)):
        raise InputError(f"cannot write {shown!r}: it is a folder; name a file in it")
    if os.path.exists(shown) and not folder and not os.path.isfile(shown):
        raise InputError(f"cannot write {shown!r}: it is not a plain file; name another")
    place = Path(shown) if folder else Path(shown).parent
    try:
        while not os.path.lexists(place) and place != place.parent:
            place = place.parent
        reason = "" if place.is_dir() else f"{str(place)!r} is not a folder"
    except OSError as error:
        reason = str(error.strerror or error)
    if not reason and not os.access(place, os.W_OK | os.X_OK):
        reason = f"no permission in {str(place)!r}"
    if reason:
        raise InputError(f"cannot write {shown!r}: {reason}; choose a folder you can write to")


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
    check_writable(path)
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
    except (OSError, ValueError) as error:  # ValueError: a path with a null byte
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot write {target}: {reason}; choose a folder you can write to") from error
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
    shown = f"{what} {os.fspath(path)!r}"
    try:
        with open(path, "rb") as stream:
            status = os.fstat(stream.fileno())
            if not (stat.S_ISREG(status.st_mode) or stat.S_ISFIFO(status.st_mode)):
                raise InputError(f"cannot read {shown}: it is neither a file nor a pipe; give a text file")
            data = b"" if status.st_size > MAX_TEXT_BYTES else stream.read(MAX_TEXT_BYTES + 1)
        if max(len(data), status.st_size) > MAX_TEXT_BYTES:
            raise InputError(f"{shown} has more than {MAX_TEXT_BYTES} bytes; cut it to what is needed")
        return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"cannot read {shown}: {error.strerror or error}; check the path") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{shown} is not UTF-8 text; give a text file") from error
    except ValueError as error:  # a path with a null byte
        raise InputError(f"{os.fspath(path)!r} is not a path: {error}; check the path") from error


def json_value(text: str, *, allow_nan: bool = True) -> Any:  # noqa: ANN401
    """Return the value that JSON text holds; NaN and infinity, which no format has, only if the caller looks for them.

    Raises
    ------
    ValueError
        The text is not JSON, an object has a key twice, or an integer has thousands of digits.
    RecursionError
        The text is nested too deeply.
    """
    refuse = None if allow_nan else _refuse_constant
    return json.loads(text, object_pairs_hook=_object_without_repeats, parse_constant=refuse)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _object_without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        key, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {key[:80]!r} stands twice in an object")
    return members


def read_json(path: str | os.PathLike[str], what: str) -> Any:  # noqa: ANN401
    """Return the value in a JSON file; `what` names the kind of file in the error.

    Raises
    ------
    InputError
        The file cannot be read or is not JSON.
    """
    text = read_text(path, what)
    try:
        return json_value(text)
    except (ValueError, RecursionError) as error:  # ValueError also covers integers of thousands of digits
        raise InputError(f"{what} {os.fspath(path)!r} is not JSON: {error}; repair the file") from error
