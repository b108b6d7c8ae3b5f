"""Judge result rows and the five gates BM1 to BM5: value, limit, and pass, fail or not measured.

  BM1  the router pass is cheaper than the verify it runs ahead of
  BM2  a block's prefetches fit the hide window only when issued as a batch
  BM3  a priority band for route-ahead lowers exposed fetch, keeps tokens/s, leaves on-demand fastest
  BM4  the bytes that moved fit draft + router + overlapped verify
  BM5  another way of issuing changes nothing but tokens/s

Without ROWS the rows and figures published by the public experiment are judged. With ROWS only the files that
are given count: a benchmark without a file is "not measured", and its hop is removed.

example:
  hideaway gates rows.json --bm2 bm2.json --bm4 hide-inequality.json --bm4 ranges.csv
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hideaway.console import note, print_json, print_table
from hideaway.options import add_json_option, add_out_option
from hideaway.sim.contract import REQUIRED_BASELINES, load_observations
from hideaway.sim.contract.rows import Row
from hideaway.sim.errors import InputError
from hideaway.sim.files import write_json_atomically
from hideaway.sim.verdicts import (
    CellVerdict,
    GateMeasurements,
    GateReport,
    judge_gates,
    judge_rows,
    read_bm2,
    read_bm3,
    read_bm4,
    read_bm5,
)
from hideaway.sim.verdicts.measurements import Bm4Measurement
from hideaway.sim.verdicts.published import PUBLISHED_BM2, PUBLISHED_BM3, PUBLISHED_BM4, PUBLISHED_ROWS


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `hideaway gates`."""
    parser.add_argument(
        "rows", nargs="*", metavar="ROWS", help="row files, or folders of them (default: published rows)"
    )
    parser.add_argument("--bm2", metavar="FILE", help="BM2 report, medians or samples (JSON)")
    parser.add_argument("--bm3", metavar="FILE", help="BM3 report, medians, samples or verdict (JSON)")
    parser.add_argument(
        "--bm4",
        metavar="FILE",
        action="append",
        help="capture, overlap report or terms (JSON), range or copy table (CSV); repeat to add absent terms",
    )
    parser.add_argument("--bm5", metavar="FILE", help="python_row and cpp_row to compare (JSON)")
    parser.add_argument(
        "--allow-blocked",
        action="append",
        default=[],
        choices=REQUIRED_BASELINES,
        metavar="BASELINE",
        help="a baseline that may have a status instead of metrics; repeat for more",
    )
    add_json_option(parser)
    add_out_option(parser, "also write the JSON report to this file")


def run(arguments: argparse.Namespace) -> int:
    """Judge and print; the exit code is 0 whatever the verdicts are."""
    is_published = not arguments.rows
    row_files = _row_files(arguments.rows or [str(PUBLISHED_ROWS)])
    rows_by_file = {path: _load_rows(path) for path in row_files}
    files = _benchmark_files(arguments, is_published)
    cells = [
        cell
        for path, rows in rows_by_file.items()
        for cell in judge_rows(rows, path.name, arguments.allow_blocked)
    ]
    report = judge_gates(_measurements([row for rows in rows_by_file.values() for row in rows], files))
    document = _document(rows_by_file, files, cells, report)
    if arguments.out:
        write_json_atomically(arguments.out, document)
        note(f"wrote {arguments.out}")
    if arguments.json:
        print_json(document)
    else:
        _print_inputs(is_published, document["inputs"])
        _print_tables(cells, report)
    return 0


def _benchmark_files(arguments: argparse.Namespace, is_published: bool) -> dict[str, Any]:
    """Return the benchmark files by name: those given, else the published ones if their rows are judged."""
    files: dict[str, Any] = {"bm2": None, "bm3": None, "bm4": [], "bm5": None}
    if is_published:
        files |= {
            "bm2": str(PUBLISHED_BM2),
            "bm3": str(PUBLISHED_BM3),
            "bm4": [str(path) for path in PUBLISHED_BM4],
        }
    given = {name: getattr(arguments, name) for name in files}
    return files | {name: value for name, value in given.items() if value is not None}


