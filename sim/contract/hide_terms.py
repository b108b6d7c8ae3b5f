"""The nominal hiding inequality on scalars, frozen: both sides and the verdict.

    (1 − r) · s · M / BW  <=  t_draft + t_router + overlap_with_prev_verify

Left: seconds to move the experts that are needed and not resident, at a measured bandwidth. Right: seconds of
other work the transfer may hide behind. The forms that count real transfers, per-transfer cost and layer
order, and the inverses, are in `hideaway.sim.hide`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hideaway.sim.errors import InputError
from hideaway.sim.number_checks import finite_number


@dataclass(frozen=True, slots=True)
class HideInequality:
    """Terms, both sides (seconds) and verdict of the nominal inequality."""

    resident_fraction: float
    saturation: float
    total_expert_bytes: float
    measured_h2d_bytes_per_second: float
    draft_seconds: float
    router_seconds: float
    overlap_seconds: float
    fetch_seconds: float
    hide_window_seconds: float
    hidden: bool

    def __post_init__(self) -> None:
        for name in ("fetch_seconds", "hide_window_seconds"):
            if not math.isfinite(getattr(self, name)):
                raise InputError(f"{name} overflows a float with these terms; give terms of physical size")


def evaluate_hide_inequality(
    *,
    resident_fraction: float,
    saturation: float,
    total_expert_bytes: float,
    measured_h2d_bytes_per_second: float,
    draft_seconds: float,
    router_seconds: float,
    overlap_seconds: float,
) -> HideInequality:
    """Return both sides of the nominal inequality; `hidden` is fetch_seconds <= hide_window_seconds.

    Parameters
    ----------
    resident_fraction, saturation
        r and s, each in [0, 1].
    total_expert_bytes
        M, bytes of all routed experts (or the bytes that moved, with r = 0 and s = 1).
    measured_h2d_bytes_per_second
        BW, a measured host-to-device rate, > 0.
    draft_seconds, router_seconds, overlap_seconds
        The three terms of the window, each >= 0.

    Raises
    ------
    InputError
        Naming the argument that is out of range.
    """
    r = finite_number("resident_fraction", resident_fraction, maximum=1.0)
    s = finite_number("saturation", saturation, maximum=1.0)
    total = finite_number("total_expert_bytes", total_expert_bytes)
    rate = finite_number("measured_h2d_bytes_per_second", measured_h2d_bytes_per_second, above_minimum=True)
    draft = finite_number("draft_seconds", draft_seconds)
    router = finite_number("router_seconds", router_seconds)
    overlap = finite_number("overlap_seconds", overlap_seconds)
    fetch_seconds = (1.0 - r) * s * total / rate
    hide_window_seconds = draft + router + overlap
    return HideInequality(
        resident_fraction=r,
        saturation=s,
        total_expert_bytes=total,
        measured_h2d_bytes_per_second=rate,
        draft_seconds=draft,
        router_seconds=router,
        overlap_seconds=overlap,
        fetch_seconds=fetch_seconds,
        hide_window_seconds=hide_window_seconds,
        hidden=fetch_seconds <= hide_window_seconds,
    )
