"""When does each expert arrive? Times from a serial issue thread and a first-in first-out link.

Times are seconds from the instant at which prefetch starts. The exposed time that follows from the arrivals
is in `hideaway.sim.hide.staggered`; arrivals that must wait for a free slot are in
`hideaway.sim.hide.slots`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from hideaway.sim.errors import InputError
from hideaway.sim.hide.checks import FloatArray, as_floats, as_positive, as_scalar, as_vector


def link_seconds(
    num_bytes: npt.ArrayLike, *, h2d_bytes_per_second: npt.ArrayLike, latency_seconds: npt.ArrayLike = 0.0
) -> FloatArray:
    """Return the time a copy holds the link: latency + bytes/BW, element by element."""
    bandwidth = as_positive("h2d_bytes_per_second", h2d_bytes_per_second)
    return np.asarray(
        as_floats("latency_seconds", latency_seconds) + as_floats("num_bytes", num_bytes) / bandwidth
    )


def link_arrival_seconds(
    issue_seconds: npt.ArrayLike,
    copy_seconds: npt.ArrayLike,
    *,
    pipelined_issue: bool = True,
    start_seconds: float = 0.0,
) -> FloatArray:
    """Return the arrival time of each of N transfers (N,), in the order in which they were issued.

    The host issues one transfer after another: s_n = s_{n-1} + issue_n. The link carries them one after
    another, and can start the n-th when it has been issued and the one before has arrived:

        r_n = max(s_n, r_{n-1}) + copy_n

    With `pipelined_issue=False` the host issues the next transfer only when the last has arrived (a blocking
    copy), and r is the running sum of issue + copy. A pipelined arrival is never later than a blocking one.

    Parameters
    ----------
    issue_seconds
        (N,) host time of each issue call. One batched call that submits all of them is
        [batch time, 0, 0, ...]: nothing starts before the batch has been issued.
    copy_seconds
        (N,) time each copy holds the link, latency + bytes/BW.
    start_seconds
        When the first issue begins.
    """
    issues = as_vector("issue_seconds", issue_seconds)
    copies = as_vector("copy_seconds", copy_seconds)
    if len(issues) != len(copies):
        raise InputError(
            f"issue_seconds has {len(issues)} transfers but copy_seconds has {len(copies)}; give equal lists"
        )
    issued = arrived = as_scalar("start_seconds", start_seconds)
    arrivals: list[float] = []
    for issue, copy in zip(issues.tolist(), copies.tolist(), strict=True):
        issued = (issued if pipelined_issue else arrived) + issue
        arrived = max(issued, arrived) + copy
        arrivals.append(arrived)
    return np.array(arrivals, dtype=np.float64)


def split_by_layer(values: npt.ArrayLike, num_missing: Sequence[int]) -> list[FloatArray]:
    """Return `values` (N,) cut into one array a layer, in order; layer l gets `num_missing[l]` of them."""
    flat = np.asarray(values, dtype=np.float64)
    bounds = [0, *np.cumsum(np.asarray(num_missing, dtype=np.int64)).tolist()]
    if flat.ndim != 1 or min(num_missing, default=0) < 0 or bounds[-1] != flat.size:
        raise InputError(
            f"num_missing adds up to {bounds[-1]} but there are {flat.size} values; give one value a miss"
        )
    return [flat[first:last] for first, last in pairwise(bounds)]


def spread_over_layers(total: float, num_layers: int) -> npt.NDArray[np.int64]:
    """Return whole numbers (num_layers,) as equal as can be, adding up to `total` rounded to the nearest.

    A mean number of misses need not be whole; layer l gets round((l+1)·m) - round(l·m), m = total/num_layers.
    """
    if num_layers < 1:
        raise InputError(f"num_layers is {num_layers}; give at least one layer")
    whole = round(as_scalar("total", total))
    edges = (np.arange(num_layers + 1, dtype=np.int64) * whole + num_layers // 2) // num_layers
    return np.diff(edges)
