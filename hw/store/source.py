"""Where the experts of a store come from: one method, and a description of what it returns."""

from __future__ import annotations

from typing import Protocol

from hideaway.hw.fp4.layouts import ExpertLayout
from hideaway.hw.store.description import StoreDescription, stored_tensors
from hideaway.hw.store.reader import Bytes
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.models.architecture import Architecture
from hideaway.sim.inputs.models.spec import ModelSpec, spec_from
from hideaway.sim.number_checks import whole_number


class ExpertSource(Protocol):
    """Experts one by one, in the bytes in which they are stored."""

    @property
    def description(self) -> StoreDescription:
        """What will be in the store."""

    def expert(self, layer: int, expert: int) -> Bytes:
        """Return the bytes of one expert, shape (expert_bytes,). May be called from several threads."""


def spec_in_fp4(architecture: Architecture, expert_format: str | None) -> ModelSpec:
    """Return a model with its experts in `expert_format`: by default its own FP4 format, MXFP4 if it has none."""
    if expert_format is None:
        stored = architecture.stored.experts
        expert_format = stored if stored in ("mxfp4", "nvfp4") else "mxfp4"
    return spec_from(architecture, expert_format)


def moe_layers(architecture: Architecture, num_layers: int | None) -> tuple[int, ...]:
    """Return the indices of the first `num_layers` layers with routed experts, or of all.

    Raises
    ------
    InputError
        The model has fewer.
    """
    dense = set(architecture.dense_indices)
    indices = tuple(index for index in range(len(architecture.layer_kinds)) if index not in dense)
    if num_layers is None:
        return indices
    whole_number("layers", num_layers, minimum=1)
    if num_layers > len(indices):
        raise InputError(
            f"layers is {num_layers} but {architecture.name} has {len(indices)} layers with routed experts; "
            "give at most that"
        )
    return indices[:num_layers]


def description_of(
    spec: ModelSpec, layout: ExpertLayout, layer_indices: tuple[int, ...], source: str
) -> StoreDescription:
    """Return what a store of these layers of a model holds."""
    return StoreDescription(
        model=spec.name,
        source=source,
        expert_format=layout.expert_format,
        swiglu=layout.swiglu,
        num_layers=len(layer_indices),
        num_experts=spec.num_experts,
        top_k=spec.top_k,
        hidden_size=spec.hidden_size,
        expert_intermediate_size=spec.expert_intermediate_size,
        layer_indices=layer_indices,
        tensors=stored_tensors(layout),
    )
