"""The routed experts of a Hugging Face checkpoint, whatever its family calls them, in the bytes of a store.

| family | tensors of a layer (… is the layer's prefix) |
|---|---|
| gpt-oss, MXFP4 | …experts.gate_up_proj_blocks, _scales, _bias and the same of down_proj: taken as stored |
| gpt-oss, BF16 | …experts.gate_up_proj (E, hidden, 2 · inner), down_proj (E, inner, hidden) and biases |
| fused (transformers 5) | …experts.gate_up_proj (E, 2 · inner, hidden), down_proj (E, hidden, inner) |
| Qwen3-MoE, OLMoE | …experts.N.gate_proj.weight, up_proj, down_proj |
| Mixtral | …experts.N.w1.weight (gate), w3 (up), w2 (down) |

All but the first are quantised here, gate, up and down each by itself.
"""

from __future__ import annotations

import os
import re

import numpy as np
import numpy.typing as npt

from hideaway.hw.fp4.expert_weights import pack_expert
from hideaway.hw.fp4.fp4_tensor import Fp4Tensor
from hideaway.hw.fp4.layouts import ExpertLayout
from hideaway.hw.fp4.mxfp4 import quantise_mxfp4
from hideaway.hw.fp4.nvfp4 import quantise_nvfp4
from hideaway.hw.store.checkpoint import Checkpoint
from hideaway.hw.store.reader import Bytes
from hideaway.hw.store.source import description_of, moe_layers, spec_in_fp4
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.models.load import load_architecture

Floats = npt.NDArray[np.float32]
_EXPERT_NAME = re.compile(r"(?P<prefix>(?:\w+\.)*?)layers\.(?P<layer>\d+)\.(?:\w+\.)*?experts\.(?P<rest>.+)")
_DRAFT_PREFIX = "mtp"
"""Multi-token-prediction layers, which are not part of the served model."""

_SEPARATE = (("gate_proj", "up_proj", "down_proj"), ("w1", "w3", "w2"))
_QUANTISE = {"mxfp4": quantise_mxfp4, "nvfp4": quantise_nvfp4}


class CheckpointExperts:
    """An `ExpertSource` that reads a checkpoint.

    Parameters
    ----------
    folder : str or path
        Holds `config.json` and safetensors files.
    num_layers : int, optional
        Only the first layers with routed experts.
    expert_format : {"mxfp4", "nvfp4"}, optional
        What BF16 weights are quantised to, MXFP4 by default; weights that are MXFP4 already stay so.

    Raises
    ------
    InputError
        The folder is no checkpoint of a mixture-of-experts model that is known here.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        num_layers: int | None = None,
        expert_format: str | None = None,
    ) -> None:
        self._checkpoint = Checkpoint(folder)
        architecture = load_architecture(os.fspath(folder), expert_format=expert_format)
        spec = spec_in_fp4(architecture, expert_format)
        self._layout = ExpertLayout.of(spec)
        self._names = _expert_tensors(self._checkpoint)
        indices = moe_layers(architecture, num_layers)
        lacking = [index for index in indices if index not in self._names]
        if lacking:
            raise InputError(
                f"{folder} has no experts of layer {lacking[0]} though its config says so; download it again"
            )
        self._stored = "gate_up_proj_blocks" in self._names[indices[0]]
        if self._stored and spec.expert_format != "mxfp4":
            raise InputError(
                f"the experts in {folder} are MXFP4 already and are not turned into {spec.expert_format}; pack them as "
                "mxfp4"
            )
        origin = "as stored" if self._stored else f"quantised to {spec.expert_format}"
        self.description = description_of(
            spec, self._layout, indices, f"the checkpoint of {spec.name}, experts {origin}"
        )

    def expert(self, layer: int, expert: int) -> Bytes:
        """Return the bytes of one expert, shape (expert_bytes,).

        Raises
        ------
        InputError
            A tensor is missing, damaged, or has another type or shape than the config says.
        """
        self.description.position(layer, expert)
        index = self.description.layer_indices[layer]
        try:
            return self._expert(self._names[index], expert)
        except InputError as error:
            raise InputError(f"layer {index} expert {expert}: {error}") from error

    def _expert(self, names: dict[str, str], expert: int) -> Bytes:
        biases = [self._bias(names, name, expert) for name in ("gate_up", "down")]
        if self._stored:
            return pack_expert(
                self._layout,
                gate_up=self._stored_matrix(names, "gate_up", expert),
                down=self._stored_matrix(names, "down", expert),
                gate_up_bias=biases[0],
                down_bias=biases[1],
            )
        split = self._fused if "gate_up_proj" in names else self._separate
        gate, up, down = split(names, expert)
        quantise = _QUANTISE[self._layout.expert_format]
        return pack_expert(
            self._layout,
            gate_up=(quantise(gate), quantise(up)),
            down=quantise(down),
            gate_up_bias=biases[0],
            down_bias=biases[1],
        )

    def _stored_matrix(self, names: dict[str, str], name: str, expert: int) -> Fp4Tensor:
        blocks, scales = _named(names, f"{name}_proj_blocks"), _named(names, f"{name}_proj_scales")
        layout = self._layout
        down = (layout.hidden_size, layout.intermediate_size)
        gate_up = (2 * layout.intermediate_size, layout.hidden_size)
        return Fp4Tensor(
            packed=self._checkpoint.bytes(blocks, expert),
            scales=self._checkpoint.bytes(scales, expert),
            shape=down if name == "down" else gate_up,
            format="mxfp4",
        )

    def _fused(self, names: dict[str, str], expert: int) -> tuple[Floats, Floats, Floats]:
        gate_up = self._checkpoint.floats(names["gate_up_proj"], expert)
        down = self._checkpoint.floats(_named(names, "down_proj"), expert)
        if self._layout.swiglu == "gpt-oss":  # its BF16 matrices are (in, out)
            gate_up, down = gate_up.T, down.T
        if self._layout.interleaved:
            return gate_up[0::2], gate_up[1::2], down
        inner = self._layout.intermediate_size
        return gate_up[:inner], gate_up[inner:], down

    def _separate(self, names: dict[str, str], expert: int) -> tuple[Floats, Floats, Floats]:
        for words in _SEPARATE:
            wanted = [f"{expert}.{word}.weight" for word in words]
            if wanted[0] in names:
                gate, up, down = (self._checkpoint.floats(_named(names, name)) for name in wanted)
                return gate, up, down
        raise InputError(
            f"its tensors ({', '.join(sorted(names)[:3])}, …) are not those of gpt-oss, Qwen3-MoE, OLMoE or Mixtral in "
            "BF16 or MXFP4; give such a checkpoint"
        )

    def _bias(self, names: dict[str, str], name: str, expert: int) -> Floats | None:
        if not self._layout.has_bias:
            return None
        return self._checkpoint.floats(_named(names, f"{name}_proj_bias"), expert)


def _expert_tensors(checkpoint: Checkpoint) -> dict[int, dict[str, str]]:
    """Return, for every layer, the full name of each tensor of its routed experts by what follows `experts.`."""
    layers: dict[int, dict[str, str]] = {}
    for name in checkpoint.files:
        match = _EXPERT_NAME.fullmatch(name)
        if match is not None and _DRAFT_PREFIX not in match["prefix"].split("."):
            layers.setdefault(int(match["layer"]), {})[match["rest"]] = name
    return layers


def _named(names: dict[str, str], rest: str) -> str:
    if rest not in names:
        raise InputError(f"the checkpoint has no tensor experts.{rest}; download it again")
    return names[rest]
