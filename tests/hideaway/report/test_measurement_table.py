"""The table of a measurement: medians with units that suit, rates, widths, and what was disturbed."""

from __future__ import annotations

import pytest

from hideaway.report.measurement_table import COLUMNS, measurement_rows, time_text
from hideaway.sim.inputs.measurements import Discarded, Measurement, MeasurementFile


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(8.51e-8, "85.1 ns"), (1.234e-5, "12.3 us"), (0.00150, "1.5 ms"), (2.5, "2.5 s")],
)
def test_times_have_three_digits_and_a_unit(seconds, text) -> None:
    assert time_text(seconds) == text


def series(rows, seconds, **fields) -> Measurement:
    values = {"stop_reason": "converged", "bytes": 10**6, "flops": 2 * 10**6, **fields}
    return Measurement(benchmark="experts", axes={"rows": rows}, samples_seconds=(seconds,) * 8, **values)


def test_a_line_holds_the_range_over_the_points_of_a_benchmark() -> None:
    disturbed = (Discarded(0.1, 0.0, "preempted"), Discarded(0.1, 0.0, "warm-up"))
    points = (
        series(1, 0.001, discarded=2, discarded_samples=disturbed),
        series(2, 0.002, stop_reason="time budget"),
    )
    copies = Measurement(
        benchmark="link", quantity="copy", axes={}, samples_seconds=(1.0,), stop_reason="time budget"
    )
    first, second = measurement_rows(MeasurementFile({}, (*points, copies)))
    line = dict(zip(COLUMNS, first, strict=True))
    assert line == {
        "benchmark": "experts",
        "quantity": "elapsed",
        "points": "2",
        "median": "1 ms to 2 ms",
        "GB/s": "0.5 to 1",
        "GFLOP/s": "1 to 2",
        "worst ±": "0.0 %",
        "samples": "8",
        "disturbed": "1",
        "stopped": "1 converged, 1 time budget",
    }
    line = dict(zip(COLUMNS, second, strict=True))
    assert (line["quantity"], line["GB/s"], line["GFLOP/s"], line["worst ±"]) == ("copy", "", "", "too few")
