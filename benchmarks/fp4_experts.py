"""Milliseconds per FP4 expert by rows: our kernel, torch look-ups, bf16 weights, and libraries where installed.

Within a round every way computes once, in turn, on weights that went out of the last-level cache since their last
use; a ratio is the median over rounds of two times of the same round, so that what else the machine does cancels.
`fp4_ways.py` holds the ways.
"""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable

from hideaway.console import note, print_table

ROWS = (1, 4, 16, 64)
SHAPES = (("gpt-oss-20b", "mxfp4"), ("Qwen3-30B-A3B", "mxfp4"), ("Qwen3-30B-A3B", "nvfp4"))
ROUNDS = 31
WAY_SECONDS = 3.0  # a slow way stops taking part once it has spent this and has MIN_ROUNDS samples
MIN_ROUNDS = 5
OURS = "hideaway"


def report() -> None:
    """Print one table per shape and number of threads."""
    if importlib.util.find_spec("torch") is None:
        note("fp4 experts are timed only where torch is installed: pip install 'hideaway[hw]'")
        return
    from hideaway.hw.fp4.cpu_expert import available_threads

    cores = available_threads()
    for model, expert_format in SHAPES:
        for threads in sorted({1, cores}):
            report_shape(model, expert_format, threads)


def report_shape(model: str, expert_format: str, threads: int) -> None:
    """Print the table of one shape."""
    from benchmarks.fp4_ways import Ways

    ways = Ways(model, expert_format, threads)
    lines: dict[str, list[str]] = {}
    for rows in ROWS:
        samples = _rounds(ways.at(rows))
        for name, times in samples.items():
            ours = samples[OURS]
            ratio = statistics.median(
                other / own for other, own in zip(times, ours[: len(times)], strict=True)
            )
            cells = lines.setdefault(name, [name, ways.error(name, rows)])
            cells += [f"{statistics.median(times) * 1e3:.2f}", f"{ratio:.2f}"]
        read = statistics.median(samples["read"]) * 1e-9
        lines["read"][1] = f"{ways.expert_bytes * 1e-18 / read:.1f} GB/s"
    columns = ["way", "error", *(cell for rows in ROWS for cell in (f"{rows} rows", "x ours"))]
    title = f"{model} {expert_format}, {ways.expert_bytes / 1e6:.1f} MB, {threads} threads, ms per expert"
    print_table(columns, list(lines.values()), title=title)
    note("error: largest |difference| to float64 over the largest output, at 64 rows; read: the bytes alone")


def _rounds(ways: dict[str, Callable[[int], object]]) -> dict[str, list[float]]:
    """Return the seconds of each way by round; a way's list ends where it dropped out."""
    samples: dict[str, list[float]] = {name: [] for name in ways}
    for name in ways:
        ways[name](0)
    for number in range(1, ROUNDS + 1):
        for name, run in ways.items():
            times = samples[name]
            if len(times) < number - 1 or (number > MIN_ROUNDS and sum(times) > WAY_SECONDS and name != OURS):
                continue
            start = time.perf_counter()
            run(number)
            times.append(time.perf_counter() - start)
    return samples
