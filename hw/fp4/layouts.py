"""Where each tensor lies in the bytes of one expert, as it is stored, moved and computed.

The parts follow one another without padding, so that an expert takes exactly `ModelSpec.expert_bytes`:

| part | bytes | in |
|---|---|---|
| gate_up_blocks | (2 · intermediate, blocks, block / 2) uint8 codes | all |
| gate_up_scales | (2 · intermediate, blocks) uint8 | all |
| gate_up_bias | (2 · intermediate,) bfloat16 | gpt-oss |
| down_blocks, down_scales, down_bias | the same of (hidden, intermediate) | as above |
| tensor_scales | (3,) float32 of gate, up, down | nvfp4 |

Rows of gate and up alternate (gate first) in gpt-oss and lie one after the other elsewhere. Aligning whole experts to
pages is the store's business. `expert_weights.py` writes and reads the bytes, `cpu_expert.py` computes from them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from hideaway.hw.fp4.fp4_tensor import block_of
from hideaway.sim.errors import InputError

SWIGLU_KINDS = ("plain", "gpt-oss")
"""plain: silu(gate) * up of Qwen3-MoE, OLMoE and Mixtral. gpt-oss: clamped, with biases, rows of gate and up
alternate. `swiglu.py` has the formulas."""

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
    swiglu
        One of `SWIGLU_KINDS`.
    """

    hidden_size: int
    intermediate_size: int
    expert_format: str
    swiglu: str = "plain"

    def __post_init__(self) -> None:
        block_of(self.expert_format)
        if self.hidden_size < 1 or self.intermediate_size < 1:
            raise InputError(
                f"an expert of {self.hidden_size} by {self.intermediate_size} features cannot be; "
                "both must be at least 1"
            )
        if self.swiglu not in SWIGLU_KINDS:
            raise InputError(
                f"swiglu is {self.swiglu!r} but must be one of {', '.join(SWIGLU_KINDS)}; choose one"
            )

    @classmethod
    def of(cls, model: ModelShape) -> ExpertLayout:
        """Return the layout of a model's routed experts; which kind of SwiGLU they are is seen from their bytes.

        Only gpt-oss among the models known here has biases in its experts, so their bytes tell.

        Raises
        ------
        InputError
            The experts are not FP4, or their bytes are not those of a layout known here.
        """
        layouts = [
            cls(
                hidden_size=model.hidden_size,
                intermediate_size=model.expert_intermediate_size,
                expert_format=model.expert_format,
                swiglu=kind,
            )
            for kind in SWIGLU_KINDS
        ]
        for layout in layouts:
            if layout.expert_bytes == model.expert_bytes:
                return layout
        known = " or ".join(str(layout.expert_bytes) for layout in layouts)
        raise InputError(
            f"an expert of {model.hidden_size} by {model.expert_intermediate_size} in {model.expert_format} has "
            f"{known} bytes but the model says {model.expert_bytes}; correct the model"
        )

    @property
    def block(self) -> int:
        """Weights that share a scale."""
        return block_of(self.expert_format)

    @property
    def has_bias(self) -> bool:
        """Whether gate, up and down have bfloat16 biases."""
        return self.swiglu == "gpt-oss"

    @property
    def interleaved(self) -> bool:
        """Whether rows of gate and up alternate."""
        return self.swiglu == "gpt-oss"

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
