"""How a Hugging Face checkpoint stores each part, from its `quantization_config` (or `hf_quant_config.json`).

Read: mxfp4 (gpt-oss), fp8 (DeepSeek, Qwen), ModelOpt NVFP4, FP8 and mixed, compressed-tensors NVFP4, MXFP4
and FP8, Quark MXFP4. A part's format is that of one module which stands for it (`_MODULES`, in a layer of the
most common kind); excluded modules are honoured in their three spellings: a name, a glob, and `re:`.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping
from typing import Any

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.bounded import bounded_whole, json_object
from hideaway.sim.inputs.models.weight_formats import StoredFormats
from hideaway.sim.number_checks import shown

_ROOTS = (
    "model.layers.{}.",
    "model.language_model.layers.{}.",
    "language_model.model.layers.{}.",
    "layers.{}.",
)
_MODULES = {
    "experts": ("mlp.experts.0.gate_proj", "mlp.experts", "block_sparse_moe.experts.0.w1", "ffn.experts"),
    "attention_input": ("self_attn.q_proj", "self_attn.q_b_proj"),
    "attention_output": ("self_attn.o_proj",),
    "shared_experts": ("mlp.shared_experts.gate_proj", "mlp.shared_expert.gate_proj"),
    "dense_mlp": ("mlp.gate_proj",),
}
_LINEAR_MODULES = {
    "attention_input": ("linear_attn.in_proj_qkv",),
    "attention_output": ("linear_attn.out_proj",),
}
_MXFP4_GROUP = 32
_FP4_BITS = 4
_FP8_BITS = 8


def stored_formats_of(
    quantization: object, *, moe_layer: int, dense_layer: int, mostly_linear: bool, expert_format: str | None
) -> StoredFormats:
    """Return the formats of every part.

    Parameters
    ----------
    quantization
        The value of `quantization_config`, or None for a bf16 checkpoint.
    moe_layer, dense_layer
        Indices of a layer with routed experts and of one without.
    mostly_linear
        Most layers have linear attention, so that its projections stand for attention.
    expert_format
        Assumed for the experts where the checkpoint's method is not known (the rest is then taken as bf16).

    Raises
    ------
    InputError
        The method is not known and `expert_format` is None.
    """
    if quantization is None:
        return StoredFormats(experts="bf16")
    config = json_object("quantization_config", quantization)
    if isinstance(config.get("quantization"), Mapping):  # hf_quant_config.json nests what matters
        config = {"quant_method": "modelopt", **config["quantization"]}
    method = config.get("quant_method")
    try:
        if method == "mxfp4":
            return StoredFormats(experts="mxfp4")
        rules = _Rules(config)
        formats = {}
        for part, modules in {**_MODULES, **(_LINEAR_MODULES if mostly_linear else {})}.items():
            layer = dense_layer if part == "dense_mlp" else moe_layer
            formats[part] = rules.format_of(
                [root.format(layer) + module for root in _ROOTS for module in modules]
            )
        return StoredFormats(**formats, head=rules.explicit_format(["lm_head"]), fp8_block=_fp8_block(config))
    except _UnknownMethodError as error:
        if expert_format is not None:
            return StoredFormats(experts=expert_format)
        raise InputError(
            f"quantization_config stores weights as {error}, which is not one of mxfp4, nvfp4, fp8, bf16; "
            "choose the format to assume with --expert-format"
        ) from error


class _UnknownMethodError(Exception):
    """A way of storing weights that has no byte count here; the text names it."""


class _Rules:
    """Which format a module has: named ones first, then the default unless the module is excluded."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._named = config.get("quantized_layers")
        excluded: list[Any] = []
        for key in ("ignore", "ignored_layers", "exclude_modules", "exclude", "modules_to_not_convert"):
            found = config.get(key)
            excluded += found if isinstance(found, list) else []
        self._excluded = [pattern for pattern in excluded if isinstance(pattern, str)]
        self._default = None if isinstance(self._named, Mapping) and self._named else _default_format(config)

    def format_of(self, names: list[str]) -> str:
        """Return the format of a part from the names its module may have."""
        if self._default is None:
            return self.explicit_format(names)
        excluded = any(_matches(pattern, name) for pattern in self._excluded for name in names)
        return "bf16" if excluded else self._default

    def explicit_format(self, names: list[str]) -> str:
        """Return the format of a part that is quantised only where it is named."""
        if isinstance(self._named, Mapping):
            for key, value in self._named.items():
                if isinstance(value, Mapping) and any(_same_module(str(key), name) for name in names):
                    return _format_from_word(value.get("quant_algo"))
        return "bf16"


def _default_format(config: Mapping[str, Any]) -> str:
    method = config.get("quant_method")
    if config.get("moe_quant_algo") is not None:
        return _format_from_word(config["moe_quant_algo"])
    if method == "fp8":
        return "fp8"
    groups = config.get("config_groups")
    if isinstance(groups, Mapping):
        weights = [group.get("weights") for group in groups.values() if isinstance(group, Mapping)]
        for weight in weights:
            if isinstance(weight, Mapping):
                return _format_from_weights(weight)
    if method == "quark":
        weight = next(_quark_weights(config), None)
        if weight is not None and weight.get("dtype") in ("fp4", "mxfp4"):
            return "mxfp4"
    return _format_from_word(config.get("quant_algo") or method)


def _quark_weights(config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    settings = config.get("global_quant_config")
    weight = settings.get("weight") if isinstance(settings, Mapping) else None
    for entry in weight if isinstance(weight, list) else [weight]:
        if isinstance(entry, Mapping):
            yield entry


def _format_from_weights(weight: Mapping[str, Any]) -> str:
    bits, kind, group = weight.get("num_bits"), weight.get("type"), weight.get("group_size")
    if kind == "float" and bits == _FP4_BITS:
        return "mxfp4" if group == _MXFP4_GROUP else "nvfp4"
    if kind == "float" and bits == _FP8_BITS:
        return "fp8"
    raise _UnknownMethodError(f"{shown(bits)}-bit {shown(kind)}")


def _format_from_word(word: object) -> str:
    text = word.upper() if isinstance(word, str) else ""
    for known, weight_format in (("NVFP4", "nvfp4"), ("MXFP4", "mxfp4")):
        if known in text:
            return weight_format
    if text == "FP8" or text.startswith("FP8_"):
        return "fp8"
    raise _UnknownMethodError(shown(word))


def _fp8_block(config: Mapping[str, Any]) -> tuple[int, int] | None:
    block = config.get("weight_block_size")
    if block is None:
        return None
    if not isinstance(block, list) or len(block) != 2:
        raise InputError(
            f"weight_block_size is {shown(block)} but must be two whole numbers such as [128, "
            f"128]; correct it"
        )
    rows, columns = (bounded_whole("weight_block_size", size, 1, 2**16) for size in block)
    return rows, columns


def _matches(pattern: str, name: str) -> bool:
    if pattern.startswith("re:"):
        try:
            return re.match(pattern[3:], name) is not None
        except re.error as error:
            raise InputError(
                f"the excluded module {shown(pattern)} is not a pattern ({error}); correct it"
            ) from error
    if "*" in pattern:
        return fnmatch.fnmatchcase(name, pattern)
    return f".{pattern}." in f".{name}."


def _same_module(key: str, name: str) -> bool:
    return key == name or name.startswith(f"{key}.") or key.startswith(f"{name}.")
