"""The link: fixed and per-byte cost of a copy, pinned, pageable or from a disk; what asking for copies costs.

The cost model has latency + bytes / bandwidth from one copy to the next; between two copies the link is idle for a
moment (`gap`), which is part of that latency. Only points with one stream are fitted: with several, copies share the
link, and what the simulator makes of that is checked (`link_checks.py`), not fitted.
"""

from __future__ import annotations

from collections.abc import Iterator

from hideaway.calibrate.family import Family
from hideaway.calibrate.series import number, point, rate_limits, single
from hideaway.calibrate.work import INVERSE_RATE, Datum, Unknown, Work
from hideaway.sim.inputs.measurements import MeasurementFile

COPY, GAP, PAGEABLE = "link copy", "link gap", "pageable copy"
ONE_BY_ONE, BATCH = "issue one by one", "issue as a batch"
_BYTES, _PAGEABLE_BYTES = "link.h2d_bytes_per_second", "link.pageable_bytes_per_second"
_FIXED, _GAP, _PAGEABLE_ISSUE = "copy.fixed", "copy.gap", "link.pageable_issue_seconds"


def link_family(file: MeasurementFile) -> Family | None:
    """Return the family of the copies, None where none was measured."""
    data = tuple(_copies(file))
    if not data:
        return None
    kind = str(file.environment.get("link", {}).get("kind", ""))
    outputs = {
        _BYTES: {_BYTES: 1.0},
        "link.latency_seconds": {_FIXED: 1.0, _GAP: 1.0},
    }
    if any(datum.curve == PAGEABLE for datum in data):
        outputs |= single((_PAGEABLE_BYTES, _PAGEABLE_ISSUE))
    remarks = {"link.latency_seconds": "fixed part of a copy and the link's idle time between two"}
    if kind == "disk":
        outputs["ssd.read_bytes_per_second"] = {_BYTES: 1.0}
        outputs["ssd.latency_seconds"] = {_FIXED: 1.0}
        remarks["ssd.latency_seconds"] = "fixed part of a copy; this device's link is the disk itself"
    return Family(
        name="link",
        data=data,
        unknowns=(
            Unknown(_BYTES, INVERSE_RATE, *rate_limits(_BYTES)),
            Unknown(_PAGEABLE_BYTES, INVERSE_RATE, *rate_limits(_PAGEABLE_BYTES)),
            Unknown(_FIXED),
            Unknown(_GAP),
            Unknown(_PAGEABLE_ISSUE),
        ),
        outputs=outputs,
        remarks=remarks,
        forms={COPY: "sized", PAGEABLE: "sized", GAP: "level"},
    )


def issue_family(file: MeasurementFile) -> Family | None:
    """Return the family of the calls that ask for copies, None where none was measured."""
    names = ("issue.seconds_per_call", "issue.batch_seconds_per_transfer", "issue.batch_seconds")
    data = []
    for series in file.series("issue"):
        count = number(series, "transfers")
        batched = bool(series.axes.get("batched"))
        linear = {names[1]: count, names[2]: 1.0} if batched else {names[0]: count}
        curve = BATCH if batched else ONE_BY_ONE
        data.append(point(curve, series, Work(linear), {"transfers": count}))
    if not data:
        return None
    return Family(
        name="issue",
        data=tuple(data),
        unknowns=tuple(Unknown(name) for name in names),
        outputs=single(names),
        forms={ONE_BY_ONE: "counted", BATCH: "batch"},
    )


def _copies(file: MeasurementFile) -> Iterator[Datum]:
    engine = [series for series in file.series("link", "copy", streams=1) if series.bytes]
    bare = file.series("cuda_copy", "device", direction="to_device", memory="pinned", transfers=1)
    for series in engine or bare:
        size = float(series.bytes or 0)
        yield point(COPY, series, Work({_BYTES: size, _FIXED: 1.0}), {"bytes": size})
    for series in file.series("link", "gap", streams=1):
        yield point(GAP, series, Work({_GAP: 1.0}), {"bytes": number(series, "transfer_bytes")})
    for series in file.series("cuda_copy", direction="to_device", memory="pageable", transfers=1):
        size = float(series.bytes or 0)
        linear = {_PAGEABLE_BYTES: size, _FIXED: 1.0, _PAGEABLE_ISSUE: 1.0}
        yield point(PAGEABLE, series, Work(linear), {"bytes": size})