def _row_files(names: Sequence[str]) -> list[Path]:
    """Return the row files named, folders replaced by the JSON files in them."""
    found: list[Path] = []
    for name in names:
        path = Path(name)
        if not os.path.exists(name):  # unlike Path.exists, also false for a name that is too long
            raise InputError(f"cannot read row file {name!r}: it does not exist; check the path")
        inside = sorted(path.glob("*.json")) if os.path.isdir(name) else [path]
        if not inside:
            raise InputError(f"the folder {name!r} holds no .json file; name row files or a folder of them")
        found += inside
    return found


def _load_rows(path: Path) -> list[Row]:
    rows = load_observations(path)
    if not rows:
        raise InputError(f"row file {str(path)!r} holds no rows; give a file with at least one")
    return rows


def _measurements(rows: list[Row], files: dict[str, Any]) -> GateMeasurements:
    return GateMeasurements(
        rows=tuple(rows),
        bm2=None if files["bm2"] is None else read_bm2(files["bm2"]),
        bm3=None if files["bm3"] is None else read_bm3(files["bm3"]),
        bm4=_merged([read_bm4(path) for path in files["bm4"]]),
        bm5=None if files["bm5"] is None else read_bm5(files["bm5"]),
    )


def _merged(captures: Sequence[Bm4Measurement]) -> Bm4Measurement | None:
    """Return one measurement: the first file's terms, what it lacks from the next ones in order."""
    merged: Bm4Measurement | None = None
    for capture in captures:
        merged = capture if merged is None else merged.filled_from(capture)
    return merged


def _document(
    rows_by_file: dict[Path, list[Row]],
    files: dict[str, Any],
    cells: Sequence[CellVerdict],
    report: GateReport,
) -> dict[str, Any]:
    return {
        "format": "hideaway-gates",
        "version": 1,
        "inputs": {"rows": [str(path) for path in rows_by_file], **files},
        "cells": [cell.to_dict() for cell in cells],
        "gates": [verdict.to_dict() for verdict in report.verdicts],
        "hops": {name: dict(verdict) for name, verdict in report.hops.items()},
    }


def _print_inputs(is_published: bool, inputs: dict[str, Any]) -> None:
    if is_published:
        note("judging the rows and figures of the public experiment; name row files to judge your own")
    for name, given in inputs.items():
        names = given if isinstance(given, list) else [given]
        note(f"{name}: {', '.join(Path(path).name for path in names if path) or 'no file'}")


def _print_tables(cells: Sequence[CellVerdict], report: GateReport) -> None:
    print_table(
        ["gate", "verdict", "value", "limit", "unit", "reason"],
        [
            [
                verdict.gate,
                verdict.outcome,
                _figure(verdict.value),
                _figure(verdict.limit),
                verdict.unit,
                verdict.reason,
            ]
            for verdict in report.verdicts
        ],
        title="Gates",
    )
    print_table(
        ["hop", "verdict", "reason"],
        [[name, "keep" if hop["keep"] else "remove", hop["reason"]] for name, hop in report.hops.items()],
        title="\nHops",
    )
    print_table(
        [
            "file",
            "model",
            "block size",
            "concurrency",
            "repeat",
            "complete",
            "present",
            "missing",
            "blocked",
            "malformed",
        ],
        [
            [
                cell.source,
                cell.model,
                cell.block_size,
                cell.concurrency,
                cell.repeat,
                "yes" if cell.complete else "no",
            ]
            + [" ".join(names) for names in (cell.present, cell.missing, cell.blocked, cell.invalid)]
            for cell in cells
        ],
        title="\nCells",
    )
    for cell in cells:
        for warning in cell.warnings:
            note(f"{cell.source}: {warning}")


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
