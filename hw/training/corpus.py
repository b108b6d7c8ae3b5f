"""The corpus: the source files of Python's standard library, as bytes, split into training and validation by file.

The rule, in full: every `*.py` below the standard library's folder, without `site-packages`, `__pycache__` and the
folders of tables in `EXCLUDED`; ASCII only; 200 bytes to 200 kB; of equal files the first by path. Sorted by path.
A file is for validation if the SHA-256 of its path, read as a number, is 0 modulo 32. Files are joined with an
end-of-text token after each and a beginning-of-text token before. The licence is Python's (PSF-2.0).
"""

from __future__ import annotations

import hashlib
import platform
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hideaway.sim.errors import InputError

Tokens = npt.NDArray[np.int16]

BOS, EOS, MASK = 256, 257, 258
"""Token ids beyond the 256 bytes: beginning and end of a file, and a drafted position yet unknown."""

VOCABULARY = 260
"""Rows of the embedding: 259 ids in use, made even."""

EXCLUDED = frozenset({"site-packages", "dist-packages", "__pycache__", "encodings", "pydoc_data"})
SMALLEST_FILE_BYTES, LARGEST_FILE_BYTES = 200, 200_000
VALIDATION_MODULUS = 32


@dataclass(frozen=True, slots=True)
class Corpus:
    """Token ids of both parts, and where they come from.

    Parameters
    ----------
    training, validation
        (tokens,) int16.
    files
        Paths of the validation files, relative to the folder, in order.
    python
        Version of the interpreter whose library it is.
    sha256
        Of both token arrays, training first.
    """

    training: Tokens
    validation: Tokens
    files: tuple[str, ...]
    python: str
    sha256: str


def read_corpus(folder: Path | None = None) -> Corpus:
    """Return the corpus of a folder of Python sources, by default the running interpreter's standard library.

    Raises
    ------
    InputError
        No file is left for one of the two parts.
    """
    root = Path(sysconfig.get_paths()["stdlib"]) if folder is None else folder
    parts: dict[bool, list[Tokens]] = {False: [], True: []}
    held_out: list[str] = []
    seen: set[bytes] = set()
    for path in sorted(root.rglob("*.py"), key=lambda path: path.relative_to(root).as_posix()):
        relative = path.relative_to(root)
        if EXCLUDED & set(relative.parts):
            continue
        text = path.read_bytes()
        digest = hashlib.sha256(text).digest()
        if not SMALLEST_FILE_BYTES <= len(text) <= LARGEST_FILE_BYTES or not text.isascii() or digest in seen:
            continue
        seen.add(digest)
        name = relative.as_posix()
        validation = is_validation(name)
        parts[validation].append(document_tokens(text))
        if validation:
            held_out.append(name)
    if not parts[False] or not parts[True]:
        raise InputError(
            f"{root} has {len(parts[False])} training and {len(parts[True])} validation files; give a folder with more "
            "Python sources"
        )
    training, validation_tokens = np.concatenate(parts[False]), np.concatenate(parts[True])
    sha256 = hashlib.sha256(training.tobytes() + validation_tokens.tobytes()).hexdigest()
    return Corpus(training, validation_tokens, tuple(held_out), platform.python_version(), sha256)


def is_validation(name: str) -> bool:
    """Return whether the file of this path, relative and with slashes, is held out."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % VALIDATION_MODULUS == 0


def document_tokens(text: bytes) -> Tokens:
    """Return a file as token ids between a beginning and an end, (bytes + 2,)."""
    return np.concatenate(([BOS], np.frombuffer(text, np.uint8), [EOS])).astype(np.int16)


def windows(
    tokens: Tokens, *, count: int, length: int, generator: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Return random windows, (count, length) int64, each anywhere in the text."""
    if length > len(tokens):
        raise InputError(f"a window is {length} tokens but the text has {len(tokens)}; give a larger corpus")
    starts = generator.integers(0, len(tokens) - length + 1, size=count)
    drawn: npt.NDArray[np.int64] = tokens[starts[:, None] + np.arange(length)].astype(np.int64)
    return drawn
