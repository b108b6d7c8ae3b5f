"""The host: routed ids to the host and the scheduler's answer; what passes between two forwards."""

from __future__ import annotations

from hideaway.calibrate.dense_points import TYPICAL_ROWS
from hideaway.calibrate.family import Family
from hideaway.calibrate.series import number, point
from hideaway.calibrate.work import Unknown, Work
from hideaway.sim.inputs.measurements import MeasurementFile

IDS, ANSWER, BETWEEN_FORWARDS = "routed ids", "scheduler's answer", "between forwards"
ROUND_TRIP, ITERATION = "host.round_trip_seconds", "host.iteration_seconds"


def host_family(file: MeasurementFile) -> Family | None:
    """Return the family of the host's own time, None where none was measured."""
    data = []
    for series in file.series("visit_ends", part="ids"):
        rows = number(series, "rows")
        data.append(point(IDS, series, Work({"ids.visit": 1.0, "ids.row": rows}), {"rows": rows}))
    for curve, quantity, unknown in (
        (ANSWER, "answer", "answer"),
        (BETWEEN_FORWARDS, "between_forwards", "between.forwards"),
    ):
        for series in file.series("scheduling", quantity):
            rows = number(series, "concurrency") * number(series, "block_size")
            data.append(point(curve, series, Work({unknown: 1.0}), {"rows": rows}))
    measured = {datum.curve for datum in data}
    outputs: dict[str, dict[str, float]] = {}
    remarks = {}
    if measured & {IDS, ANSWER}:
        outputs[ROUND_TRIP] = {"ids.visit": 1.0, "ids.row": TYPICAL_ROWS, "answer": 1.0}
        missing = [name for name in (IDS, ANSWER) if name not in measured]
        remarks[ROUND_TRIP] = f"{IDS} at {TYPICAL_ROWS:g} rows and the {ANSWER}" + (
            f", without {' and '.join(missing)}, not measured" if missing else ""
        )
    if BETWEEN_FORWARDS in measured:
        outputs[ITERATION] = {"between.forwards": 1.0}
    if not outputs:
        return None
    return Family(
        name="host",
        data=tuple(data),
        unknowns=tuple(Unknown(name) for name in ("ids.visit", "answer", "between.forwards", "ids.row")),
        outputs=outputs,
        remarks=remarks,
        forms={IDS: "rows", ANSWER: "level", BETWEEN_FORWARDS: "level"},
    )
