"""A target's forward: tokens of packed sequences in, final hidden rows and the drafter's features out.

The dense part is transformers' own model. At each layer with routed experts it calls `experts(number, rows, ids,
weights)`, which the caller supplies: that call learns the routing, moves experts and returns the weighted sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from hideaway.hw.target.attention import PackedRows
from hideaway.hw.target.families import Family
from hideaway.hw.target.row_by_row import RowByRowSwitch
from hideaway.sim.errors import HideawayError, InputError

ComputeExperts = Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""From the number of a layer among those with experts, rows (n, hidden), expert ids and weights (n, top_k) to the
weighted sum of each row's experts (n, hidden)."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """What a forward leaves.

    Parameters
    ----------
    rows : torch.Tensor
        After the final norm, (rows, hidden): what the head reads.
    features : torch.Tensor
        Outputs of the wanted layers side by side, (rows, wanted · hidden); (rows, 0) when none are.
    """

    rows: torch.Tensor
    features: torch.Tensor


class RoutedExperts(nn.Module):
    """Stands where the model's experts stood; holds no weights."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        self.compute: ComputeExperts | None = None

    def forward(self, rows: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """Return the weighted sum of each row's experts, (rows, hidden)."""
        if self.compute is None:
            raise HideawayError(
                "a target's experts were called outside of a forward; this is a fault in the engine"
            )
        return self.compute(self.number, rows, ids, weights)


class Target:
    """A loaded model without its routed experts.

    Parameters
    ----------
    model : PreTrainedModel
        Its experts are `RoutedExperts`.
    feature_layers : sequence of int
        Layers whose outputs a drafter reads, in the order in which it wants them.

    Attributes
    ----------
    moe_layers : tuple of int
        Index in the model of each layer with routed experts.
    """

    def __init__(self, model: PreTrainedModel, family: Family, feature_layers: Sequence[int] = ()) -> None:
        self._model = model
        self._trunk: Any = model.model
        self._layers: list[Any] = list(self._trunk.layers)
        self._experts = [
            layer.mlp.experts for layer in self._layers if isinstance(_experts_of(layer), RoutedExperts)
        ]
        self.moe_layers = tuple(
            index for index, layer in enumerate(self._layers) if isinstance(_experts_of(layer), RoutedExperts)
        )
        self.top_k = int(model.config.num_experts_per_tok)
        self._router = family.router
        self._switch = RowByRowSwitch(model)
        self._feature_layers = _checked_layers(feature_layers, len(self._layers))
        self._outputs: dict[int, torch.Tensor] = {}
        self._before: list[torch.Tensor] = [torch.empty(0)] * 2
        self._hook()

    @property
    def invariant(self) -> bool:
        """Whether a row's result is the same bits whatever other rows there are; slow."""
        return self._switch.on

    @invariant.setter
    def invariant(self, on: bool) -> None:
        self._switch.turn(on)

    @property
    def num_layers(self) -> int:
        """All layers, those without routed experts included."""
        return len(self._layers)

    @property
    def embedding(self) -> torch.Tensor:
        """The input embedding's matrix, (vocabulary, hidden)."""
        matrix: torch.Tensor = self._trunk.embed_tokens.weight
        return matrix

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.embedding.device

    @property
    def vocab_size(self) -> int:
        """Rows of the embedding: token ids are below it."""
        return self.embedding.shape[0]

    def forward(self, tokens: torch.Tensor, packed: PackedRows, experts: ComputeExperts) -> Hidden:
        """Run all layers over the rows of `packed`. Changes the caches.

        Parameters
        ----------
        tokens : torch.Tensor
            Token of each row, whole numbers (rows,).
        experts : callable
            Called once for each layer with routed experts, in order.
        """
        for module in self._experts:
            module.compute = experts
        try:
            outputs = self._trunk(
                input_ids=tokens[None].to(self.device),
                position_ids=packed.positions()[None].to(self.device),
                use_cache=False,
                packed=packed,
            )
            rows: torch.Tensor = outputs.last_hidden_state[0]
            return Hidden(rows, self._features(rows))
        finally:
            self._outputs.clear()
            for module in self._experts:
                module.compute = None

    def logits(self, rows: torch.Tensor) -> torch.Tensor:
        """Return float32 logits, (rows, vocabulary), of final hidden rows (rows, hidden)."""
        logits: torch.Tensor = self._model.lm_head(rows)
        return logits.float()

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the embedding of tokens (rows,), (rows, hidden)."""
        embedded: torch.Tensor = self._trunk.embed_tokens(tokens.to(self.device))
        return embedded

    def residual(self) -> torch.Tensor:
        """Return what the layer that is going on adds its experts to, (rows, hidden); inside a forward only."""
        before, attended = self._before
        return before[0] + attended[0]

    def routed_by(self, number: int, residual: torch.Tensor) -> torch.Tensor:
        """Return the experts that layer `number` would choose for residual rows (rows, hidden), (rows, top_k).

        Exact when the rows are those that reach this layer's feed-forward part; a guess when they are from below.
        """
        layer = self._layers[self.moe_layers[number]]
        ids: torch.Tensor = getattr(layer.mlp, self._router)(layer.post_attention_layernorm(residual))[2]
        return ids

    def _features(self, final: torch.Tensor) -> torch.Tensor:
        wanted = [
            final if layer == len(self._layers) - 1 else self._outputs[layer][0]
            for layer in self._feature_layers
        ]
        return torch.cat(wanted, dim=1) if wanted else final[:, :0]

    def _hook(self) -> None:
        """Keep what features and predictions read, as the layers pass it on."""
        for index, layer in enumerate(self._layers):
            if index in self._feature_layers:
                layer.register_forward_hook(self._keeper(index))
            if index in self.moe_layers:
                layer.register_forward_pre_hook(self._keep_input)
                layer.self_attn.register_forward_hook(self._keep_attended)

    def _keeper(self, index: int) -> Callable[[nn.Module, Any, torch.Tensor], None]:
        def keep(_: nn.Module, __: Any, output: torch.Tensor) -> None:  # noqa: ANN401
            self._outputs[index] = output

        return keep

    def _keep_input(self, _: nn.Module, arguments: tuple[torch.Tensor, ...]) -> None:
        self._before[0] = arguments[0]

    def _keep_attended(self, _: nn.Module, __: Any, output: tuple[torch.Tensor, Any]) -> None:  # noqa: ANN401
        self._before[1] = output[0]


def _experts_of(layer: Any) -> object:  # noqa: ANN401
    return getattr(layer.mlp, "experts", None)


def _checked_layers(layers: Sequence[int], num_layers: int) -> tuple[int, ...]:
    for layer in layers:
        if not 0 <= layer < num_layers:
            raise InputError(
                f"the drafter reads features of target layer {layer} but the target has {num_layers} layers; take the "
                "drafter that was trained for this target"
            )
    return tuple(layers)
