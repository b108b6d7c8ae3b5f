"""Dense work: attention by rows and context, routers, head and drafter; launches + max(bytes / rate, flops / rate).

Bytes are counted as the cost model counts them, in the model's 16-bit format, although the engine that was measured
may hold its dense weights wider: the read rate is then that of 16-bit bytes and by that factor lower than the
memory's, for which the profile has a parameter of its own (`memory.dense_read_bytes_per_second`). What a layer visit
costs beside its matrices (`visit_ends`, `scheduling`) is part of a layer's launch. Next: `dense_points.py`.
"""

from __future__ import annotations

from collections.abc import Collection

from hideaway.calibrate.dense_points import (
    ATTENTION,
    BEGIN,
    BETWEEN_LAYERS,
    CONTEXT,
    DRAFT,
    DRAFT_LAUNCH,
    FLOPS,
    HEAD,
    LAUNCH,
    ROUTER,
    ROUTER_LAUNCH,
    SUM,
    TYPICAL_ROWS,
    dense_points,
    stored_share,
)
from hideaway.calibrate.family import Family
from hideaway.calibrate.series import rate_limits, single
from hideaway.calibrate.work import INVERSE_RATE, SHARE, Unknown
from hideaway.sim.inputs.measurements import MeasurementFile
from hideaway.sim.inputs.profiles import ATTENTION_FLOPS, CACHE_READ, DENSE_READ, SERIAL_SHARE

SERIAL = "serial"
EXTRAS = ((), (SERIAL,), (CONTEXT,), (SERIAL, CONTEXT))
"""What the cost model may have beyond a plain roofline, by optional parameters of a profile; the simplest first."""
LAYER_LAUNCH = "compute.layer_launch_seconds"


def dense_family(file: MeasurementFile, *, extras: Collection[str] = ()) -> Family | None:
    """Return the family of the dense work, None where none was measured.

    Parameters
    ----------
    extras : collection of str
        "serial": a share of the lesser of reading and computing stays unhidden, and is fitted. "context": attention
        reads caches and computes at rates of its own, apart from the weights.
    """
    data = dense_points(file, apart=CONTEXT in extras)
    measured = {datum.curve for datum in data}
    if not measured & {ATTENTION, ROUTER, HEAD, DRAFT}:
        return None
    launch = {
        LAUNCH: 1.0,
        "sum.visit": 1.0,
        "sum.row": TYPICAL_ROWS,
        "begin.layer": 1.0,
        "begin.row": TYPICAL_ROWS,
        "between.layers": 1.0,
    }
    outputs: dict[str, dict[str, float]] = {**single((DENSE_READ, FLOPS))}
    if ATTENTION in measured:
        outputs[LAYER_LAUNCH] = launch
    outputs |= single([ROUTER_LAUNCH] if ROUTER in measured else [])
    outputs |= single([DRAFT_LAUNCH] if DRAFT in measured else [])
    unknowns = [
        Unknown(DENSE_READ, INVERSE_RATE, *rate_limits(DENSE_READ)),
        Unknown(FLOPS, INVERSE_RATE, *rate_limits(FLOPS)),
        *(Unknown(name) for name in (LAUNCH, ROUTER_LAUNCH, DRAFT_LAUNCH)),
        *(Unknown(name) for name in launch if name != LAUNCH),
    ]
    if CONTEXT in extras:
        unknowns += [
            Unknown(name, INVERSE_RATE, *rate_limits(name)) for name in (CACHE_READ, ATTENTION_FLOPS)
        ]
        outputs |= single((CACHE_READ, ATTENTION_FLOPS))
    if SERIAL in extras:
        unknowns.append(Unknown(SERIAL_SHARE, SHARE, 0.0, 1.0))
        outputs |= single((SERIAL_SHARE,))
    scale = stored_share(file)
    held = "" if scale == 1.0 else f"; the engine's are {1 / scale:g} times as wide as counted here"
    return Family(
        name="dense",
        data=data,
        unknowns=tuple(unknowns),
        outputs=outputs,
        remarks={
            DENSE_READ: f"bytes of 16-bit weights and caches{held}",
            CACHE_READ: f"bytes of 16-bit caches{held}",
            LAYER_LAUNCH: "attention's fixed part, the sum of experts' outputs and the grouping of rows at "
            f"{TYPICAL_ROWS:g} rows, and the loop between two layers",
        },
        forms={
            ATTENTION: "attention",
            ROUTER: "roofline",
            HEAD: "roofline",
            DRAFT: "roofline",
            SUM: "rows",
            BEGIN: "rows",
            BETWEEN_LAYERS: "level",
        },
        serial=SERIAL_SHARE if SERIAL in extras else None,
    )
