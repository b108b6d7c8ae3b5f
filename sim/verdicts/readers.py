"""Benchmark files into measurements: reports as the public experiment writes them, or the figures alone.

Keys that no gate needs are passed over, so that a report written by another version still loads; a file with
no key that is needed is refused. Next: `hideaway.sim.verdicts.judges`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hideaway.sim.errors import InputError
from hideaway.sim.gates import (
    BATCHED_PYBIND,
    CPP_INTERNAL,
    PRIORITY_BANDS,
    PYTHON_PER_EXPERT,
    Bm3Decision,
    bm3_decision,
    build_bm3_report,
    percentiles_us,
    priority_arm,
)
from hideaway.sim.inputs.plain_numbers import read_json_value
from hideaway.sim.number_checks import finite_number, printable_text, shown
from hideaway.sim.verdicts.measurements import Bm2Measurement, Bm3Measurement, Bm4Measurement, Bm5Measurement
from hideaway.sim.verdicts.overlap_files import bm4_from_mapping
from hideaway.sim.verdicts.range_summaries import read_range_summary

_MODES = {PYTHON_PER_EXPERT: "per_expert", BATCHED_PYBIND: "batched", CPP_INTERNAL: "cpp_internal"}


def read_bm2(path: str | os.PathLike[str]) -> Bm2Measurement:
    """Return issue times from a BM2 report (`medians_us`), plain figures (`per_expert_us`, …) or samples.

    Samples are lists `per_expert_samples_ns`, `batched_samples_ns`, `cpp_internal_samples_ns`; `window_us`
    may be absent.
    """
    report = _read_object(path, "BM2 file")
    source = _source(report, path)
    medians = {short: _issue_median(report, mode, short, source) for mode, short in _MODES.items()}
    if all(value is None for value in medians.values()):
        raise InputError(
            f"BM2 file {os.fspath(path)!r} has no medians_us, per_expert_us or samples; give one of them"
        )
    window = report.get("window_us")
    return Bm2Measurement(
        source=source,
        per_expert_us=medians["per_expert"],
        batched_us=medians["batched"],
        cpp_internal_us=medians["cpp_internal"],
        window_us=None if window is None else finite_number("window_us", window, above_minimum=True),
        published_verdict=_optional_text(report, "published_verdict"),
    )


def read_bm3(path: str | os.PathLike[str]) -> Bm3Measurement:
    """Return the arms of a BM3 report (`medians`, samples as `arms`, or `per_model`), or its bare verdict."""
    report = _read_object(path, "BM3 file")
    source, published = _source(report, path), _optional_text(report, "published_verdict")
    parts = report.get("per_model", [report])
    if not isinstance(parts, list) or not parts or not all(isinstance(part, dict) for part in parts):
        raise InputError(f"per_model of {os.fspath(path)!r} is {shown(parts)}; give a list of reports")
    if any("medians" in part or "arms" in part for part in parts):
        decisions = tuple((_models(part, index), _bm3_part(part, path)) for index, part in enumerate(parts))
        return Bm3Measurement(source=source, decisions=decisions, published_verdict=published)
    ship = report.get("ship_priority_band")
    if not isinstance(ship, bool):
        raise InputError(
            f"BM3 file {os.fspath(path)!r} has no medians, arms or ship_priority_band; give one of them"
        )
    return Bm3Measurement(source=source, quoted_ship=ship, published_verdict=published)


def read_bm4(path: str | os.PathLike[str]) -> Bm4Measurement:
    """Return BM4 terms from JSON (capture, overlap report, inequality terms) or a summary table (CSV)."""
    if Path(path).suffix.lower() == ".csv":
        return read_range_summary(path)
    report = _read_object(path, "BM4 file")
    measurement = bm4_from_mapping(report, _source(report, path))
    if measurement is None:
        raise InputError(
            f"BM4 file {os.fspath(path)!r} has no term of BM4; give memcpys and ranges, or t_draft_seconds …"
        )
    return measurement


def read_bm5(path: str | os.PathLike[str]) -> Bm5Measurement:
    """Return the rows `python_row` and `cpp_row` of a file, and its `rel_tol` if it has one."""
    report = _read_object(path, "BM5 file")
    for name in ("python_row", "cpp_row"):
        if not isinstance(report.get(name), dict):
            raise InputError(
                f"BM5 file {os.fspath(path)!r} has no {name}; give the two rows python_row and cpp_row"
            )
    tolerance = finite_number("rel_tol", report.get("rel_tol", 1e-6))
    return Bm5Measurement(
        source=_source(report, path),
        python_row=report["python_row"],
        cpp_row=report["cpp_row"],
        rel_tol=tolerance,
    )


def _issue_median(report: Mapping[str, Any], mode: str, short: str, source: str) -> float | None:
    medians = report.get("medians_us", {})
    if not isinstance(medians, dict):
        raise InputError(f"medians_us is {shown(medians)}; give a mapping from mode to microseconds")
    value = medians.get(mode, report.get(f"{short}_us"))
    samples = report.get(f"{short}_samples_ns")
    if value is None and samples is not None:
        return percentiles_us(samples)["p50"]
    return None if value is None else finite_number(f"median of {mode} of {source}", value)


def _bm3_part(part: Mapping[str, Any], path: str | os.PathLike[str]) -> Bm3Decision:
    medians = part.get("medians")
    if medians is None:
        arms = part.get("arms")
        if not isinstance(arms, dict):
            raise InputError(
                f"BM3 file {os.fspath(path)!r} has a part without medians or arms; give one of them"
            )
        medians = build_bm3_report(models=[], arms=arms)["medians"]
    if not isinstance(medians, dict):
        raise InputError(
            f"medians of {os.fspath(path)!r} is {shown(medians)}; give a mapping from band to medians"
        )
    arms_by_band = []
    for band in PRIORITY_BANDS:
        arm = medians.get(band)
        if not isinstance(arm, dict) or not {"exposed_fetch_seconds", "tokens_per_second"} <= arm.keys():
            raise InputError(
                f"medians of {os.fspath(path)!r} lack the arm {band}; "
                "give its exposed_fetch_seconds and tokens_per_second"
            )
        arms_by_band.append(
            priority_arm(
                exposed_fetch_seconds=arm["exposed_fetch_seconds"], tokens_per_second=arm["tokens_per_second"]
            )
        )
    background, route_ahead, on_demand = arms_by_band
    return bm3_decision(default=background, route_ahead=route_ahead, on_demand=on_demand)


def _models(part: Mapping[str, Any], index: int) -> str:
    models = part.get("models")
    if isinstance(models, list) and models and all(isinstance(model, str) for model in models):
        return printable_text("models", ", ".join(models))
    return f"model {index}"


def _read_object(path: str | os.PathLike[str], what: str) -> dict[str, Any]:
    value = read_json_value(path, what)
    if not isinstance(value, dict):
        raise InputError(f"{what} {os.fspath(path)!r} holds {shown(value)}; give a JSON object")
    return value


def _optional_text(report: Mapping[str, Any], key: str) -> str | None:
    value = report.get(key)
    return printable_text(key, value) if isinstance(value, str) else None


def _source(report: Mapping[str, Any], path: str | os.PathLike[str]) -> str:
    return _optional_text(report, "source") or Path(path).name
