"""What a store holds: the model's shape, the format of its experts and where each tensor stands within an expert.

This is `index.json` without its checksums (`index_file.py` reads and writes that). Every expert of a store has the
same size and layout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hideaway.hw.fp4.fp4_tensor import BLOCK_OF
from hideaway.hw.fp4.layouts import SWIGLU_KINDS, ExpertLayout
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.bounded import bounded_whole, dataclass_from, json_list, nonempty_text, one_of
from hideaway.sim.inputs.models.architecture import MAX_EXPERTS, MAX_LAYERS
from hideaway.sim.inputs.models.attention import MAX_WIDTH

PAGE_BYTES = 4096
"""Experts start at and are padded to multiples of this: what direct reads want, whatever the sector size."""

EXPERT_FORMATS = tuple(BLOCK_OF)
MAX_EXPERT_BYTES = 2**40

DTYPES = {"uint8": ("U8", 1), "bfloat16": ("BF16", 2), "float32": ("F32", 4)}
"""Element types by name: their name in a safetensors header, and bytes. Packed FP4 and scales are uint8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTensor:
    """One tensor within an expert: `bytes` from `offset` on, elements of `dtype` in row-major `shape`."""

    name: str
    offset: int
    bytes: int
    dtype: str
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        nonempty_text("the name of a tensor", self.name, 100)
        bounded_whole(f"{self.name}.offset", self.offset, 0, MAX_EXPERT_BYTES)
        one_of(f"{self.name}.dtype", self.dtype, tuple(DTYPES))
        object.__setattr__(self, "shape", json_list(f"{self.name}.shape", self.shape))
        for size in self.shape:
            bounded_whole(f"{self.name}.shape", size, 1, MAX_EXPERT_BYTES)
        expected = math.prod(self.shape) * DTYPES[self.dtype][1]
        if self.bytes != expected or type(self.bytes) is not int or expected > MAX_EXPERT_BYTES:
            raise InputError(
                f"tensor {self.name} says {self.bytes} bytes but {self.dtype} of shape {list(self.shape)} takes "
                f"{expected}; correct it"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreDescription:
    """Shapes and layout of the experts in a store.

    Parameters
    ----------
    model : str
        Hugging Face id or another name.
    source : str
        Where the weights come from, one sentence.
    expert_format : {"mxfp4", "nvfp4"}
        How weight matrices are stored.
    swiglu : {"plain", "gpt-oss"}
        How gate and up lie and meet, and whether there are biases: as in `ExpertLayout`.
    num_layers, num_experts, top_k, hidden_size, expert_intermediate_size : int
        L, E, k and the widths of an expert. Layers without routed experts are not counted.
    layer_indices : tuple of int
        Which layer of the model each of the L layers is.
    tensors : tuple of StoredTensor
        In order of their offsets, without overlap.
    """

    model: str
    source: str
    expert_format: str
    swiglu: str
    num_layers: int
    num_experts: int
    top_k: int
    hidden_size: int
    expert_intermediate_size: int
    layer_indices: tuple[int, ...]
    tensors: tuple[StoredTensor, ...]

    def __post_init__(self) -> None:
        nonempty_text("model", self.model, 200)
        nonempty_text("source", self.source)
        one_of("expert_format", self.expert_format, EXPERT_FORMATS)
        one_of("swiglu", self.swiglu, SWIGLU_KINDS)
        bounded_whole("num_layers", self.num_layers, 1, MAX_LAYERS)
        bounded_whole("num_experts", self.num_experts, 1, MAX_EXPERTS)
        bounded_whole("top_k", self.top_k, 1, self.num_experts)
        bounded_whole("hidden_size", self.hidden_size, 1, MAX_WIDTH)
        bounded_whole("expert_intermediate_size", self.expert_intermediate_size, 1, MAX_WIDTH)
        self._check_layers()
        self._check_tensors()

    @property
    def expert_bytes(self) -> int:
        """Bytes of one expert without the padding after it."""
        last = self.tensors[-1]
        return last.offset + last.bytes

    @property
    def stride_bytes(self) -> int:
        """Bytes from one expert to the next: `expert_bytes` rounded up to whole pages."""
        return -(-self.expert_bytes // PAGE_BYTES) * PAGE_BYTES

    @property
    def total_bytes(self) -> int:
        """Bytes of all experts with their padding."""
        return self.num_layers * self.num_experts * self.stride_bytes

    @property
    def layout(self) -> ExpertLayout:
        """The layout to compute experts with.

        Raises
        ------
        InputError
            The tensors stand elsewhere than this program's kernels look for them.
        """
        layout = ExpertLayout(
            hidden_size=self.hidden_size,
            intermediate_size=self.expert_intermediate_size,
            expert_format=self.expert_format,
            swiglu=self.swiglu,
        )
        if stored_tensors(layout) != self.tensors:
            raise InputError(
                f"the experts of {self.model} are laid out as {', '.join(tensor.name for tensor in self.tensors)}, not "
                "as this program computes them; pack the model again"
            )
        return layout

    def position(self, layer: int, expert: int) -> int:
        """Return the running number of an expert: layer by layer, expert by expert."""
        bounded_whole("layer", layer, 0, self.num_layers - 1)
        bounded_whole("expert", expert, 0, self.num_experts - 1)
        return layer * self.num_experts + expert

    def _check_layers(self) -> None:
        indices = json_list("layer_indices", self.layer_indices)
        object.__setattr__(self, "layer_indices", indices)
        for index in indices:
            bounded_whole("layer_indices", index, 0, MAX_LAYERS - 1)
        if len(indices) != self.num_layers or list(indices) != sorted(set(indices)):
            raise InputError(
                f"layer_indices has {len(indices)} entries for {self.num_layers} layers; give one rising index a layer"
            )

    def _check_tensors(self) -> None:
        tensors = tuple(
            tensor if isinstance(tensor, StoredTensor) else dataclass_from(StoredTensor, "a tensor", tensor)
            for tensor in json_list("tensors", self.tensors)
        )
        object.__setattr__(self, "tensors", tensors)
        if not tensors:
            raise InputError("tensors is empty but an expert has at least one; list them")
        if len({tensor.name for tensor in tensors}) != len(tensors):
            raise InputError("two tensors of an expert have the same name; rename one")
        end = 0
        for tensor in tensors:
            if tensor.offset < end:
                raise InputError(
                    f"tensor {tensor.name} starts at byte {tensor.offset}, before the one ahead of it ends at "
                    f"{end}; list tensors in order of their offsets, without overlap"
                )
            end = tensor.offset + tensor.bytes


def stored_tensors(layout: ExpertLayout) -> tuple[StoredTensor, ...]:
    """Return where the parts of a layout stand."""
    return tuple(
        StoredTensor(name=name, offset=part.offset, bytes=part.num_bytes, dtype=part.dtype, shape=part.shape)
        for name, part in layout.parts.items()
    )
