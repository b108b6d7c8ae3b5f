"""How well route-ahead prefetching guessed: coverage of what verify read, and bytes moved for rejected rows.

`RouteAheadStats` passes through: begin_step → observe_layer (once a layer) → commit_step, and again. What was
observed and not committed is dropped by the next begin_step, so a verify that failed leaves no trace. The set
arithmetic is in `hideaway.sim.expert_unions`, whose four public functions are importable from here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from hideaway.sim.errors import InputError
from hideaway.sim.expert_unions import (
    BoolMatrix,
    boolean_matrix,
    expert_ids,
    prefetch_coverage,
    rejected_expert_ids,
    union_experts_from_logits,
    union_experts_from_mask,
)
from hideaway.sim.number_checks import shown, whole_number

__all__ = [
    "RouteAheadStats",
    "RouteAheadStepSummary",
    "prefetch_coverage",
    "rejected_expert_ids",
    "union_experts_from_logits",
    "union_experts_from_mask",
]


class RouteAheadStepSummary(NamedTuple):
    """One committed step, summed over its layers; P predicted, A routed by any row, U routed by a kept row.

    The bytes are those of P alone, split by U, so predicted_bytes = kept_bytes + wasted_bytes. They are None
    when the size of a predicted expert is not known.
    """

    layers: int
    """Layers observed."""
    predicted: int
    """Σ|P|."""
    actual: int
    """Σ|A|."""
    covered: int
    """Σ|P ∩ A|."""
    kept: int
    """Σ|U|, whether predicted or not."""
    wasted: int
    """Σ|P − U|."""
    predicted_bytes: int | None = None
    """Bytes of P."""
    kept_bytes: int | None = None
    """Bytes of P ∩ U."""
    wasted_bytes: int | None = None
    """Bytes of P − U."""

    @property
    def coverage(self) -> float:
        """Share of the routed experts that were predicted; 1.0 when nothing was routed."""
        return self.covered / self.actual if self.actual else 1.0


class _LayerRecord(NamedTuple):
    predicted: set[int]
    mask: BoolMatrix
    bytes_by_expert: dict[int, int] | None


class RouteAheadStats:
    """Running totals over committed steps. Reads what it is shown and changes nothing else."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Set every total to zero and drop what was not committed. Changes state."""
        self.steps = 0
        self.layers_observed = 0
        self.predicted_experts = 0
        self.actual_experts = 0
        self.covered_experts = 0
        self.kept_experts = 0
        self.wasted_experts = 0
        self._kept_bytes: int | None = None
        self._wasted_bytes: int | None = None
        self._has_unknown_bytes = False
        self._pending: list[_LayerRecord] = []

    def begin_step(self) -> None:
        """Start a step and drop what an earlier one left uncommitted. Changes state."""
        self._pending = []

    def observe_layer(
        self,
        layer: int,
        predicted_ids: Any,  # noqa: ANN401
        router_mask: Any,  # noqa: ANN401
        expert_nbytes: Mapping[int, int] | None = None,
    ) -> None:
        """Note one layer's predicted experts and its routing mask (num_tokens, num_experts). Changes state.

        `expert_nbytes` maps expert id to stored bytes; without it, or without a predicted expert in it, the
        step's bytes are unknown. The mask is copied.

        Raises
        ------
        InputError
            An id, the mask or a size is malformed, or a predicted id is beyond the mask's experts.
        """
        whole_number("layer", layer)
        mask = boolean_matrix("router_mask", router_mask)
        predicted = expert_ids("predicted_ids", predicted_ids)
        if predicted and max(predicted) >= mask.shape[1]:
            raise InputError(
                f"predicted_ids holds {max(predicted)} but router_mask has {mask.shape[1]} experts; "
                f"give ids below {mask.shape[1]}"
            )
        self._pending.append(_LayerRecord(predicted, mask, _checked_sizes(expert_nbytes)))

    def commit_step(self, kept_rows: int) -> RouteAheadStepSummary:
        """Return the step's summary and add it to the totals. Changes state.

        `kept_rows` is clamped to the rows there are. A step without layers returns zeros and counts for
        nothing.
        """
        keep = max(0, whole_number("kept_rows", kept_rows, minimum=None))
        records, self._pending = self._pending, []
        if not records:
            return RouteAheadStepSummary(0, 0, 0, 0, 0, 0)
        summary = _summarise(records, keep)
        self.steps += 1
        self.layers_observed += summary.layers
        self.predicted_experts += summary.predicted
        self.actual_experts += summary.actual
        self.covered_experts += summary.covered
        self.kept_experts += summary.kept
        self.wasted_experts += summary.wasted
        if summary.kept_bytes is not None and summary.wasted_bytes is not None:
            self._kept_bytes = (self._kept_bytes or 0) + summary.kept_bytes
            self._wasted_bytes = (self._wasted_bytes or 0) + summary.wasted_bytes
        elif summary.predicted:
            self._has_unknown_bytes = True
        return summary

    @property
    def coverage(self) -> float:
        """Σ|P ∩ A| / Σ|A| over all committed steps; 1.0 when nothing was routed."""
        return self.covered_experts / self.actual_experts if self.actual_experts else 1.0

    @property
    def waste_ratio(self) -> float:
        """Σ|P − U| / Σ|P| over all committed steps; 0.0 when nothing was predicted."""
        return self.wasted_experts / self.predicted_experts if self.predicted_experts else 0.0

    @property
    def kept_prefetch_bytes(self) -> int | None:
        """Bytes prefetched for experts that a kept row used; None when a size is unknown."""
        return None if self._has_unknown_bytes else self._kept_bytes

    @property
    def wasted_prefetch_bytes(self) -> int | None:
        """Bytes prefetched for experts that no kept row used; None when a size is unknown."""
        return None if self._has_unknown_bytes else self._wasted_bytes

    @property
    def predicted_prefetch_bytes(self) -> int | None:
        """Bytes of all predicted experts: kept + wasted; None when a size is unknown."""
        kept, wasted = self.kept_prefetch_bytes, self.wasted_prefetch_bytes
        return None if kept is None or wasted is None else kept + wasted

    def as_dict(self) -> dict[str, int | float | None]:
        """Return totals and ratios by name; bytes that are unknown are None, never zero."""
        return {
            "steps": self.steps,
            "layers_observed": self.layers_observed,
            "predicted_experts": self.predicted_experts,
            "actual_experts": self.actual_experts,
            "covered_experts": self.covered_experts,
            "kept_experts": self.kept_experts,
            "wasted_experts": self.wasted_experts,
            "coverage": self.coverage,
            "waste_ratio": self.waste_ratio,
            "predicted_prefetch_bytes": self.predicted_prefetch_bytes,
            "kept_prefetch_bytes": self.kept_prefetch_bytes,
            "wasted_prefetch_bytes": self.wasted_prefetch_bytes,
        }


