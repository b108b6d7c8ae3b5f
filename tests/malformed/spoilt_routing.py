"""Routing archives with one thing spoilt: an array, its header, or the bytes of the archive.

Certain because each way breaks what the format requires of every array (type, rank, range, agreement with the model) or
a checksum: the archive ends in its index, so no proper prefix is one, and a changed byte of an array breaks its CRC.
"""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.malformed import sound
from tests.malformed.case import Case

Arrays = dict[str, Any]
COMMANDS = (
    (
        "simulate",
        "--requests",
        "1",
        "--model",
        "shapes.json",
        "--slots",
        "4",
        "--routing",
        "rows.npz",
        "-o",
        "new.json",
    ),
    (
        "matrix",
        "--requests",
        "1",
        "--model",
        "shapes.json",
        "--routing",
        "rows.npz",
        "--workers",
        "1",
        "--out",
        "new",
    ),
    ("hide", "--model", "shapes.json", "--profile", "rtx-5090", "--routing", "rows.npz", "-o", "new.json"),
)
OTHER_TYPES = ("float64", "float16", "complex128", "bool", "S4", "U3", "datetime64[s]")


def spoilt_routing(rng: np.random.Generator) -> Case:
    """Return a routing file with one thing wrong, for the tiny model."""
    names = list(_ARRAY_WAYS) + list(_BYTE_WAYS)
    name = names[rng.integers(len(names))]
    if name in _ARRAY_WAYS:
        arrays = sound.routing_arrays()
        _ARRAY_WAYS[name](arrays, rng)
        data = sound.archive(arrays, compressed=bool(rng.integers(2)))
    else:
        data = _BYTE_WAYS[name](rng)
    argv = COMMANDS[rng.integers(len(COMMANDS))]
    files = (("rows.npz", data), ("shapes.json", sound.text_of(sound.TINY_MODEL)))
    return Case(f"routing:{name}", argv, files, ("rows.npz",))


def _missing_array(arrays: Arrays, rng: np.random.Generator) -> None:
    del arrays[("expert_ids", "num_experts", "top_k")[rng.integers(3)]]


def _other_type(arrays: Arrays, rng: np.random.Generator) -> None:
    name = ("expert_ids", "num_experts", "top_k", "seq_lengths")[rng.integers(4)]
    arrays[name] = np.asarray(arrays[name]).astype(OTHER_TYPES[rng.integers(len(OTHER_TYPES))])


def _objects(arrays: Arrays, rng: np.random.Generator) -> None:
    name = ("expert_ids", "num_experts", "top_k", "seq_lengths")[rng.integers(4)]
    arrays[name] = np.array([{"run": "this"}] * int(rng.integers(1, 5)), dtype=object)


def _record_type(arrays: Arrays, rng: np.random.Generator) -> None:
    arrays["expert_ids"] = np.zeros(
        (40 + int(rng.integers(40)), 4), dtype=[("expert", "i4"), ("weight", "f4")]
    )


def _other_rank(arrays: Arrays, rng: np.random.Generator) -> None:
    ids = arrays["expert_ids"]
    shapes = (
        (-1,),
        (40, -1),
        (2, 20, 4, 2),
        (40, 2, 4),
        (40, 8, 1),
        (80, 4, 1),
        (20, 4, 4),
        (40, 4, 2, 1),
        (80, 2, 2),
    )
    arrays["expert_ids"] = ids.reshape(shapes[rng.integers(len(shapes))])


def _empty(arrays: Arrays, rng: np.random.Generator) -> None:
    shapes = ((0, 4, 2), (40, 0, 2), (40, 4, 0), (0,), (0, 0, 0))
    arrays["expert_ids"] = np.zeros(shapes[rng.integers(len(shapes))], dtype=np.int8)


def _id_out_of_range(arrays: Arrays, rng: np.random.Generator) -> None:
    ids = arrays["expert_ids"].astype(np.int64)
    wrong = (-2, -100, 8, 9, 127, 300, 2**31, -(2**40), 2**62)
    ids[rng.integers(40), rng.integers(4), rng.integers(2)] = wrong[rng.integers(len(wrong))]
    arrays["expert_ids"] = ids


def _huge_unsigned_id(arrays: Arrays, rng: np.random.Generator) -> None:
    ids = arrays["expert_ids"].astype(np.uint64)
    ids[rng.integers(40), rng.integers(4), rng.integers(2)] = 2**64 - 1 - int(rng.integers(5))
    arrays["expert_ids"] = ids


def _expert_twice(arrays: Arrays, rng: np.random.Generator) -> None:
    token, layer = rng.integers(40), rng.integers(4)
    arrays["expert_ids"][token, layer, 1] = arrays["expert_ids"][token, layer, 0]


def _other_shape_than_the_model(arrays: Arrays, rng: np.random.Generator) -> None:
    kept = int(rng.integers(1, 4))
    arrays["expert_ids"] = arrays["expert_ids"][:, :kept]


def _wrong_count(arrays: Arrays, rng: np.random.Generator) -> None:
    name = ("num_experts", "top_k")[rng.integers(2)]
    wrong = (0, -1, 1, 3, 9, 40_000, 2**62)
    arrays[name] = np.int64(wrong[rng.integers(len(wrong))])


def _count_of_many(arrays: Arrays, rng: np.random.Generator) -> None:
    name = ("num_experts", "top_k")[rng.integers(2)]
    arrays[name] = np.full(int(rng.choice([0, 2, 3, 50])), arrays[name])


