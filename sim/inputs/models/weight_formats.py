"""Bytes of a weight matrix in each stored format, and which part of a model is stored how.

| format | bytes of a (rows, columns) matrix |
|---|---|
| mxfp4 | 4 bits a weight, one E8M0 byte per 32 weights of a row: 4.25 bits (OCP Microscaling v1.0) |
| nvfp4 | 4 bits a weight, one E4M3 byte per 16 weights of a row, one float32 a matrix: 4.5 bits + 4 bytes |
| fp8 | one E4M3 byte a weight; one float32 scale per block where the checkpoint has blocks, else one |
| bf16 | 2 bytes a weight |

Vectors (norms, biases, sinks) are bf16 throughout. Not here: which matrices a model has (`attention.py`,
`architecture.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.bounded import bounded_whole, one_of

WEIGHT_FORMATS = ("mxfp4", "nvfp4", "fp8", "bf16")
BF16_BYTES = 2
FLOAT32_BYTES = 4
MXFP4_BLOCK = 32
NVFP4_BLOCK = 16
Matrix = tuple[int, int]
"""(rows, columns): output features, input features."""


def matrix_bytes(matrix: Matrix, weight_format: str, fp8_block: tuple[int, int] | None = None) -> int:
    """Return the stored bytes of one weight matrix, scales included.

    Parameters
    ----------
    matrix
        (rows, columns).
    weight_format
        One of `WEIGHT_FORMATS`.
    fp8_block
        (rows, columns) that share one float32 scale in fp8; None for one scale a matrix.
    """
    rows, columns = matrix
    match weight_format:
        case "mxfp4":
            return rows * _blocks(columns, MXFP4_BLOCK) * (MXFP4_BLOCK // 2 + 1)
        case "nvfp4":
            return rows * _blocks(columns, NVFP4_BLOCK) * (NVFP4_BLOCK // 2 + 1) + FLOAT32_BYTES
        case "fp8":
            scales = 1 if fp8_block is None else _blocks(rows, fp8_block[0]) * _blocks(columns, fp8_block[1])
            return rows * columns + scales * FLOAT32_BYTES
        case "bf16":
            return rows * columns * BF16_BYTES
    raise InputError(f"weight format is {weight_format!r} but must be one of {', '.join(WEIGHT_FORMATS)}")


def matrices_bytes(matrices: Iterable[Matrix], weight_format: str, fp8_block: tuple[int, int] | None) -> int:
    """Return the stored bytes of several matrices of one format."""
    return sum(matrix_bytes(matrix, weight_format, fp8_block) for matrix in matrices)


def weights_of(matrices: Iterable[Matrix]) -> int:
    """Return the number of weights in several matrices."""
    return sum(rows * columns for rows, columns in matrices)


def _blocks(length: int, block: int) -> int:
    return -(-length // block)


@dataclass(frozen=True, slots=True)
class StoredFormats:
    """How each part of a checkpoint is stored; embeddings, routers, norms and biases are bf16 always.

    Parameters
    ----------
    experts
        Routed experts.
    attention_input
        Projections into attention (q, k, v and their low-rank halves; the inputs of linear attention).
    attention_output
        The projection out of attention.
    shared_experts, dense_mlp, head
        Shared experts; MLPs of layers without routed experts; the language-model head.
    fp8_block
        (rows, columns) of a scale block in fp8; None for one scale a matrix.
    """

    experts: str
    attention_input: str = "bf16"
    attention_output: str = "bf16"
    shared_experts: str = "bf16"
    dense_mlp: str = "bf16"
    head: str = "bf16"
    fp8_block: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name != "fp8_block":
                one_of(f"stored.{field.name}", getattr(self, field.name), WEIGHT_FORMATS)
        if self.fp8_block is not None:
            if not isinstance(self.fp8_block, tuple) or len(self.fp8_block) != 2:
                raise InputError(
                    "stored.fp8_block must be null or two whole numbers such as [128, 128]; correct it"
                )
            for size in self.fp8_block:
                bounded_whole("stored.fp8_block", size, 1, 2**16)
