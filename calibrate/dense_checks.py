"""Whole dense visits and route passes: made of parts that were fitted, and foretold by them."""

from __future__ import annotations

from collections.abc import Collection

from hideaway.calibrate.dense_points import (
    CONTEXT,
    FLOPS,
    ROUTER_LAUNCH,
    amounts,
    attention_parts,
    attention_work,
    roof,
    rows_of,
    stored_share,
)
from hideaway.calibrate.series import number, point
from hideaway.calibrate.work import Datum, Roofline, Work
from hideaway.sim.inputs.measurements import MeasurementFile
from hideaway.sim.inputs.profiles import DENSE_READ

DENSE, ROUTE = "dense part of a visit", "route pass"


def dense_checks(file: MeasurementFile, extras: Collection[str]) -> tuple[Datum, ...]:
    """Return the points.

    Parameters
    ----------
    extras : collection of str
        Those of the family whose unknowns foretell them.
    """
    router = _router_share(file)
    found = []
    if router is not None and file.series("attention"):
        for series in file.series("dense"):
            parts = attention_parts(file, series)
            of_router = router[0], parts["rows"] * router[1]
            attention = attention_work(parts, apart=CONTEXT in extras, less=of_router)
            work = Work({**attention.linear, ROUTER_LAUNCH: 1.0}, (*attention.rooflines, roof(*of_router)))
            found.append(point(DENSE, series, work, parts))
    for series in file.series("route"):
        size, flops = amounts(series, stored_share(file))
        layers = number(series, "layers", 1.0)
        each = Roofline(layers, size / layers, DENSE_READ, flops / layers, FLOPS)
        work = Work({ROUTER_LAUNCH: layers}, (each,))
        found.append(point(ROUTE, series, work, {"rows": rows_of(series), "bytes": size}))
    return tuple(found)


def _router_share(file: MeasurementFile) -> tuple[float, float] | None:
    """Return the bytes of a layer's router, as counted, and its operations for one row."""
    for series in file.series("router"):
        count = number(series, "routers", 1.0)
        size, flops = amounts(series, stored_share(file))
        return size / count, flops / count / max(1.0, number(series, "rows", 1.0))
    return None
