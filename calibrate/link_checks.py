"""What the simulator's link makes of the measured transfers: many at once, in chunks, batches and streams.

Not fitted: the copies alone are. `hideaway.sim.world.copies` is asked with the calibrated costs, and what it says is
laid beside the measured time from the call to the last arrival.
"""

from __future__ import annotations

from hideaway.calibrate.checks import Check
from hideaway.calibrate.series import number
from hideaway.sim.commands import Band
from hideaway.sim.costs import LinkCosts
from hideaway.sim.inputs.measurements import MeasurementFile
from hideaway.sim.inputs.profiles import Profile
from hideaway.sim.world.copies import CopyEngine, LinkOptions
from hideaway.sim.world.link import Link

TRANSFERS = "transfers, whole"


def link_checks(file: MeasurementFile, profile: Profile) -> tuple[Check, ...]:
    """Return measured and simulated seconds of every point of the link."""
    value = profile.value
    costs = LinkCosts(
        issue_seconds=value("issue.seconds_per_call"),
        batch_seconds=value("issue.batch_seconds"),
        batch_transfer_seconds=value("issue.batch_seconds_per_transfer"),
        latency_seconds=value("link.latency_seconds"),
        bytes_per_second=value("link.h2d_bytes_per_second"),
        holds_issue_thread=False,
    )
    found = []
    for series in file.series("link"):
        options = LinkOptions(
            bool(series.axes.get("batched")),
            int(number(series, "submitted_depth", 2)),
            int(number(series, "chunk_bytes")),
            int(number(series, "streams", 1)),
        )
        size, count = int(number(series, "transfer_bytes", 1)), int(number(series, "transfers", 1))
        link = Link(CopyEngine(costs, size, options), options)
        link.submit(0, (1 << count) - 1, Band.ON_DEMAND, 0.0)
        link.advance(float("inf"))
        found.append(Check.of(TRANSFERS, series, link.copies.free_at))
    return tuple(found)
