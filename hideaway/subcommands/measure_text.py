"""What `hideaway measure` prints: the plan and its time, the list of benchmarks, the table at the end."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from hideaway.console import note, print_json, print_table
from hideaway.report.measurement_table import COLUMNS, measurement_rows
from hideaway.sim.inputs.measurements import MeasurementFile

if TYPE_CHECKING:
    from hideaway.hw.microbenchmarks.plan import Plan
    from hideaway.hw.microbenchmarks.subject import Subject

_MUCH_DISTURBED = 0.2
_SHOWN_FACTS = (
    "device", "driver", "clocks_mhz", "threads", "openmp_wait_policy", "expert_kernel", "link", "model", "layers",
    "preparing_seconds", "measured_seconds", "load_average_before", "load_average_after",
)  # fmt: skip


def announce(arguments: argparse.Namespace, subject: Subject, plan: Plan) -> None:
    """Say what will be measured and how long that takes."""
    from hideaway.hw.engine.store_cache import store_path, synthetic_source
    from hideaway.hw.microbenchmarks.plan import opening_seconds

    needed = any(point.benchmark.needs_experts for point in plan.points)
    there = arguments.store is not None or not needed
    there = (
        there
        or store_path(synthetic_source(arguments.shape, subject.num_layers, arguments.expert_format)).exists()
    )
    opening, sampling = opening_seconds(subject, store_is_there=there), plan.sampling_seconds()
    note(
        f"{len(plan.points)} points of {len(plan.benchmark_names)} benchmarks: about {opening:.0f} s to prepare and "
        f"{min(sampling, plan.seconds):.0f} s to sample, at most {plan.seconds:.0f} s in all"
    )


def list_benchmarks(plan: Plan, *, as_json: bool) -> None:
    """Print every benchmark of a plan with its axes and points."""
    counts = {name: 0 for name in plan.benchmark_names}
    for point in plan.points:
        counts[point.benchmark.name] += 1
    benchmarks = {point.benchmark.name: point.benchmark for point in plan.points}
    if as_json:
        listed = [
            {
                "benchmark": name,
                "summary": benchmark.summary,
                "axes": dict(benchmark.axes),
                "informs": list(benchmark.informs),
                "points": [dict(point.axes) for point in plan.points if point.benchmark.name == name],
            }
            for name, benchmark in benchmarks.items()
        ]
        print_json({"benchmarks": listed})
        return
    rows = [
        (name, counts[name], benchmark.summary, ", ".join(benchmark.informs))
        for name, benchmark in benchmarks.items()
    ]
    print_table(("benchmark", "points", "what is timed", "informs"), rows)
    axes = [
        (name, axis, meaning)
        for name, benchmark in benchmarks.items()
        for axis, meaning in benchmark.axes.items()
    ]
    print_table(("benchmark", "axis", "meaning"), axes, title="axes")


def print_measurement(file: MeasurementFile) -> None:
    """Print where it was made and a table of its series."""
    environment = file.environment
    print_table(
        ("fact", "value"),
        [(name, _text(environment.get(name))) for name in _SHOWN_FACTS],
        title="environment",
    )
    print_table(COLUMNS, measurement_rows(file), title="medians, least to largest over the points")
    if file.disturbed_share > _MUCH_DISTURBED:
        note(
            f"note: something else had the processor in {100 * file.disturbed_share:.0f} % of the samples; "
            "measure again when the machine is idle"
        )
    for warning in environment.get("warnings", ()):
        note(f"note: {warning}")


def _text(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, dict):
        return ", ".join(f"{name} {member}" for name, member in value.items())
    if isinstance(value, list):
        return ", ".join(str(member) for member in value)
    return str(value)
