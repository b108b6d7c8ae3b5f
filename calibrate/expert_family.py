"""Routed experts: group + experts · (launch + bytes / read rate) + pairs · (operations / expert rate).

With one format and shape every expert has the same bytes, so that its launch and its read can only be told apart by
the bare read of memory, which is fitted along with them.
"""

from __future__ import annotations

from collections.abc import Iterator

from hideaway.calibrate.family import Family
from hideaway.calibrate.series import number, point, rate_limits, single
from hideaway.calibrate.work import INVERSE_RATE, Datum, Unknown, Work
from hideaway.sim.inputs.measurements import Measurement, MeasurementFile

EXPERTS, ARRIVAL, READ = "experts", "expert on arrival", "memory read"
_READ, _FLOPS = "memory.read_bytes_per_second", "compute.expert_flops_per_second"
_GROUP, _LAUNCH = "expert.group_launch_seconds", "expert.launch_seconds"


def expert_family(file: MeasurementFile) -> Family | None:
    """Return the family of the experts and the bare read, None where neither was measured."""
    data = tuple(_points(file))
    if not data:
        return None
    measured = {datum.curve for datum in data}
    outputs: dict[str, dict[str, float]] = {}
    if measured & {EXPERTS, ARRIVAL}:
        outputs |= single((_READ, _FLOPS, _GROUP, _LAUNCH))
    if READ in measured:
        outputs |= single((_READ,))
        if on_host(file):
            outputs["host.memory_bytes_per_second"] = {_READ: 1.0}
    remarks = {_LAUNCH: "fixed part of an expert beyond its bytes at memory.read_bytes_per_second"}
    if READ not in measured:
        remarks[_LAUNCH] = "not told apart from the read of an expert's bytes, which holds it"
    return Family(
        name="experts",
        data=data,
        unknowns=(
            Unknown(_READ, INVERSE_RATE, *rate_limits(_READ)),
            Unknown(_FLOPS, INVERSE_RATE, *rate_limits(_FLOPS)),
            Unknown(_GROUP),
            Unknown(_LAUNCH),
        ),
        outputs=outputs,
        remarks=remarks,
        forms={EXPERTS: "experts", ARRIVAL: "experts", READ: "level"},
    )


def on_host(file: MeasurementFile) -> bool:
    """Return whether the host's processors compute, so that what is read is host memory."""
    return file.environment.get("cuda") is None and "cuda" not in str(
        file.environment.get("link", {}).get("kind", "")
    )


def _points(file: MeasurementFile) -> Iterator[Datum]:
    for series in file.series("experts"):
        yield _expert(EXPERTS, series, number(series, "experts"), number(series, "rows_each"))
    for series in file.series("arrival"):
        yield _expert(ARRIVAL, series, 1.0, number(series, "rows"))
    for series in file.series("memory", call="read"):
        size = float(series.bytes or 0)
        yield point(READ, series, Work({_READ: size}), {"bytes": size})


def _expert(curve: str, series: Measurement, experts: float, rows: float) -> Datum:
    size, flops = float(series.bytes or 0), float(series.flops or 0)
    linear = {_GROUP: 1.0, _LAUNCH: experts, _READ: size, _FLOPS: flops}
    features = {"experts": experts, "rows": rows, "bytes": size, "flops": flops}
    return point(curve, series, Work(linear), features)