def _wrong_lengths(arrays: Arrays, rng: np.random.Generator) -> None:
    wrong: tuple[Any, ...] = (
        [25, 14], [25, 16], [40, 0], [41, -1], [0], [], [[25, 15]], 40, [2**62, 2**62], [40] * 2, [-40],
        np.array([2**63, 2**63 - 40], dtype=np.uint64), np.array([200, 96], dtype=np.uint8),
    )  # fmt: skip
    arrays["seq_lengths"] = np.array(wrong[rng.integers(len(wrong))])
    if arrays["seq_lengths"].size == 0:
        arrays["seq_lengths"] = np.zeros(0, dtype=np.int64)


def _wrong_phase(arrays: Arrays, rng: np.random.Generator) -> None:
    wrong = (
        np.ones(39, np.int8),
        np.ones((40, 1), np.int8),
        np.ones(40),
        np.array(1),
        np.array(["decode"] * 40),
        np.ones(80, int),
    )
    arrays["phase"] = wrong[rng.integers(len(wrong))]


_ARRAY_WAYS: dict[str, Callable[[Arrays, np.random.Generator], None]] = {
    "missing array": _missing_array,
    "other type": _other_type,
    "pickled objects": _objects,
    "record type": _record_type,
    "other rank": _other_rank,
    "empty": _empty,
    "id out of range": _id_out_of_range,
    "huge unsigned id": _huge_unsigned_id,
    "expert twice": _expert_twice,
    "not the model's layers": _other_shape_than_the_model,
    "wrong count": _wrong_count,
    "count of many": _count_of_many,
    "wrong lengths": _wrong_lengths,
    "wrong phase": _wrong_phase,
}


def _cut(rng: np.random.Generator) -> bytes:
    data = sound.archive(sound.routing_arrays(), compressed=bool(rng.integers(2)))
    return data[: int(rng.integers(1, len(data)))]


def _changed_byte(rng: np.random.Generator) -> bytes:
    """Change one byte of the ids as they lie in an uncompressed archive."""
    arrays = sound.routing_arrays()
    data = bytearray(sound.archive(arrays))
    start = bytes(data).index(arrays["expert_ids"].tobytes())
    data[start + int(rng.integers(arrays["expert_ids"].size))] ^= 1 << int(rng.integers(8))
    return bytes(data)


def _bare_array(rng: np.random.Generator) -> bytes:
    stream = io.BytesIO()
    np.save(stream, sound.routing_arrays()["expert_ids"][: int(rng.integers(1, 40))])
    return stream.getvalue()


def _pickle(rng: np.random.Generator) -> bytes:
    return pickle.dumps({"expert_ids": sound.routing_arrays()["expert_ids"][: int(rng.integers(1, 40))]})


def _claimed_shape(rng: np.random.Generator) -> bytes:
    """Have the header of the ids claim more than is there, up to more than any machine holds."""
    shapes = ("(41, 4, 2)", "(10000000000000, 4, 2)", "(-40, 4, 2)", "(40, -4, -2)", f"({10**30}, 4, 2)",
              "(40.0, 4, 2)", "40",
              "(True, 4, 2)", "(None,)", "((((40, 4, 2),),),)", "(40, 4, 2", "__import__('os')",
              "(4, 4, 2)*9")  # fmt: skip
    header = f"{{'descr': '|i1', 'fortran_order': False, 'shape': {shapes[rng.integers(len(shapes))]}, }}"
    return _with_ids(_npy((1, 0), header.encode(), sound.routing_arrays()["expert_ids"].tobytes()), rng)


def _odd_header(rng: np.random.Generator) -> bytes:
    good = "{'descr': '|i1', 'fortran_order': False, 'shape': (40, 4, 2), }"
    headers = ("", "{}", "[]", "None", good[:-3], good.replace("'descr'", "'type'"),
               good.replace("|i1", "|i3"), good.replace("|i1", "junk"),
               good.replace("False", "'no'"), good.replace("(40, 4, 2)", "(40L, 4L, 2L)"), "(" * 5000,
               " " * 9000 + "x" * 9000,
               good + ";import os", good.replace("'|i1'", "[('a', '|i1')]"),
               good.replace("'|i1'", "None"))  # fmt: skip
    header = headers[rng.integers(len(headers))].encode()
    return _with_ids(_npy((1, 0), header, sound.routing_arrays()["expert_ids"].tobytes()), rng)


def _odd_magic(rng: np.random.Generator) -> bytes:
    member = bytearray(
        _npy((1, 0), b"{'descr': '|i1', 'fortran_order': False, 'shape': (40, 4, 2), }", bytes(320))
    )
    member[int(rng.integers(6))] ^= 0xFF
    version = ((0, 0), (9, 9), (255, 0))[rng.integers(3)]
    return _with_ids(bytes(member) if rng.integers(2) else _npy(version, b"{}", bytes(320)), rng)


def _npy(version: tuple[int, int], header: bytes, data: bytes) -> bytes:
    return b"\x93NUMPY" + bytes(version) + struct.pack("<H", len(header)) + header + data


def _with_ids(member: bytes, rng: np.random.Generator) -> bytes:
    arrays = sound.routing_arrays()
    del arrays["expert_ids"]
    stream = io.BytesIO(sound.archive(arrays))
    method = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)[rng.integers(2)]
    with zipfile.ZipFile(stream, "a", method) as archive:
        archive.writestr("expert_ids.npy", member)
    return stream.getvalue()


_BYTE_WAYS: dict[str, Callable[[np.random.Generator], bytes]] = {
    "cut": _cut,
    "changed byte": _changed_byte,
    "bare array": _bare_array,
    "pickle": _pickle,
    "claimed shape": _claimed_shape,
    "odd header": _odd_header,
    "odd magic": _odd_magic,
}
