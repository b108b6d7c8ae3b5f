"""The safetensors header of a store's data file, padded so that data starts on a page.

The format allows no byte that belongs to no tensor, so the padding after an expert (and any gap inside one) is a
tensor of its own. Its header may end in spaces. So the file is at once page-aligned and readable by any safetensors
library: `layers.3.experts.17.gate_up_blocks`.
"""

from __future__ import annotations

import json
import struct
from typing import Any

from hideaway.hw.store.description import DTYPES, PAGE_BYTES, StoreDescription
from hideaway.sim.errors import InputError

LENGTH_BYTES = 8
"""A safetensors file starts with the length of its header, little-endian."""

_SHORTEST_ENTRY_BYTES = len('"layers.0.experts.0.":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},')

MAX_HEADER_BYTES = 100_000_000
"""What the safetensors library reads (`MAX_HEADER_SIZE` in its `tensor.rs`)."""


def data_header(description: StoreDescription) -> bytes:
    """Return everything in front of the first expert, a whole number of pages.

    Raises
    ------
    InputError
        There are more experts than the format can list.
    """
    parts = _parts(description)
    count = description.num_layers * description.num_experts
    shortest = sum(_SHORTEST_ENTRY_BYTES + len(name) for name, *_ in parts)
    _check_length(count * shortest, description)  # before the work of making one that is too long
    entries: dict[str, Any] = {"__metadata__": {"format": "hideaway-experts"}}
    for position in range(count):
        layer, expert = divmod(position, description.num_experts)
        start = position * description.stride_bytes
        for name, dtype, shape, begin, end in parts:
            entries[f"layers.{layer}.experts.{expert}.{name}"] = {
                "dtype": dtype,
                "shape": shape,
                "data_offsets": [start + begin, start + end],
            }
    text = json.dumps(entries, separators=(",", ":")).encode()
    _check_length(len(text), description)
    length = -(-(LENGTH_BYTES + len(text)) // PAGE_BYTES) * PAGE_BYTES - LENGTH_BYTES
    return struct.pack("<Q", length) + text.ljust(length)


def _check_length(num_bytes: int, description: StoreDescription) -> None:
    if num_bytes > MAX_HEADER_BYTES:
        raise InputError(
            f"{description.num_layers} layers of {description.num_experts} experts need a header of more than "
            f"{MAX_HEADER_BYTES} bytes, which is all that a safetensors file allows; pack fewer layers"
        )


def _parts(description: StoreDescription) -> list[tuple[str, str, list[int], int, int]]:
    """Return (name, dtype, shape, begin, end) of everything in one expert's stride, padding included."""
    parts: list[tuple[str, str, list[int], int, int]] = []
    end = 0
    for tensor in description.tensors:
        _pad(parts, end, tensor.offset)
        end = tensor.offset + tensor.bytes
        parts.append((tensor.name, DTYPES[tensor.dtype][0], list(tensor.shape), tensor.offset, end))
    _pad(parts, end, description.stride_bytes)
    return parts


def _pad(parts: list[tuple[str, str, list[int], int, int]], begin: int, end: int) -> None:
    if end > begin:
        parts.append((f"padding_at_{begin}", "U8", [end - begin], begin, end))
