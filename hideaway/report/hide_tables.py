"""Tables of `hideaway hide`: terms, forms with verdicts, chances and inverses, from the answer's plain data.

Seconds become milliseconds here and nowhere before. The picture is in `hideaway.report.hide_plots`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hideaway.console import print_table
from hideaway.sim.units import GB, MILLISECOND

FORM_NAMES = {
    "nominal": "nominal",
    "achievable": "achievable, own draft not in the window",
    "measured_union": "union, full transfer costs",
    "measured_union_idle_link_used": "union, idle link used too",
    "staggered": "staggered, exact prefetch, hits first",
    "staggered_barrier": "staggered, barrier before experts",
    "depth_one": "depth 1, no prediction",
}
_UNITS = {"_bytes_per_second": "bytes/s", "_bytes": "bytes", "_seconds": "s", "_per_token": "s"}
_NOTHING = "-"


def print_hide_answer(result: Mapping[str, Any]) -> None:
    """Print the tables of an answer on stdout, verdicts last but for the notes."""
    _print_terms(result["terms"], result["sources"])
    print()
    _print_forms(result["forms"], result["terms"].get("block_size"))
    if result["chances"] is not None:
        print()
        _print_chances(result["chances"])
    print()
    _print_inverses(result["inverses"], result["sets"])
    print()
    for note in result["notes"]:
        print(note)
    print(verdict_line(result))


def verdict_line(result: Mapping[str, Any]) -> str:
    """Return the last line: hidden or not by the nominal form, its slack, and what it is worth."""
    nominal = result["forms"]["nominal"]
    hidden = "hidden" if nominal["hidden"] else "not hidden"
    line = f"Nominal verdict: {hidden}, slack {nominal['slack_seconds']:+.9f} s"
    if nominal["worth"] is not None:
        line += f"; {nominal['worth']}"
    staggered = result["forms"].get("staggered")
    if staggered is not None:
        depth_one = result["forms"]["depth_one"]
        line += (
            f". Exposed: {milliseconds(staggered['exposed_seconds'])} ms with exact prefetch, "
            f"{milliseconds(depth_one['exposed_seconds'])} ms at depth 1"
        )
    return line + "."


def _print_terms(terms: Mapping[str, Any], sources: Mapping[str, str]) -> None:
    rows = []
    for name, value in terms.items():
        if value is not None:
            unit = next((text for suffix, text in _UNITS.items() if name.endswith(suffix)), "")
            rows.append((name, _number(value), unit, sources.get(name, "follows")))
    print_table(("term", "value", "unit", "from"), rows, title="Terms")


def _print_forms(forms: Mapping[str, Mapping[str, Any]], block_size: int | None) -> None:
    columns = [
        "form",
        "fetch ms",
        "window ms",
        "slack ms",
        "exposed ms",
        "round ms",
        "ms/token",
        "even at a",
        "verdict",
    ]
    rows = [
        [
            FORM_NAMES[name],
            milliseconds(form["fetch_seconds"]),
            milliseconds(form["hide_window_seconds"]),
            milliseconds(form["slack_seconds"]),
            milliseconds(form["exposed_seconds"]),
            milliseconds(form["round_seconds"]),
            milliseconds(form["seconds_per_committed_token"]),
            _break_even(form["break_even_acceptance_length"], block_size),
            form["worth"] or ("hidden" if form["hidden"] else "not hidden"),
        ]
        for name, form in forms.items()
    ]
    print_table(columns, rows, title="Do the transfers hide?")


def _print_chances(chances: Mapping[str, Any]) -> None:
    rows = []
    for title, forms in (
        ("a round is hidden (rounds vary)", chances["round_hidden"]),
        ("the mean is hidden (calibration error)", chances["mean_hidden"]),
    ):
        for name, chance in (forms or {}).items():
            low, high = chance["interval_95"]
            exposed = [
                milliseconds(chance[f"exposed_{quantile}_seconds"]) for quantile in ("p50", "p90", "p99")
            ]
            share = f"{chance['probability']:.3f} ({low:.3f} to {high:.3f})"
            rows.append([title, FORM_NAMES[name], share, *exposed, chance["num_samples"]])
    if not rows:
        print("Chances: no parameter of the profile has a standard error, and no routing was given.")
        return
    columns = ("chance that", "by", "probability (95 %)", "exposed p50 ms", "p90 ms", "p99 ms", "samples")
    print_table(columns, rows, title="How likely?")
    if chances["varied_parameters"]:
        print(f"Calibration error known of: {', '.join(chances['varied_parameters'])}.")


def _print_inverses(inverses: Mapping[str, Any], sets: Mapping[str, Any]) -> None:
    bandwidth = inverses["smallest_bandwidth_bytes_per_second"]
    rows = [
        ("smallest resident fraction r", f"{inverses['smallest_resident_fraction']:.4f}", _NOTHING),
        (
            "smallest bandwidth, GB/s",
            "none is enough" if bandwidth is None else f"{bandwidth / GB:.3f}",
            _NOTHING,
        ),
    ]
    for name, title in (("block_size", "block sizes"), ("slots_per_layer", "slots a layer")):
        found = sets[name]
        if found is not None:
            first, last = found["candidates"]
            by_union = found["hiding_by_union_text"] or _NOTHING
            rows.append((f"{title} that hide, of {first} to {last}", found["hiding_text"], by_union))
    window = inverses["smallest_staggered_window_seconds"]
    if window is not None:
        rows.append(("smallest window, staggered, ms", milliseconds(window), _NOTHING))
    print_table(("what would hide", "nominal", "union, full costs"), rows, title="Inverses")


def _break_even(acceptance_length: float | None, block_size: int | None) -> str:
    """Return the break-even acceptance; one beyond the block size cannot be reached."""
    beyond = acceptance_length is not None and block_size is not None and acceptance_length > block_size
    return _plain(acceptance_length) + (" (> B)" if beyond else "")


def milliseconds(seconds: float | None) -> str:
    """Return seconds as text in milliseconds; a dash for None."""
    return _NOTHING if seconds is None else _plain(seconds / MILLISECOND)


def _plain(value: float | None) -> str:
    if value is None:
        return _NOTHING
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) or value.is_integer() else f"{value:.10g}"
