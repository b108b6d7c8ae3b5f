"""The matrix for a terminal: one line a cell, and in words where the expected order of baselines holds."""

from __future__ import annotations

from collections.abc import Sequence

from hideaway.report.order import order_summary, order_verdicts
from hideaway.sim.contract.rows import Row


def matrix_table(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Return columns and lines: tokens/s of every baseline, with the exposed share of its time in brackets."""
    baselines = list(dict.fromkeys(str(row["baseline"]) for row in rows))
    cells = {(row["block_size"], row["concurrency"], row["baseline"]): row for row in rows}
    places = list(dict.fromkeys((row["block_size"], row["concurrency"]) for row in rows))
    lines = [
        [str(block), str(count), *(_cell(cells.get((block, count, name))) for name in baselines)]
        for block, count in places
    ]
    return ["B", "concurrency", *baselines], lines


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    if "status" in row:
        return "does not fit"
    return f"{row['output_tokens_per_second']:.0f} ({row['exposed_share']:.0%})"


def matrix_verdict(rows: Sequence[Row]) -> str:
    """Return the verdict in words: whether transfers hide, and whether each step of the design pays."""
    offloaded = [row for row in rows if "status" not in row and not str(row["baseline"]).startswith("B3")]
    lines = []
    if offloaded:
        shares = [row["exposed_share"] for row in offloaded]
        hidden = sum(share < 0.01 for share in shares)
        lines.append(
            f"verdict: transfers hide (exposed below 1 % of time) in {hidden} of {len(offloaded)} offloaded rows; "
            f"exposed share {min(shares):.0%} to {max(shares):.0%}"
        )
        costs = [row["offload_share"] for row in offloaded]
        lines.append(
            f"  offloading as a whole (waits, round trips, issue, launches of late experts one by one) takes "
            f"{min(costs):.0%} to {max(costs):.0%} of time"
        )
        lines.extend(_best(offloaded))
        lines.extend(_held_back(offloaded))
    lines.append(order_summary(order_verdicts(rows)))
    return "\n".join(lines)


def _best(rows: Sequence[Row]) -> list[str]:
    """Return per concurrency the offloaded row with the most tokens/s; oracles and bounds are left out."""
    lines = []
    for count in dict.fromkeys(row["concurrency"] for row in rows):
        real = [row for row in rows if row["concurrency"] == count and row["baseline"] != "OURS-oracle"]
        best = max(real, key=lambda row: float(row["output_tokens_per_second"]), default=None)
        if best is not None:
            block = f" at B = {best['block_size']}" if best["draft"] else ""
            lines.append(
                f"  concurrency {count}: best offloaded row {best['baseline']}{block}, "
                f"{best['output_tokens_per_second']:.0f} tokens/s"
            )
    return lines


def _held_back(rows: Sequence[Row]) -> list[str]:
    """Return a line where the byte deficit makes most drafted sequences wait, since that decides its figures."""
    waiting = [row for row in rows if row["baseline"] == "OURS" and row["seated_share"] < 0.5]
    if not waiting:
        return []
    shares = [row["seated_share"] for row in waiting]
    counts = ", ".join(str(count) for count in dict.fromkeys(row["concurrency"] for row in waiting))
    return [
        f"  OURS verifies only {min(shares):.0%} to {max(shares):.0%} of its drafted sequences per iteration at "
        f"concurrency {counts}: its byte budget (bandwidth x achievable window) is below what one sequence is "
        "predicted to move, so mostly the head of the line is verified alone; --byte-budget or --admission "
        "token-deficit lifts it"
    ]
