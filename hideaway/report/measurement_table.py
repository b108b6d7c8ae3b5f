"""A measurement as a table: one line a benchmark and quantity."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence

from hideaway.hw.microbenchmarks.stopping import relative_half_width
from hideaway.sim.inputs.measurements import Measurement, MeasurementFile
from hideaway.sim.units import GB, MICROSECOND, MILLISECOND

COLUMNS = (
    "benchmark",
    "quantity",
    "points",
    "median",
    "GB/s",
    "GFLOP/s",
    "worst ±",
    "samples",
    "disturbed",
    "stopped",
)
_GIGA = 1e9


def measurement_rows(file: MeasurementFile) -> list[tuple[str, ...]]:
    """Return a row for each benchmark and quantity: medians, rates, the widest interval, why sampling ended.

    "worst ±" is half the 95 % interval of the median over the median, of the point where that is largest.
    """
    groups: dict[tuple[str, str], list[Measurement]] = {}
    for series in file.measurements:
        groups.setdefault((series.benchmark, series.quantity), []).append(series)
    return [_row(*key, group) for key, group in groups.items()]


def time_text(seconds: float) -> str:
    """Return a time with three digits and a unit that suits it."""
    for limit, unit, name in ((1e-6, 1e-9, "ns"), (1e-3, MICROSECOND, "us"), (1.0, MILLISECOND, "ms")):
        if seconds < limit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds:.3g} s"


def _row(benchmark: str, quantity: str, group: Sequence[Measurement]) -> tuple[str, ...]:
    medians = [statistics.median(series.samples_seconds) for series in group]
    bandwidths = [
        series.bytes / median / GB for series, median in zip(group, medians, strict=True) if series.bytes
    ]
    rates = [
        series.flops / median / _GIGA for series, median in zip(group, medians, strict=True) if series.flops
    ]
    widths = [relative_half_width(series.samples_seconds) for series in group]
    known = [width for width in widths if width is not None]
    worst = "too few" if len(known) < len(widths) else f"{100 * max(known):.1f} %"
    reasons = Counter(series.stop_reason for series in group)
    return (
        benchmark,
        quantity,
        str(len(group)),
        _range([time_text(min(medians)), time_text(max(medians))]),
        _range([f"{value:.3g}" for value in (min(bandwidths), max(bandwidths))]) if bandwidths else "",
        _range([f"{value:.3g}" for value in (min(rates), max(rates))]) if rates else "",
        worst,
        _range([str(count(len(series.samples_seconds) for series in group)) for count in (min, max)]),
        str(sum(series.num_disturbed for series in group)),
        ", ".join(f"{count} {reason}" for reason, count in reasons.items()),
    )


def _range(ends: list[str]) -> str:
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)