def _summarise(records: list[_LayerRecord], keep: int) -> RouteAheadStepSummary:
    predicted = actual = covered = kept = wasted = kept_bytes = wasted_bytes = 0
    has_sizes = any(record.bytes_by_expert is not None for record in records)
    for record in records:
        routed = set(union_experts_from_mask(record.mask))
        used = set(union_experts_from_mask(record.mask[:keep]))
        predicted += len(record.predicted)
        actual += len(routed)
        covered += len(record.predicted & routed)
        kept += len(used)
        wasted += len(record.predicted - used)
        sizes = record.bytes_by_expert or {}
        if not record.predicted <= sizes.keys():
            has_sizes = False
        kept_bytes += sum(sizes.get(expert, 0) for expert in record.predicted & used)
        wasted_bytes += sum(sizes.get(expert, 0) for expert in record.predicted - used)
    counts = (len(records), predicted, actual, covered, kept, wasted)
    if not has_sizes:
        return RouteAheadStepSummary(*counts)
    return RouteAheadStepSummary(*counts, kept_bytes + wasted_bytes, kept_bytes, wasted_bytes)


def _checked_sizes(sizes: Mapping[int, int] | None) -> dict[int, int] | None:
    if sizes is None:
        return None
    if not isinstance(sizes, Mapping):
        raise InputError(
            f"expert_nbytes is {shown(sizes)} but must map expert ids to bytes; give a mapping or None"
        )
    return {
        whole_number("an expert id in expert_nbytes", expert): whole_number(f"expert_nbytes[{expert}]", size)
        for expert, size in sizes.items()
    }
