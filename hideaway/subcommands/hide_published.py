"""What `hideaway hide --published` answers: the published verdict, other readings, which assumption decides.

The case and its readings are `hideaway.sim.hide.published`; its picture is in `hideaway.report.hide_plots`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hideaway.console import print_table
from hideaway.report.hide_tables import milliseconds
from hideaway.sim.hide import (
    PublishedCase,
    Reading,
    deciding_assumptions,
    round_seconds,
    seconds_per_committed_token,
    smallest_bandwidth_bytes_per_second,
)
from hideaway.sim.units import GB

_ASSUMPTIONS = {
    "only_expert_copies": "that every byte moved is an expert transfer",
    "own_draft_in_window": "that a sequence's fetch can hide behind its own draft",
}


def published_answer(case: PublishedCase, readings: tuple[Reading, ...]) -> dict[str, Any]:
    """Return every reading of a case as plain data."""
    return {
        "case": case.name,
        "title": case.title,
        "terms": {
            "moved_bytes": case.moved_bytes,
            "num_expert_copies": case.num_expert_copies,
            "expert_bytes": case.expert_bytes,
            "measured_h2d_bytes_per_second": case.measured_h2d_bytes_per_second,
            "draft_seconds": case.draft_seconds,
            "router_seconds": case.router_seconds,
            "verify_seconds": case.verify_seconds,
            "overlap_seconds": case.overlap_seconds,
            "num_rounds": case.num_rounds,
            "acceptance_length": case.acceptance_length,
        },
        "readings": [_plain(case, reading) for reading in readings],
        "deciding_assumptions": list(deciding_assumptions(readings)),
        "sources": list(case.sources),
        "caveats": list(case.caveats),
    }


def print_published_answer(result: Mapping[str, Any]) -> None:
    """Print the readings of a case on stdout, then what decides, then sources and caveats."""
    print(result["title"])
    print()
    print_table(
        ("term", "value"),
        [(name, f"{value:,}") for name, value in result["terms"].items()],
        title="Terms",
    )
    print()
    rows = [
        (
            "expert copies only" if reading["only_expert_copies"] else "all bytes (as published)",
            "yes" if reading["own_draft_in_window"] else "no",
            f"{reading['fetch_bytes'] / GB:.3f}",
            milliseconds(reading["fetch_seconds"]),
            milliseconds(reading["hide_window_seconds"]),
            f"{reading['margin_seconds']:+.9f}",
            milliseconds(reading["seconds_per_committed_token"]),
            "hidden" if reading["hidden"] else "not hidden",
        )
        for reading in result["readings"]
    ]
    columns = (
        "bytes that count",
        "own draft in window",
        "GB",
        "fetch ms",
        "window ms",
        "margin s",
        "ms/token",
        "verdict",
    )
    print_table(columns, rows, title="Readings, totals over the trace")
    print()
    print(_deciding_line(result["deciding_assumptions"], result["terms"], result["readings"]))
    print("Break-even acceptance against B0: B0 was not published.")
    for caveat in result["caveats"]:
        print(f"Caveat: {caveat}")
    for source in result["sources"]:
        print(f"Source: {source}")


def _plain(case: PublishedCase, reading: Reading) -> dict[str, Any]:
    form = reading.form
    exposed = max(0.0, -reading.margin_seconds)
    total = round_seconds(
        draft_seconds=case.draft_seconds,
        router_seconds=case.router_seconds,
        verify_seconds=case.verify_seconds,
        exposed_seconds=exposed,
    )
    enough = smallest_bandwidth_bytes_per_second(
        resident_fraction=form.resident_fraction,
        saturation=form.saturation,
        total_expert_bytes=form.total_expert_bytes,
        draft_seconds=form.draft_seconds,
        router_seconds=form.router_seconds,
        overlap_seconds=form.overlap_seconds,
    )
    return {
        "only_expert_copies": reading.only_expert_copies,
        "own_draft_in_window": reading.own_draft_in_window,
        "fetch_bytes": int(form.total_expert_bytes),
        "fetch_seconds": form.fetch_seconds,
        "hide_window_seconds": form.hide_window_seconds,
        "margin_seconds": reading.margin_seconds,
        "hidden": form.hidden,
        "exposed_seconds": exposed,
        "seconds_per_committed_token": float(
            seconds_per_committed_token(float(total) / case.num_rounds, case.acceptance_length)
        ),
        "smallest_bandwidth_bytes_per_second": float(enough),
    }


def _deciding_line(
    deciding: Sequence[str], terms: Mapping[str, Any], readings: Sequence[Mapping[str, Any]]
) -> str:
    published = "hidden" if readings[0]["hidden"] else "not hidden"
    copies = f"{terms['num_expert_copies']} copies of one expert ({terms['expert_bytes']:,} bytes)"
    if not deciding:
        return f"Nominal verdict: {published}; no single assumption flips it."
    names = " or ".join(_ASSUMPTIONS[name] for name in deciding)
    line = f"Nominal verdict: {published}. What flips the sign is the assumption {names}"
    if "only_expert_copies" not in deciding:
        return line + "."
    experts = {
        reading["own_draft_in_window"]: reading for reading in readings if reading["only_expert_copies"]
    }
    return (
        f"{line}: of the bytes moved only {copies} are expert traffic; with those alone the margin is "
        f"{experts[True]['margin_seconds']:+.3f} s, and without the sequence's own draft in the window "
        f"{experts[False]['margin_seconds']:+.3f} s."
    )
