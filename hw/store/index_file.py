"""`index.json`: what a store holds, where its data starts and the checksum of every expert.

Checksums are CRC-32 (`zlib`, in the standard library, about 2 GB/s a core and without Python's lock) over an expert
and its padding: they find damage, not malice.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hideaway.hw.store.description import PAGE_BYTES, StoreDescription
from hideaway.sim.errors import InputError
from hideaway.sim.files import read_json
from hideaway.sim.inputs.bounded import (
    bounded_whole,
    check_header,
    dataclass_from,
    json_list,
    json_object,
    nonempty_text,
    one_of,
)

STORE_FORMAT = "hideaway-experts"
STORE_VERSION = 1
INDEX_NAME = "index.json"
DATA_NAME = "experts.safetensors"
CHECKSUM_NAME = "crc32"


@dataclass(frozen=True, slots=True)
class StoreIndex:
    """The contents of an index.

    Parameters
    ----------
    data_offset_bytes : int
        Where the first expert starts in the data file.
    checksums : tuple of int
        CRC-32 of every expert with its padding, layer by layer.
    """

    description: StoreDescription
    data_offset_bytes: int
    checksums: tuple[int, ...]

    def __post_init__(self) -> None:
        bounded_whole("data_offset_bytes", self.data_offset_bytes, PAGE_BYTES, 2**40)
        if self.data_offset_bytes % PAGE_BYTES:
            raise InputError(
                f"data_offset_bytes is {self.data_offset_bytes} but must be a multiple of {PAGE_BYTES}; pack again"
            )
        expected = self.description.num_layers * self.description.num_experts
        if len(self.checksums) != expected:
            raise InputError(f"there are {len(self.checksums)} checksums for {expected} experts; pack again")


def index_value(index: StoreIndex) -> dict[str, object]:
    """Return the JSON value of an index."""
    description = index.description
    per_layer = description.num_experts
    return {
        "format": STORE_FORMAT,
        "version": STORE_VERSION,
        **dataclasses.asdict(description),
        "data_file": DATA_NAME,
        "data_offset_bytes": index.data_offset_bytes,
        "expert_bytes": description.expert_bytes,
        "expert_stride_bytes": description.stride_bytes,
        "checksum": CHECKSUM_NAME,
        "checksums": [
            " ".join(f"{value:08x}" for value in index.checksums[first : first + per_layer])
            for first in range(0, len(index.checksums), per_layer)
        ],
    }


def read_index(folder: Path) -> StoreIndex:
    """Return the index of the store in `folder`.

    Raises
    ------
    InputError
        There is no index, or something in it is missing, unknown or impossible.
    """
    path = folder / INDEX_NAME
    value = read_json(path, "store index")
    try:
        return _index_from(value)
    except InputError as error:
        raise InputError(f"store index {str(path)!r}: {error}") from error


def _index_from(value: object) -> StoreIndex:
    given = check_header("the index", value, STORE_FORMAT, STORE_VERSION)
    taken = {}
    own = ("data_file", "data_offset_bytes", "expert_bytes", "expert_stride_bytes", "checksum", "checksums")
    for key in own:
        if key not in given:
            raise InputError(f"the index lacks the key {key!r}; pack again")
        taken[key] = given.pop(key)
    description = dataclass_from(StoreDescription, "the index", json_object("the index", given))
    one_of("data_file", taken["data_file"], (DATA_NAME,))
    one_of("checksum", taken["checksum"], (CHECKSUM_NAME,))
    bounded_whole("expert_bytes", taken["expert_bytes"], description.expert_bytes, description.expert_bytes)
    bounded_whole(
        "expert_stride_bytes",
        taken["expert_stride_bytes"],
        description.stride_bytes,
        description.stride_bytes,
    )
    return StoreIndex(description, taken["data_offset_bytes"], _checksums_from(taken["checksums"]))


def _checksums_from(value: object) -> tuple[int, ...]:
    checksums: list[int] = []
    for line in json_list("checksums", value):
        words: Sequence[str] = nonempty_text("a line of checksums", line, 2**20).split(" ")
        for word in words:
            if len(word) != 8 or not set(word) <= set("0123456789abcdef"):
                raise InputError(f"checksums has {word[:20]!r} but needs 8 hexadecimal digits; pack again")
            checksums.append(int(word, 16))
    return tuple(checksums)
