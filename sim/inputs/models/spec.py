"""What a simulation needs to know of a model: bytes and operations that follow from its shapes.

Made from an `Architecture` by `spec_from`. Embeddings, head, attention, norms, routers, shared experts and
dense layers are on the device always; routed experts are what may be elsewhere. Vision towers and multi-token
prediction layers are not part of the served text model and are not counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.models.architecture import Architecture
from hideaway.sim.inputs.models.attention import LAYER_KINDS, LinearAttention
from hideaway.sim.inputs.models.weight_formats import (
    BF16_BYTES,
    WEIGHT_FORMATS,
    Matrix,
    matrices_bytes,
    matrix_bytes,
    weights_of,
)

FLOPS_PER_WEIGHT = 2
EXPERT_MATRICES = 3  # gate, up, down


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """Bytes and operations of a mixture-of-experts model.

    Parameters
    ----------
    name, aliases
        Hugging Face id and the other names it goes by.
    num_layers, num_dense_layers
        Layers with routed experts; layers without.
    expert_bytes, total_expert_bytes
        w_e and M = L · E · w_e, as stored (`expert_format`), with scales and biases.
    dense_bytes
        Every weight that is always on the device.
    layer_kinds
        Of all layers, first to last.
    dense_bytes_per_layer, dense_flops_per_row
        Attention, shared experts, norms and router of one MoE layer, mean over those; 2 flops a weight.
    router_bytes_per_layer
        The router of one MoE layer (part of `dense_bytes_per_layer`).
    attention_flops_per_row_per_context_token
        Scores and weighted sums, mean over all layers; only kinds whose work grows with the context count.
    head_bytes
        The language-model head, also where it is tied to the embedding.
    expert_flops_per_row
        One row through one expert.
    extra_dense_layer_bytes
        All layers without routed experts together.
    growing_cache_bytes_per_token, sliding_cache_bytes_per_token, state_cache_bytes
        Of one sequence, over all layers: per token of context, per token within the window, and constant.
    num_parameters
        Weights of the whole text model.
    """

    name: str
    aliases: tuple[str, ...]
    num_layers: int
    num_dense_layers: int
    num_experts: int
    top_k: int
    hidden_size: int
    expert_intermediate_size: int
    expert_format: str
    expert_bytes: int
    total_expert_bytes: int
    dense_bytes: int
    layer_kinds: tuple[str, ...]
    sliding_window_tokens: int | None
    dense_bytes_per_layer: int
    dense_flops_per_row: int
    router_bytes_per_layer: int
    attention_flops_per_row_per_context_token: float
    head_bytes: int
    vocab_size: int
    expert_flops_per_row: int
    extra_dense_layer_bytes: int
    growing_cache_bytes_per_token: int
    sliding_cache_bytes_per_token: int
    state_cache_bytes: int
    num_parameters: int

    def __post_init__(self) -> None:
        if self.expert_format not in WEIGHT_FORMATS:
            raise InputError(
                f"expert_format is {self.expert_format!r} but must be one of "
                f"{', '.join(WEIGHT_FORMATS)}; correct it"
            )
        if len(self.layer_kinds) != self.num_layers + self.num_dense_layers:
            raise InputError(
                f"{self.name} has {len(self.layer_kinds)} layer kinds for {self.num_layers} MoE and "
                f"{self.num_dense_layers} dense layers; give one kind a layer"
            )
        if not 1 <= self.top_k <= self.num_experts or self.expert_bytes < 1 or self.num_layers < 1:
            raise InputError(
                f"{self.name} has {self.num_layers} MoE layers of {self.num_experts} experts "
                f"of {self.expert_bytes} "
                f"bytes, {self.top_k} a token; give at least one layer, one byte and top_k "
                f"from 1 to num_experts"
            )

    def kv_bytes(self, context_tokens: int) -> int:
        """Return the cache bytes of one sequence of `context_tokens`, all layers, by layer kind."""
        if context_tokens < 0:
            raise InputError(f"context_tokens is {context_tokens}; it must be at least 0")
        within = context_tokens
        if self.sliding_window_tokens is not None and context_tokens > self.sliding_window_tokens:
            within = self.sliding_window_tokens
        return (
            self.growing_cache_bytes_per_token * context_tokens
            + self.sliding_cache_bytes_per_token * within
            + self.state_cache_bytes
        )

    def kv_read_bytes_per_row(self, context_tokens: int) -> float:
        """Return the cache bytes that one query row reads, all layers: everything its sequence keeps."""
        return float(self.kv_bytes(context_tokens))


def spec_from(architecture: Architecture, expert_format: str | None = None) -> ModelSpec:
    """Return bytes and operations of an architecture, its routed experts as `expert_format` if given."""
    stored = architecture.stored
    chosen = stored.experts if expert_format is None else expert_format
    if chosen not in WEIGHT_FORMATS:
        raise InputError(
            f"expert format is {chosen!r} but must be one of {', '.join(WEIGHT_FORMATS)}; choose one"
        )
    experts = architecture.experts
    hidden = architecture.hidden_size
    dense_indices = frozenset(architecture.dense_indices)
    layers = [
        _Layer(architecture, kind, index in dense_indices)
        for index, kind in enumerate(architecture.layer_kinds)
    ]
    moe_layers = [layer for layer in layers if not layer.is_dense]
    dense_layers = [layer for layer in layers if layer.is_dense]
    one_expert = _swiglu(hidden, experts.intermediate_size)
    biases = (2 * experts.intermediate_size + hidden) if experts.bias else 0
    expert_bytes = matrices_bytes(one_expert, chosen, stored.fp8_block) + biases * BF16_BYTES
    embedding = architecture.vocab_size * hidden
    head_bytes = matrix_bytes((architecture.vocab_size, hidden), stored.head, stored.fp8_block)
    untied = not architecture.tied_embeddings
    cache = _cache_bytes(architecture)
    total = len(moe_layers) * experts.count
    return ModelSpec(
        name=architecture.name,
        aliases=architecture.aliases,
        num_layers=len(moe_layers),
        num_dense_layers=len(dense_layers),
        num_experts=experts.count,
        top_k=experts.top_k,
        hidden_size=hidden,
        expert_intermediate_size=experts.intermediate_size,
        expert_format=chosen,
        expert_bytes=expert_bytes,
        total_expert_bytes=total * expert_bytes,
        dense_bytes=sum(layer.num_bytes for layer in layers)
        + (embedding + hidden) * BF16_BYTES
        + (head_bytes if untied else 0),
        layer_kinds=architecture.layer_kinds,
        sliding_window_tokens=architecture.sliding_window_tokens,
        dense_bytes_per_layer=_mean(layer.num_bytes for layer in moe_layers),
        dense_flops_per_row=FLOPS_PER_WEIGHT * _mean(layer.matrix_weights for layer in moe_layers),
        router_bytes_per_layer=moe_layers[0].router_weights * BF16_BYTES,
        attention_flops_per_row_per_context_token=_context_flops(architecture),
        head_bytes=head_bytes,
        vocab_size=architecture.vocab_size,
        expert_flops_per_row=FLOPS_PER_WEIGHT * weights_of(one_expert),
        extra_dense_layer_bytes=sum(layer.num_bytes for layer in dense_layers),
        growing_cache_bytes_per_token=cache[0],
        sliding_cache_bytes_per_token=cache[1],
        state_cache_bytes=cache[2],
        num_parameters=sum(layer.num_parameters for layer in layers)
        + total * (weights_of(one_expert) + biases)
        + embedding * (2 if untied else 1)
        + hidden,
    )


class _Layer:
    """One layer without its routed experts: attention, norms, router and shared experts or dense MLP."""

    def __init__(self, architecture: Architecture, kind: str, is_dense: bool) -> None:
        hidden = architecture.hidden_size
        stored = architecture.stored
        attention = architecture.attention_of(kind)
        self.is_dense = is_dense
        experts = architecture.experts
        vectors = attention.vector_parameters(hidden) + 2 * hidden
        mlp: tuple[Matrix, ...] = ()
        mlp_format = stored.shared_experts
        router = 0
        if is_dense and architecture.dense_layers is not None:
            mlp = _swiglu(hidden, architecture.dense_layers.intermediate_size)
            mlp_format = stored.dense_mlp
        else:
            router = experts.count * hidden
            vectors += experts.count if experts.router_bias else 0
            if architecture.shared_experts is not None:
                mlp = _swiglu(hidden, architecture.shared_experts.intermediate_size)
                vectors += hidden if architecture.shared_experts.gate else 0
        inputs, outputs = attention.input_matrices(hidden), attention.output_matrices(hidden)
        self.router_weights = router
        self.matrix_weights = weights_of((*inputs, *outputs, *mlp)) + router
        self.num_parameters = self.matrix_weights + vectors
        self.num_bytes = (
            matrices_bytes(inputs, stored.attention_input, stored.fp8_block)
            + matrices_bytes(outputs, stored.attention_output, stored.fp8_block)
            + matrices_bytes(mlp, mlp_format, stored.fp8_block)
            + (router + vectors) * BF16_BYTES
        )


def _swiglu(hidden: int, intermediate: int) -> tuple[Matrix, ...]:
    return ((intermediate, hidden), (intermediate, hidden), (hidden, intermediate))


def _mean(values: Iterable[int]) -> int:
    members = list(values)
    return round(sum(members) / len(members))


def _cache_bytes(architecture: Architecture) -> tuple[int, int, int]:
    """Return bytes per token of context, per token within the window, and constant, over all layers."""
    growing = sliding = constant = 0
    for kind in LAYER_KINDS:
        number = architecture.layer_kinds.count(kind)
        if number:
            attention = architecture.attention_of(kind)
            if isinstance(attention, LinearAttention):
                constant += number * attention.state_bytes
            elif kind == "sliding":
                sliding += number * attention.cache_bytes_per_token
            else:
                growing += number * attention.cache_bytes_per_token
    return growing, sliding, constant


def _context_flops(architecture: Architecture) -> float:
    total = 0
    for kind in ("full", "mla"):
        number = architecture.layer_kinds.count(kind)
        if number:
            attention = architecture.attention_of(kind)
            if not isinstance(attention, LinearAttention):
                total += number * attention.flops_per_context_token
    return total / len(architecture.layer_kinds)
