"""BM4 judged: do the bytes of a capture fit the hide window, and which assumption decides it.

The nominal inequality with the bytes that really moved (r = 0, s = 1). Terms are sums over the capture, on
both sides. `hideaway.sim.hide` asks the same of single rounds and layers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hideaway.sim.contract import HideInequality, evaluate_hide_inequality
from hideaway.sim.gates import DEFAULT_COMPUTE_RANGES
from hideaway.sim.units import GB
from hideaway.sim.verdicts.gate_verdict import GateVerdict, not_measured
from hideaway.sim.verdicts.measurements import Bm4Measurement
from hideaway.sim.verdicts.overlap_files import bm4_from_mapping

_TERMS = {
    "total_h2d_bytes": "total_h2d_bytes",
    "h2d_bytes_per_second": "measured_h2d_bytes_per_second",
    "draft_seconds": "t_draft_seconds",
    "router_seconds": "t_router_seconds",
}


def judge_bm4(captures: Sequence[Bm4Measurement]) -> GateVerdict:
    """Return the verdict of the capture with the least margin; "not measured" when none has every term."""
    complete = [capture for capture in captures if not _missing_terms(capture)]
    if not complete:
        return not_measured("BM4", _why_not(captures))
    judged = [(capture, _inequality(capture)) for capture in complete]
    capture, inequality = min(judged, key=lambda item: _margin(item[1]))
    return GateVerdict(
        gate="BM4",
        outcome="pass" if inequality.hidden else "fail",
        value=inequality.fetch_seconds,
        limit=inequality.hide_window_seconds,
        unit="s",
        reason=f"{_comparison(capture, inequality)}{_other_readings(capture)}; from {capture.source}",
    )


def hide_terms_from_row(row: Mapping[str, Any]) -> Bm4Measurement | None:
    """Return the BM4 terms of a row that carries all of them, at its top or in `cost_terms`; else None."""
    source = f"row {row['baseline']} of {row['model']}"
    terms = bm4_from_mapping({**row.get("cost_terms", {}), **row}, source)
    return None if terms is None or _missing_terms(terms) else terms


def _missing_terms(capture: Bm4Measurement) -> list[str]:
    missing = [name for field, name in _TERMS.items() if getattr(capture, field) is None]
    if capture.overlap_or_derived_seconds() is None:
        missing.append("overlap_with_prev_verify_seconds")
    return missing


def _why_not(captures: Sequence[Bm4Measurement]) -> str:
    if not captures:
        return "no capture was given"
    capture = captures[0]
    reason = f"{', '.join(_missing_terms(capture))} absent from {capture.source}"
    fraction = capture.fraction()
    if fraction is not None:
        reason += f"; {_fraction_text(capture, fraction)}"
    if capture.captured_ranges is not None:
        lost = [name for name in DEFAULT_COMPUTE_RANGES if name not in capture.captured_ranges]
        if lost:
            reason += f"; the capture lacks the ranges {', '.join(lost)}, so an overlap of 0 is an artefact"
    return reason


def _inequality(
    capture: Bm4Measurement, *, num_bytes: float | None = None, own_draft: bool = True
) -> HideInequality:
    def term(value: float | None) -> float:
        return 0.0 if value is None else value

    return evaluate_hide_inequality(
        resident_fraction=0.0,
        saturation=1.0,
        total_expert_bytes=term(capture.total_h2d_bytes) if num_bytes is None else num_bytes,
        measured_h2d_bytes_per_second=term(capture.h2d_bytes_per_second),
        draft_seconds=term(capture.draft_seconds) if own_draft else 0.0,
        router_seconds=term(capture.router_seconds),
        overlap_seconds=term(capture.overlap_or_derived_seconds()),
    )


def _margin(inequality: HideInequality) -> float:
    return inequality.hide_window_seconds - inequality.fetch_seconds


def _comparison(capture: Bm4Measurement, inequality: HideInequality) -> str:
    rounds = f", sums over {capture.num_rounds} rounds" if capture.num_rounds else ""
    rate = inequality.measured_h2d_bytes_per_second / GB
    moved = f"{inequality.total_expert_bytes / GB:.2f} GB at {rate:.2f} GB/s"
    text = f"{moved} against draft + router + overlap{rounds}: margin {_margin(inequality):+.6f} s"
    fraction = capture.fraction()
    return text if fraction is None else f"{text}; {_fraction_text(capture, fraction)}"


def _fraction_text(capture: Bm4Measurement, fraction: float) -> str:
    if capture.is_recomputed:
        how = "computed from intervals"
    else:
        how = "quoted" if capture.overlapped_h2d_bytes is None else "recomputed from the two byte counts"
    return f"{fraction:.2%} of the bytes overlap compute ({how})"


def _other_readings(capture: Bm4Measurement) -> str:
    """Return the margin when only copies of routed experts count, and when the own draft hides nothing."""
    if capture.num_expert_copies is None or capture.expert_bytes is None:
        return ""
    num_bytes = float(capture.num_expert_copies * capture.expert_bytes)
    alone = _inequality(capture, num_bytes=num_bytes)
    without_draft = _inequality(capture, num_bytes=num_bytes, own_draft=False)
    return (
        f"; with the {capture.num_expert_copies} expert copies alone ({num_bytes / GB:.2f} GB) "
        f"{_margin(alone):+.6f} s, and without the own draft {_margin(without_draft):+.6f} s"
    )
