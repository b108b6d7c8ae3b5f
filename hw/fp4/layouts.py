"""Where each tensor lies in the bytes of one expert, as it is stored, moved and computed.

The parts follow one another without padding, so that an expert takes exactly `ModelSpec.expert_bytes`:

| part | bytes | in |
|---|---|---|
| gate_up_blocks | (2 · intermediate, blocks, block / 2) uint8 codes | all |
| gate_up_scales | (2 · intermediate, blocks) uint8 | all |
| gate_up_bias | (2 · intermediate,) bfloat16 | experts with biases |
| down_blocks, down_scales, down_bias | the same of (hidden, intermediate) | as above |
| tensor_scales | (3,) float32 of gate, up, down | nvfp4 |

Rows of gate and up alternate (gate first) in gpt-oss and lie one after the other elsewhere. Aligning whole experts to
pages is the store's business. `expert_weights.py` writes and reads the bytes, `cpu_expert.py` computes from them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from hideaway.hw.fp4.fp4_tensor import block_of
from hideaway.sim.errors import InputError

ACTIVATIONS = ("gpt-oss", "silu")
"""Clamped SwiGLU of gpt-oss; silu(gate) * up of Qwen3-MoE, OLMoE and Mixtral (`swiglu.py`)."""

_ITEM_BYTES = {"uint8": 1, "bfloat16": 2, "float32": 4}


class ModelShape(Protocol):
    """What a layout needs to know of a model; `ModelSpec` has it."""

    @property
    def hidden_size(self) -> int: ...  # noqa: D102
    @property
    def expert_intermediate_size(self) -> int: ...  # noqa: D102
    @property
    def expert_format(self) -> str: ...  # noqa: D102
    @property
    def expert_bytes(self) -> int: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Part:
    """One tensor of an expert: `offset` bytes from the expert's first, `shape`, dtype name."""

    offset: int
    shape: tuple[int, ...]
    dtype: str

    @property
    def num_bytes(self) -> int:
        """The bytes it takes."""
        return math.prod(self.shape) * _ITEM_BYTES[self.dtype]

    @property
    def span(self) -> slice:
        """Its bytes within the expert's."""
        return slice(self.offset, self.offset + self.num_bytes)


@dataclass(frozen=True, kw_only=True)
class ExpertLayout:
    """The parts of one expert's bytes and how they are computed with.

    Parameters
    ----------
    hidden_size, intermediate_size
        Features in and out; features between.
    expert_format
        "mxfp4" or "nvfp4".
    has_bias
        Whether gate, up and down have bfloat16 biases.
    activation
        One of `ACTIVATIONS`.
    interleaved
        Whether rows of gate and up alternate.
    """

    hidden_size: int
    intermediate_size: int
    expert_format: str
    has_bias: bool = False
    activation: str = "silu"
    interleaved: bool = False
    block: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "block", block_of(self.expert_format))
        if self.hidden_size < 1 or self.intermediate_size < 1:
            raise InputError(
                f"an expert of {self.hidden_size} by {self.intermediate_size} features cannot be; "
                "both must be at least 1"
            )
        if self.activation not in ACTIVATIONS:
            raise InputError(
                f"activation is {self.activation!r} but must be one of {', '.join(ACTIVATIONS)}; choose one"
            )

    @classmethod
    def of(cls, model: ModelShape, *, activation: str | None = None) -> ExpertLayout:
        """Return the layout of a model's routed experts.

        Parameters
        ----------
        model
            Shapes, stored format and bytes of one expert, from which biases are seen.
        activation
            One of `ACTIVATIONS`; by default "gpt-oss" where experts have biases, which among the models known here
            only gpt-oss has, else "silu". "gpt-oss" has alternating rows of gate and up.

        Raises
        ------
        InputError
            The experts are not FP4, or their bytes are not those of a layout known here.
        """
        for has_bias in (False, True):
            chosen = activation or ("gpt-oss" if has_bias else "silu")
            layout = cls(
                hidden_size=model.hidden_size,
                intermediate_size=model.expert_intermediate_size,
                expert_format=model.expert_format,
                has_bias=has_bias,
                activation=chosen,
                interleaved=chosen == "gpt-oss",
            )
            if layout.expert_bytes == model.expert_bytes:
                return layout
        raise InputError(
            f"an expert of {model.hidden_size} by {model.expert_intermediate_size} in {model.expert_format} has "
            f"{layout.expert_bytes} bytes with biases but the model says {model.expert_bytes}; correct the model"
        )

    @cached_property
    def parts(self) -> Mapping[str, Part]:
        """Each part by name, in the order of the bytes."""
        parts: dict[str, Part] = {}
        offset = 0
        for name, shape, dtype in self._tensors():
            parts[name] = Part(offset, shape, dtype)
            offset += parts[name].num_bytes
        return parts

    @property
    def expert_bytes(self) -> int:
        """The bytes of one expert."""
        last = list(self.parts.values())[-1]
        return last.offset + last.num_bytes

    def _tensors(self) -> list[tuple[str, tuple[int, ...], str]]:
        tensors: list[tuple[str, tuple[int, ...], str]] = []
        for name, out, columns in (
            ("gate_up", 2 * self.intermediate_size, self.hidden_size),
            ("down", self.hidden_size, self.intermediate_size),
        ):
            blocks = -(-columns // self.block)
            tensors.append((f"{name}_blocks", (out, blocks, self.block // 2), "uint8"))
            tensors.append((f"{name}_scales", (out, blocks), "uint8"))
            if self.has_bias:
                tensors.append((f"{name}_bias", (out,), "bfloat16"))
        if self.expert_format == "nvfp4":
            tensors.append(("tensor_scales", (3,), "float32"))
        return tensors
