"""The shapes of a mixture-of-experts model: layers, attention, experts and how they are stored.

This is what a model file holds (`architecture_file.py` reads and writes it) and what a Hugging Face config is
turned into (`hf_config.py`). Next: `spec.py`, the bytes and operations that follow from the shapes.
"""

from __future__ import annotations

from dataclasses import dataclass

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.bounded import bounded_whole, flag, json_list, nonempty_text, one_of
from hideaway.sim.inputs.models.attention import (
    LAYER_KINDS,
    MAX_WIDTH,
    GroupedAttention,
    LatentAttention,
    LinearAttention,
)
from hideaway.sim.inputs.models.weight_formats import StoredFormats

MAX_LAYERS = 4096
MAX_EXPERTS = 2**14
MAX_VOCABULARY = 2**24
MAX_CONTEXT_TOKENS = 2**40


@dataclass(frozen=True, slots=True)
class RoutedExperts:
    """Routed experts of one layer: SwiGLU of gate, up and down.

    Parameters
    ----------
    bias, router_bias
        Gate, up and down have biases; the router adds one number an expert.
    """

    count: int
    top_k: int
    intermediate_size: int
    bias: bool = False
    router_bias: bool = False

    def __post_init__(self) -> None:
        bounded_whole("experts.count", self.count, 1, MAX_EXPERTS)
        bounded_whole("experts.top_k", self.top_k, 1, self.count)
        bounded_whole("experts.intermediate_size", self.intermediate_size, 1, MAX_WIDTH)
        flag("experts.bias", self.bias)
        flag("experts.router_bias", self.router_bias)


@dataclass(frozen=True, slots=True)
class SharedExperts:
    """Experts that every token passes, as one SwiGLU of their total width; `gate`: a vector scales it."""

    intermediate_size: int
    gate: bool = False

    def __post_init__(self) -> None:
        bounded_whole("shared_experts.intermediate_size", self.intermediate_size, 1, MAX_WIDTH)
        flag("shared_experts.gate", self.gate)


@dataclass(frozen=True, slots=True)
class DenseLayers:
    """Layers without routed experts: their indices and the width of their SwiGLU."""

    indices: tuple[int, ...]
    intermediate_size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "indices", json_list("dense_layers.indices", self.indices))
        for index in self.indices:
            bounded_whole("dense_layers.indices", index, 0, MAX_LAYERS - 1)
        if list(self.indices) != sorted(set(self.indices)) or not self.indices:
            raise InputError(
                "dense_layers.indices must rise without repeats and not be empty; sort them or use null"
            )
        bounded_whole("dense_layers.intermediate_size", self.intermediate_size, 1, MAX_WIDTH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """Shapes and stored formats of a model.

    Parameters
    ----------
    name, aliases, source
        Hugging Face id; other names it goes by; where the shapes come from.
    fp4_release
        The published FP4 checkpoint that `stored` follows, or None.
    layer_kinds
        Kind of every layer, first to last: "full", "sliding", "mla" or "linear".
    """

    name: str
    source: str
    hidden_size: int
    vocab_size: int
    layer_kinds: tuple[str, ...]
    experts: RoutedExperts
    stored: StoredFormats
    aliases: tuple[str, ...] = ()
    fp4_release: str | None = None
    tied_embeddings: bool = False
    sliding_window_tokens: int | None = None
    grouped_attention: GroupedAttention | None = None
    latent_attention: LatentAttention | None = None
    linear_attention: LinearAttention | None = None
    shared_experts: SharedExperts | None = None
    dense_layers: DenseLayers | None = None

    def __post_init__(self) -> None:
        nonempty_text("name", self.name, 200)
        nonempty_text("source", self.source)
        if self.fp4_release is not None:
            nonempty_text("fp4_release", self.fp4_release)
        for name in ("aliases", "layer_kinds"):
            object.__setattr__(self, name, json_list(name, getattr(self, name)))
        for alias in self.aliases:
            nonempty_text("aliases", alias, 200)
        bounded_whole("hidden_size", self.hidden_size, 1, MAX_WIDTH)
        bounded_whole("vocab_size", self.vocab_size, 1, MAX_VOCABULARY)
        flag("tied_embeddings", self.tied_embeddings)
        bounded_whole("the number of layers in layer_kinds", len(self.layer_kinds), 1, MAX_LAYERS)
        for kind in self.layer_kinds:
            one_of("layer_kinds", kind, LAYER_KINDS)
        self._check_attention()
        self._check_layers()

    def _check_attention(self) -> None:
        needed = {
            "full": self.grouped_attention,
            "sliding": self.grouped_attention,
            "mla": self.latent_attention,
            "linear": self.linear_attention,
        }
        keys = {"full": "grouped_attention", "mla": "latent_attention", "linear": "linear_attention"}
        for kind in LAYER_KINDS:
            if kind in self.layer_kinds and needed[kind] is None:
                key = keys.get(kind, "grouped_attention")
                raise InputError(f"layer_kinds has a {kind} layer but {key} is missing; add {key}")
        if "sliding" in self.layer_kinds:
            if self.sliding_window_tokens is None:
                raise InputError(
                    "layer_kinds has a sliding layer but sliding_window_tokens is missing; add it"
                )
            bounded_whole("sliding_window_tokens", self.sliding_window_tokens, 1, MAX_CONTEXT_TOKENS)
        elif self.sliding_window_tokens is not None:
            raise InputError("sliding_window_tokens is given but no layer is sliding; remove it")

    def _check_layers(self) -> None:
        indices = self.dense_layers.indices if self.dense_layers is not None else ()
        if indices and indices[-1] >= len(self.layer_kinds):
            raise InputError(
                f"dense_layers.indices names layer {indices[-1]} but there are "
                f"{len(self.layer_kinds)} layers; correct it"
            )
        if len(indices) == len(self.layer_kinds):
            raise InputError(
                "every layer is dense, so there are no routed experts; give a mixture-of-experts model"
            )

    @property
    def dense_indices(self) -> tuple[int, ...]:
        """Indices of the layers without routed experts."""
        return self.dense_layers.indices if self.dense_layers is not None else ()

    def attention_of(self, kind: str) -> GroupedAttention | LatentAttention | LinearAttention:
        """Return the attention of a layer of this kind."""
        by_kind = {"mla": self.latent_attention, "linear": self.linear_attention}
        found = by_kind.get(kind, self.grouped_attention)
        if found is None:  # a kind that no layer has
            raise InputError(
                f"model {self.name} has no {kind} layer; its kinds are "
                f"{', '.join(sorted(set(self.layer_kinds)))}"
            )
        return found
