"""What was measured for the gates, as values: None where a figure is absent.

Filled by `hideaway.sim.verdicts.readers`, judged by `hideaway.sim.verdicts.judges`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hideaway.sim.errors import InputError
from hideaway.sim.gates import Bm3Decision

_ROUNDING = 1e-9
"""Sums of apportioned bytes may exceed the total by float rounding, never by more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bm2Measurement:
    """Median microseconds to issue one block's prefetches, by mode; the window if the report states one."""

    source: str
    per_expert_us: float | None = None
    batched_us: float | None = None
    cpp_internal_us: float | None = None
    window_us: float | None = None
    published_verdict: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bm3Measurement:
    """The decision for each (model, decision) measured; or, where only that was published, the verdict."""

    source: str
    decisions: tuple[tuple[str, Bm3Decision], ...] = ()
    quoted_ship: bool | None = None
    published_verdict: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bm4Measurement:
    """The terms of the hiding inequality from one capture, sums over all of it.

    `is_recomputed` when the overlap was computed here from intervals. `num_expert_copies` copies of
    `expert_bytes` each are the part of the bytes that are routed experts. `captured_ranges` are the names of
    the ranges in the capture, None when they are not known.
    """

    source: str
    total_h2d_bytes: float | None = None
    overlapped_h2d_bytes: float | None = None
    overlap_fraction: float | None = None
    h2d_bytes_per_second: float | None = None
    draft_seconds: float | None = None
    router_seconds: float | None = None
    verify_seconds: float | None = None
    overlap_seconds: float | None = None
    num_rounds: int | None = None
    num_expert_copies: int | None = None
    expert_bytes: int | None = None
    captured_ranges: tuple[str, ...] | None = None
    is_recomputed: bool = False

    def __post_init__(self) -> None:
        total, overlapped = self.total_h2d_bytes, self.overlapped_h2d_bytes
        if total is not None and overlapped is not None and overlapped > total * (1 + _ROUNDING):
            raise InputError(
                f"{self.source}: overlapped_h2d_bytes is {overlapped:g} but total_h2d_bytes is {total:g}; "
                "repair the one that is wrong"
            )

    def filled_from(self, other: Bm4Measurement) -> Bm4Measurement:
        """Return this measurement with what it lacks taken from `other`, and both sources named."""
        absent = {
            field.name: getattr(other, field.name)
            for field in dataclasses.fields(self)
            if getattr(self, field.name) is None
        }
        sources = self.source if other.source == self.source else f"{self.source} and {other.source}"
        is_recomputed = self.is_recomputed or (self.overlap_fraction is None and other.is_recomputed)
        return dataclasses.replace(self, **absent, source=sources, is_recomputed=is_recomputed)

    def fraction(self) -> float | None:
        """Return the overlapped share of the bytes, from the two byte counts where both are there."""
        if self.total_h2d_bytes and self.overlapped_h2d_bytes is not None:
            return self.overlapped_h2d_bytes / self.total_h2d_bytes
        return self.overlap_fraction

    def overlap_or_derived_seconds(self) -> float | None:
        """Return the overlap term; where it is not stated, overlapped bytes over the measured rate."""
        if self.overlap_seconds is not None:
            return self.overlap_seconds
        if self.overlapped_h2d_bytes is None or not self.h2d_bytes_per_second:
            return None
        return self.overlapped_h2d_bytes / self.h2d_bytes_per_second


@dataclass(frozen=True, slots=True, kw_only=True)
class Bm5Measurement:
    """The two rows that differ in the way of issuing only."""

    source: str
    python_row: Mapping[str, Any]
    cpp_row: Mapping[str, Any]
    rel_tol: float = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class GateMeasurements:
    """Everything the five gates are judged on; rows may carry the times of BM1 and the terms of BM4."""

    rows: tuple[Mapping[str, Any], ...] = ()
    bm2: Bm2Measurement | None = None
    bm3: Bm3Measurement | None = None
    bm4: Bm4Measurement | None = None
    bm5: Bm5Measurement | None = None
