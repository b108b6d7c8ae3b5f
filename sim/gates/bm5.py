"""BM5: another way of issuing prefetches may move tokens/s and nothing else; and which hops are kept.

A hop (batched issuance, a priority band) stays in the code only while its own benchmark is there and passes.
The last of the gates; `hideaway.sim.verdicts` applies all five to files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hideaway.sim.errors import InputError
from hideaway.sim.gates.bm2 import Bm2Decision
from hideaway.sim.gates.bm3 import Bm3Decision
from hideaway.sim.number_checks import finite_number, shown

BM5_INVARIANTS = ("acceptance_length_a", "route_ahead_prefetch_coverage", "wasted_prefetch_bytes")


def summarise_bm5_equivalence(
    *,
    python_row: Mapping[str, Any],
    cpp_row: Mapping[str, Any],
    rel_tol: float = 1e-6,
) -> dict[str, Any]:
    """Return `equivalent`, `mismatched` (names of invariants) and both throughputs (None if not measured).

    Two values match when they differ by at most rel_tol · max(|a|, |b|, 1). An invariant that either row
    lacks is mismatched: absence proves nothing.

    Raises
    ------
    InputError
        A value or the tolerance is negative, not finite or not a number.
    """
    tolerance = finite_number("rel_tol", rel_tol)
    rows = {"python_row": python_row, "cpp_row": cpp_row}
    for name, row in rows.items():
        if not isinstance(row, Mapping):
            raise InputError(
                f"{name} is {shown(row)} but must be a row; give a mapping from metric to number"
            )
    mismatched = [key for key in BM5_INVARIANTS if not _matches(key, rows, tolerance)]
    return {
        "benchmark": "BM5",
        "equivalent": not mismatched,
        "mismatched": mismatched,
        "python_tokens_per_second": _throughput("python_row", python_row),
        "cpp_tokens_per_second": _throughput("cpp_row", cpp_row),
    }


def cpp_hop_verdicts(
    *,
    bm2: Mapping[str, Any] | Bm2Decision | None,
    bm3: Mapping[str, Any] | Bm3Decision | None,
) -> dict[str, dict[str, Any]]:
    """Return, for the hops `batched_issuance` and `priority_band`, whether to `keep` each and the `reason`.

    Each argument is the benchmark's report or decision, or None where the benchmark was not run, which
    removes the hop.
    """
    return {
        "batched_issuance": _hop_verdict("batched issuance", "BM2", bm2, "ship_batched"),
        "priority_band": _hop_verdict("the priority band", "BM3", bm3, "ship_priority_band"),
    }


def _matches(key: str, rows: Mapping[str, Mapping[str, Any]], tolerance: float) -> bool:
    if any(row.get(key) is None for row in rows.values()):
        return False
    first, second = (finite_number(f"{name}.{key}", row[key]) for name, row in rows.items())
    return abs(first - second) <= tolerance * max(first, second, 1.0)


def _throughput(name: str, row: Mapping[str, Any]) -> float | None:
    value = row.get("output_tokens_per_second")
    return None if value is None else finite_number(f"{name}.output_tokens_per_second", value)


def _hop_verdict(hop: str, benchmark: str, report: object, flag: str) -> dict[str, Any]:
    if report is None:
        return {"keep": False, "reason": f"{hop} is removed: {benchmark} was not measured"}
    value = report.get(flag) if isinstance(report, Mapping) else getattr(report, flag, None)
    if value is None:
        return {"keep": False, "reason": f"{hop} is removed: the {benchmark} report has no {flag}"}
    if value not in (True, False):
        raise InputError(f"{flag} of the {benchmark} report is {shown(value)}; give true or false")
    if value:
        return {"keep": True, "reason": f"{hop} is kept: {benchmark} passes ({flag} is true)"}
    return {"keep": False, "reason": f"{hop} is removed: {benchmark} does not pass ({flag} is false)"}
