"""Routing traces in .npz files: read without running anything they hold, and written.

Arrays: `expert_ids` (tokens, layers, k) whole numbers with -1 for not recorded, `num_experts`, `top_k`; optional
`seq_lengths` and `phase` (0 prefill, 1 decode). Other arrays are ignored and not even unpacked.

Not here: checks of the values (`trace.py`); names of shipped traces (`load.py`).
"""

from __future__ import annotations

import io
import math
import os
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from typing import IO

import numpy as np
import numpy.typing as npt

from hideaway.sim.errors import InputError
from hideaway.sim.files import write_bytes_atomically
from hideaway.sim.inputs.routing.trace import RoutingTrace, checked_lengths
from hideaway.sim.units import MIB

MAX_ARRAY_BYTES = 256 * MIB
"""An array that would unpack to more is refused; 600,000 tokens of 48 layers and 8 choices fit."""

_BROKEN = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, TypeError, SyntaxError, KeyError, IndexError,
    NotImplementedError, RuntimeError, OverflowError, MemoryError, UserWarning, tokenize.TokenError,
)  # fmt: skip
"""What the standard library and numpy raise on mutilated archives and array headers."""


def read_routing_file(
    path: str | os.PathLike[str], *, name: str | None = None, origin: str | None = None
) -> RoutingTrace:
    """Return the trace in an .npz file; where it says which tokens are decode, only those.

    Parameters
    ----------
    path
        The file.
    name, origin
        What the trace is called and where it comes from; by default the path.

    Raises
    ------
    InputError
        The file cannot be read, or an array is missing, too large or not a routing trace.
    """
    shown = os.fspath(path)
    arrays = read_arrays(shown, ("expert_ids", "num_experts", "top_k", "seq_lengths", "phase"))
    ids = _required(arrays, "expert_ids", shown)
    num_experts = _whole_number(_required(arrays, "num_experts", shown), "num_experts", shown)
    top_k = _whole_number(_required(arrays, "top_k", shown), "top_k", shown)
    tokens = ids.shape[0] if ids.ndim else 0
    lengths = arrays.get("seq_lengths", np.array([tokens]))
    label = name if name is not None else shown
    note = ""
    if "phase" in arrays:
        ids, lengths, note = _decode_part(ids, lengths, arrays["phase"], label)
    text = origin if origin is not None else f"the routing recorded in {shown}{note}"
    return RoutingTrace(label, ids, num_experts, top_k, lengths, text)  # type: ignore[arg-type]


def write_routing_file(path: str | os.PathLike[str], trace: RoutingTrace) -> None:
    """Write a trace as an .npz file that `read_routing_file` reads back."""
    ids = trace.expert_ids.astype(np.int8) if trace.num_experts <= 128 else trace.expert_ids
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        expert_ids=ids,
        num_experts=np.int64(trace.num_experts),
        top_k=np.int64(trace.top_k),
        seq_lengths=trace.seq_lengths.astype(np.int32),
    )
    write_bytes_atomically(path, buffer.getvalue())


def read_arrays(path: str, wanted: Sequence[str]) -> dict[str, npt.NDArray[np.generic]]:
    """Return those of the wanted arrays of whole numbers that a file holds; nothing else of it is unpacked.

    Raises
    ------
    InputError
        The file cannot be read, or an array is too large or of another type.
    """
    arrays: dict[str, npt.NDArray[np.generic]] = {}
    try:
        with warnings.catch_warnings(), zipfile.ZipFile(path) as archive:
            warnings.simplefilter(
                "error", UserWarning
            )  # numpy repairs some odd headers and warns; refuse them
            present = set(archive.namelist())
            for array in wanted:
                if f"{array}.npy" in present:
                    info = archive.getinfo(f"{array}.npy")
                    with archive.open(info) as stream:
                        arrays[array] = _read_array(stream, info.file_size, array, path)
    except InputError:
        raise
    except OSError as error:
        raise InputError(
            f"cannot read routing trace {path!r}: {error.strerror or error}; check the path"
        ) from error
    except _BROKEN as error:
        raise InputError(
            f"routing trace {path!r} is not a readable .npz archive ({type(error).__name__}); write it again with"
            " numpy.savez_compressed"
        ) from error
    return arrays


def _read_array(stream: IO[bytes], stored_bytes: int, array: str, path: str) -> npt.NDArray[np.generic]:
    """Return one array; its size is checked from the header, before anything is unpacked."""
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, fortran_order, dtype = np.lib.format.read_array_header_2_0(stream)
    else:
        raise InputError(
            f"array {array} of routing trace {path!r} has header version {version}; save it again"
        )
    if dtype.kind not in "iu":
        raise InputError(f"array {array} of routing trace {path!r} has type {dtype}; store whole numbers")
    needed = math.prod(shape) * dtype.itemsize
    if needed > MAX_ARRAY_BYTES or min(shape, default=0) < 0:
        raise InputError(
            f"array {array} of routing trace {path!r} would need {needed} bytes; at most {MAX_ARRAY_BYTES}"
            " bytes are read, so cut the trace"
        )
    if needed > stored_bytes:
        raise InputError(f"array {array} of routing trace {path!r} is cut short; copy the file again")
    data = stream.read(needed)
    order = "F" if fortran_order else "C"
    return np.frombuffer(data, dtype=dtype, count=math.prod(shape)).reshape(shape, order=order)  # type: ignore[call-overload,no-any-return]


def _required(arrays: dict[str, npt.NDArray[np.generic]], array: str, path: str) -> npt.NDArray[np.generic]:
    if array not in arrays:
        raise InputError(
            f"routing trace {path!r} has no array {array}; it needs expert_ids, num_experts and top_k"
        )
    return arrays[array]


def _whole_number(value: npt.NDArray[np.generic], array: str, path: str) -> int:
    if value.size != 1:
        raise InputError(
            f"array {array} of routing trace {path!r} has shape {value.shape}; store one whole number"
        )
    return int(value.reshape(()).item())


def _decode_part(
    ids: npt.NDArray[np.generic], lengths: npt.NDArray[np.generic], phase: npt.NDArray[np.generic], name: str
) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.generic], str]:
    """Return the decode tokens, their sequence lengths and a note; all tokens where none is marked decode."""
    if phase.ndim != 1 or ids.ndim == 0 or phase.shape[0] != ids.shape[0]:
        raise InputError(
            f"routing trace {name!r} has {phase.shape} phases for expert_ids of shape {ids.shape}; give one a token"
        )
    decode = phase == 1
    if not decode.any() or decode.all():
        return ids, lengths, ""
    whole = checked_lengths(name, lengths, ids.shape[0])
    owner = np.repeat(np.arange(len(whole)), whole)
    kept = np.bincount(owner[decode], minlength=len(whole))
    return ids[decode], kept[kept > 0], f", its {int(decode.sum())} decode tokens"
