"""BM2: issue a block's prefetches as one batch only if one by one takes longer than the window allows.

Times are host time to *issue* one saturated block, in microseconds; None means not measured and never passes.
The measuring itself is not here. Next: `hideaway.sim.gates.bm3`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hideaway.sim.gates.percentiles import percentiles_us
from hideaway.sim.number_checks import finite_number, whole_number

PYTHON_PER_EXPERT = "python-per-expert"
BATCHED_PYBIND = "batched-pybind"
CPP_INTERNAL = "cpp-internal"
ISSUANCE_MODES = (PYTHON_PER_EXPERT, BATCHED_PYBIND, CPP_INTERNAL)


@dataclass(frozen=True, slots=True)
class Bm2Decision:
    """Median issue times and window (microseconds), and what follows from them."""

    per_expert_us: float | None
    batched_us: float | None
    cpp_internal_us: float | None
    window_us: float
    candidate_required: bool
    ship_batched: bool


def bm2_decision(
    per_expert_us: float | None,
    batched_us: float | None,
    cpp_internal_us: float | None,
    window_us: float,
) -> Bm2Decision:
    """Return whether a batched candidate is required and whether it ships.

    Required: the per-expert median was measured and exceeds the window. Ships: required, and the batched
    median was measured and is at most the window.

    Raises
    ------
    InputError
        A median is negative or not finite, or the window is not finite and positive.
    """
    window = finite_number("window_us", window_us, above_minimum=True)
    per_expert = _optional_microseconds("per_expert_us", per_expert_us)
    batched = _optional_microseconds("batched_us", batched_us)
    candidate_required = per_expert is not None and per_expert > window
    return Bm2Decision(
        per_expert_us=per_expert,
        batched_us=batched,
        cpp_internal_us=_optional_microseconds("cpp_internal_us", cpp_internal_us),
        window_us=window,
        candidate_required=candidate_required,
        ship_batched=candidate_required and batched is not None and batched <= window,
    )


def build_bm2_report(
    *,
    model: str,
    saturated_tensor_count: int,
    window_us: float,
    per_expert_samples_ns: Sequence[float] | None,
    batched_samples_ns: Sequence[float] | None = None,
    cpp_internal_samples_ns: Sequence[float] | None = None,
    warmup: int,
    iterations: int,
    extra: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the BM2 report: percentiles of every mode under `modes`, their medians, the two verdicts.

    A mode that was not measured is None, never zero. Keys of `extra` are added at the end.
    """
    samples = {
        PYTHON_PER_EXPERT: per_expert_samples_ns,
        BATCHED_PYBIND: batched_samples_ns,
        CPP_INTERNAL: cpp_internal_samples_ns,
    }
    modes = {mode: None if taken is None else percentiles_us(taken) for mode, taken in samples.items()}
    medians = {mode: None if statistics is None else statistics["p50"] for mode, statistics in modes.items()}
    decision = bm2_decision(
        medians[PYTHON_PER_EXPERT], medians[BATCHED_PYBIND], medians[CPP_INTERNAL], window_us
    )
    report: dict[str, Any] = {
        "benchmark": "BM2",
        "model": model,
        "saturated_tensor_count": whole_number("saturated_tensor_count", saturated_tensor_count),
        "window_us": decision.window_us,
        "warmup": whole_number("warmup", warmup),
        "iterations": whole_number("iterations", iterations),
        "modes": modes,
        "medians_us": medians,
        "candidate_required": decision.candidate_required,
        "ship_batched": decision.ship_batched,
    }
    return {**report, **(extra or {})}


def _optional_microseconds(name: str, value: float | None) -> float | None:
    return None if value is None else finite_number(name, value)
