"""The five gates judged on what was measured, each with value, limit and reason; and which hops stay.

The rules are in `hideaway.sim.gates`; BM4's inequality is the contract's. The last file of the path: what it
returns is printed by the `gates` command.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hideaway.sim.gates import (
    Bm2Decision,
    Bm3Decision,
    bm2_decision,
    cpp_hop_verdicts,
    summarise_bm5_equivalence,
    summarise_row,
)
from hideaway.sim.gates.bm5 import BM5_INVARIANTS
from hideaway.sim.units import MICROSECOND
from hideaway.sim.verdicts.gate_verdict import GateVerdict, not_measured
from hideaway.sim.verdicts.judge_bm4 import hide_terms_from_row, judge_bm4
from hideaway.sim.verdicts.measurements import (
    Bm2Measurement,
    Bm3Measurement,
    Bm4Measurement,
    Bm5Measurement,
    GateMeasurements,
)


@dataclass(frozen=True, slots=True)
class GateReport:
    """The verdicts BM1 to BM5 in order, and for each hop whether to keep it and why."""

    verdicts: tuple[GateVerdict, ...]
    hops: Mapping[str, Mapping[str, Any]]


def judge_gates(measured: GateMeasurements) -> GateReport:
    """Return the verdict of every gate; a gate without a benchmark is "not measured" and removes its hop."""
    captures = [measured.bm4] if measured.bm4 else []
    captures += [terms for row in measured.rows if (terms := hide_terms_from_row(row)) is not None]
    bm2 = _bm2_decision(measured.bm2, measured.bm4)
    ship_band = _ship_band(measured.bm3)
    verdicts = (
        _judge_bm1(measured.rows, measured.bm4),
        _judge_bm2(measured.bm2, bm2),
        _judge_bm3(measured.bm3, ship_band),
        judge_bm4(captures),
        _judge_bm5(measured.bm5),
    )
    bm3 = None if ship_band is None else {"ship_priority_band": ship_band}
    return GateReport(verdicts, cpp_hop_verdicts(bm2=bm2, bm3=bm3))


def _judge_bm1(rows: tuple[Mapping[str, Any], ...], capture: Bm4Measurement | None) -> GateVerdict:
    timed: list[tuple[str, Mapping[str, Any]]] = []
    for row in rows:
        terms = {**row.get("cost_terms", {}), **row}
        if terms.get("t_router_seconds") is not None and terms.get("t_verify_seconds") is not None:
            timed.append((f"row {row['baseline']} of {row['model']}", terms))
    if not timed and capture and capture.router_seconds is not None and capture.verify_seconds is not None:
        times = {"t_router_seconds": capture.router_seconds, "t_verify_seconds": capture.verify_seconds}
        timed.append((capture.source, times))
    if not timed:
        return not_measured(
            "BM1", f"no row or capture has t_router_seconds and t_verify_seconds{_absent(capture)}"
        )
    summaries = [(source, summarise_row(times)) for source, times in timed]
    among = f" (worst of {len(summaries)})" if len(summaries) > 1 else ""
    source, worst = max(summaries, key=lambda item: item[1]["bm1_router_to_verify_ratio"])
    return GateVerdict(
        gate="BM1",
        outcome="pass" if all(summary["bm1_pass"] for _, summary in summaries) else "fail",
        value=worst["bm1_router_to_verify_ratio"],
        limit=1.0,
        reason=f"router {worst['t_router_seconds']:.6g} s{among}, verify {worst['t_verify_seconds']:.6g} s; "
        f"from {source}",
    )


def _absent(capture: Bm4Measurement | None) -> str:
    if capture is None or capture.captured_ranges is None:
        return ""
    return f"; the ranges captured in {capture.source} lack them"


def _bm2_decision(measured: Bm2Measurement | None, capture: Bm4Measurement | None) -> Bm2Decision | None:
    if measured is None:
        return None
    window = measured.window_us if measured.window_us is not None else _window_us(capture)
    if window is None:
        return None
    return bm2_decision(measured.per_expert_us, measured.batched_us, measured.cpp_internal_us, window)


def _window_us(capture: Bm4Measurement | None) -> float | None:
    """Return the hide window of one round, in microseconds: a block is issued every round, terms are sums."""
    if capture is None or capture.draft_seconds is None or capture.router_seconds is None:
        return None
    overlap = capture.overlap_or_derived_seconds() or 0.0
    window = (capture.draft_seconds + capture.router_seconds + overlap) / MICROSECOND
    return window / (capture.num_rounds or 1) or None


def _judge_bm2(measured: Bm2Measurement | None, decision: Bm2Decision | None) -> GateVerdict:
    if measured is None:
        return not_measured("BM2", "no BM2 benchmark was given")
    if decision is None:
        return not_measured(
            "BM2", f"no hide window: {measured.source} has no window_us and no capture gives one"
        )
    if decision.per_expert_us is None or (decision.candidate_required and decision.batched_us is None):
        mode = "per-expert" if decision.per_expert_us is None else "batched"
        return not_measured("BM2", f"the {mode} mode was not measured in {measured.source}")
    window = f"the window of one round, {decision.window_us:.6g} µs"
    if decision.ship_batched:
        reason = f"one by one exceeds {window}, batched {decision.batched_us:.6g} µs fits"
    elif decision.candidate_required:
        reason = f"batched {decision.batched_us:.6g} µs exceeds {window} too"
    else:
        reason = f"one by one already fits {window}, so no batch is required"
    if measured.published_verdict:
        reason += f"; published verdict: {measured.published_verdict}"
        if decision.batched_us is not None and decision.batched_us < decision.per_expert_us:
            reason += (
                f", which holds for a window in [{decision.batched_us:g}, {decision.per_expert_us:g}) µs"
            )
    return GateVerdict(
        gate="BM2",
        outcome="pass" if decision.ship_batched else "fail",
        value=decision.per_expert_us,
        limit=decision.window_us,
        unit="µs",
        reason=f"{reason}; from {measured.source}",
    )


def _ship_band(measured: Bm3Measurement | None) -> bool | None:
    """Return whether the band ships: it must on every model; None where nothing was measured."""
    if measured is None:
        return None
    if measured.decisions:
        return all(decision.ship_priority_band for _, decision in measured.decisions)
    return measured.quoted_ship


def _judge_bm3(measured: Bm3Measurement | None, ship: bool | None) -> GateVerdict:
    if measured is None or ship is None:
        return not_measured("BM3", "no BM3 benchmark was given")
    if not measured.decisions:
        verdict = measured.published_verdict or f"ship_priority_band is {str(ship).lower()}"
        reason = f"quoted, the figures behind it are absent: {verdict}; from {measured.source}"
        return GateVerdict(gate="BM3", outcome="pass" if ship else "fail", reason=reason, origin="quoted")
    model, decision = min(measured.decisions, key=lambda item: item[1].ship_priority_band)
    return GateVerdict(
        gate="BM3",
        outcome="pass" if ship else "fail",
        value=decision.route_ahead.exposed_fetch_seconds,
        limit=decision.default.exposed_fetch_seconds,
        unit="s",
        reason=f"{model}: {_bm3_conditions(decision)}; from {measured.source}",
    )


def _bm3_conditions(decision: Bm3Decision) -> str:
    default, route_ahead = decision.default, decision.route_ahead
    return (
        f"exposed fetch {'falls' if decision.exposed_fetch_improved else 'does not fall'}, tokens/s "
        f"{default.tokens_per_second:.4g} → {route_ahead.tokens_per_second:.4g} "
        f"{'is kept' if decision.throughput_preserved else 'is lost'}, on-demand "
        f"{'stays fastest' if decision.on_demand_fastest else 'is no longer fastest'}"
    )


def _judge_bm5(measured: Bm5Measurement | None) -> GateVerdict:
    if measured is None:
        return not_measured("BM5", "no pair of rows that differ in issuing only was given")
    summary = summarise_bm5_equivalence(
        python_row=measured.python_row, cpp_row=measured.cpp_row, rel_tol=measured.rel_tol
    )
    pairs = [
        (measured.python_row[key], measured.cpp_row[key])
        for key in BM5_INVARIANTS
        if measured.python_row.get(key) is not None and measured.cpp_row.get(key) is not None
    ]
    differences = [abs(first - second) / max(first, second, 1.0) for first, second in pairs]
    speeds = (
        f"{_shown(summary['python_tokens_per_second'])} → {_shown(summary['cpp_tokens_per_second'])} tokens/s"
    )
    changed = (
        f"changed or absent: {', '.join(summary['mismatched'])}"
        if summary["mismatched"]
        else "nothing changed"
    )
    return GateVerdict(
        gate="BM5",
        outcome="pass" if summary["equivalent"] else "fail",
        value=max(differences, default=None),
        limit=measured.rel_tol,
        reason=f"{changed}; {speeds}; from {measured.source}",
    )


def _shown(throughput: float | None) -> str:
    return "not measured" if throughput is None else f"{throughput:.4g}"
