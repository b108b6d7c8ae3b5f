"""Contention: how much a busy link slows compute, and busy compute the copies, as ratios of medians.

All copies beside compute are compared with the same copies alone, so that their ratios are not independent.
"""

from __future__ import annotations

from hideaway.calibrate.family import Family
from hideaway.calibrate.series import point, single
from hideaway.calibrate.work import Datum, Unknown, Work
from hideaway.sim.inputs.measurements import MeasurementFile
from hideaway.sim.inputs.profiles import PARAMETERS

BESIDE_LINK, BESIDE_COMPUTE = "compute beside the link", "copies beside compute"
COMPUTE_SLOWDOWN, LINK_SLOWDOWN = "contention.compute_slowdown", "contention.link_slowdown"


def contention_family(file: MeasurementFile) -> Family | None:
    """Return the family of the slowdowns, None where no pair was measured."""
    data: list[Datum] = []
    for busy in file.series("contention", link="busy"):
        compute = busy.axes["compute"]
        idle = file.series("contention", compute=compute, link="idle")
        if idle:
            work = Work({COMPUTE_SLOWDOWN: 1.0}, constant=1.0)
            data.append(point(BESIDE_LINK, busy, work, {"pair": float(len(data))}, idle[0]))
    alone = file.series("contention", "copy", compute="none")
    for busy in file.series("contention", "copy", link="busy"):
        if busy.axes["compute"] != "none" and alone:
            work = Work({LINK_SLOWDOWN: 1.0}, constant=1.0)
            data.append(point(BESIDE_COMPUTE, busy, work, {"pair": float(len(data))}, alone[0]))
    measured = {datum.curve for datum in data}
    names = [COMPUTE_SLOWDOWN] if BESIDE_LINK in measured else []
    names += [LINK_SLOWDOWN] if BESIDE_COMPUTE in measured else []
    if not names:
        return None
    return Family(
        name="contention",
        data=tuple(data),
        unknowns=tuple(Unknown(name, upper=PARAMETERS[name].maximum) for name in names),
        outputs=single(names),
        forms={BESIDE_LINK: "level", BESIDE_COMPUTE: "level"},
        always_resample=True,
    )
