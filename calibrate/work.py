"""What one measured operation consists of, in the cost model's own terms: launches, reads and computation.

A `Work` says which unknowns an operation pays for and how often; `design.py` puts the works of a family together and
turns unknowns into seconds. The form is that of `hideaway.sim.costs`: launches + max(bytes / bandwidth, flops / rate).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field

from hideaway.sim.inputs.measurements import AxisValue

SECONDS = "seconds"
INVERSE_RATE = "inverse rate"
SHARE = "share"


@dataclass(frozen=True, slots=True)
class Unknown:
    """One number that a fit finds.

    Rates are fitted as seconds per byte or per operation, in which every cost is linear.

    Parameters
    ----------
    name : str
        Of the parameter, or of a part of one.
    kind : {"seconds", "inverse rate", "share"}
        What it is.
    lower, upper : float
        Physical limits, in the unit of `kind`.
    """

    name: str
    kind: str = SECONDS
    lower: float = 0.0
    upper: float = math.inf


@dataclass(frozen=True, slots=True)
class Roofline:
    """`count` times the greater of reading and computing (Williams, Waterman and Patterson, CACM 52(4), 2009)."""

    count: float
    num_bytes: float
    bytes_unknown: str
    flops: float
    flops_unknown: str


@dataclass(frozen=True, slots=True)
class Work:
    """Seconds = constant + sum(times · unknown) + rooflines."""

    linear: Mapping[str, float]
    rooflines: tuple[Roofline, ...] = ()
    constant: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Datum:
    """One measured point of a curve.

    Parameters
    ----------
    curve : str
        What was measured, as reports name it.
    axes : mapping
        The point.
    samples : tuple of float
        Seconds; with `reference`, what is fitted is the ratio of the two medians.
    started : tuple of float
        When the samples began; empty where it was not recorded.
    features : mapping
        What the point does in plain numbers (bytes, flops, rows …); the forms that compete for a curve use them.
    """

    curve: str
    axes: Mapping[str, AxisValue]
    samples: tuple[float, ...]
    work: Work
    features: Mapping[str, float]
    started: tuple[float, ...] = ()
    reference: tuple[float, ...] = field(default=())

    @property
    def observed(self) -> float:
        """The median of the samples, or the ratio of two medians."""
        median = statistics.median(self.samples)
        return median / statistics.median(self.reference) if self.reference else median
