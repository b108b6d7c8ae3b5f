"""What a benchmark is: axes, bytes and operations it declares, and an operation that the harness times.

A benchmark has no loop, no clock and prints nothing; all of that is `session.py`'s.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from hideaway.sim.inputs.measurements import ELAPSED, AxisValue

if TYPE_CHECKING:
    from hideaway.hw.microbenchmarks.rig import Rig
    from hideaway.hw.microbenchmarks.subject import Subject

Axes = Mapping[str, AxisValue]
Readings = Mapping[str, Sequence[float]]
"""Seconds by quantity, of what an operation timed itself (copies on the device's clock, say)."""

Activity = Literal["computes", "waits"]
"""What the calling thread does meanwhile. Only one that computes throughout can be told to have been disturbed."""

COLD_CACHES = 2
"""Memory that is read again after so many times the last-level cache has left it (each line is replaced about once)."""


def nothing() -> None:
    """Do nothing."""


def no_flaw() -> None:
    """Return None: every sample counts."""


def no_readings() -> Readings:
    """Return no readings."""
    return {}


@dataclass(slots=True)
class Operation:
    """One point, ready to be timed again and again.

    Parameters
    ----------
    run : callable
        What is timed.
    set_up, settle : callable
        Before and after it, untimed; after `settle` nothing of the operation is under way.
    flaw : callable
        Asked right after `run`: why this sample does not count, None where it does.
    readings : callable
        Asked after `settle`: what the operation timed itself, by quantity.
    reading_bytes : mapping
        Bytes of one reading of a quantity, where it moves any.
    activity : {"computes", "waits"}
        What the calling thread does during `run`.
    cycle_bytes : int or None
        Bytes read before the same bytes are read again; the harness empties the cache, before `set_up`, where that is
        too few to leave it. None where the memory is to be as it is.
    operations_per_sample : int
        Repetitions within `run`; a sample is their mean.
    primary : str
        The quantity whose spread decides when to stop. Where it is a reading, the time of `run` is not kept.
    close : callable
        Gives back what the point alone holds.
    """

    run: Callable[[], object]
    set_up: Callable[[], object] = nothing
    settle: Callable[[], object] = nothing
    flaw: Callable[[], str | None] = no_flaw
    readings: Callable[[], Readings] = no_readings
    reading_bytes: Mapping[str, int] = field(default_factory=dict)
    activity: Activity = "computes"
    cycle_bytes: int | None = None
    operations_per_sample: int = 1
    primary: str = ELAPSED
    close: Callable[[], object] = nothing


class Benchmark(ABC):
    """A family of points.

    Parameters
    ----------
    subject : Subject
        The model and the device that its points are made of.

    Attributes
    ----------
    name : str
        On the command line and in files.
    summary : str
        One line for `--list`.
    informs : tuple of str
        Profile parameters that a fit of it gives.
    axes : mapping of str to str
        What each axis means, with its unit.
    cache : str or None
        State of the memory that is read: "cold", "warm" or "arrived".
    needs_experts : bool
        Whether its points need a store of experts.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    informs: ClassVar[tuple[str, ...]] = ()
    axes: ClassVar[Mapping[str, str]]
    cache: ClassVar[str | None] = "cold"
    needs_experts: ClassVar[bool] = False

    def __init__(self, subject: Subject) -> None:
        self.subject = subject

    @abstractmethod
    def points(self, *, quick: bool) -> list[Axes]:
        """Return the points of a quick or a full measurement; none where the device has no such thing."""

    def bytes(self, axes: Axes) -> int | None:
        """Return the bytes that one operation reads or moves, None where that says nothing."""
        return None

    def flops(self, axes: Axes) -> int | None:
        """Return the floating-point operations of one operation, None where it computes nothing."""
        return None

    @abstractmethod
    def prepare(self, rig: Rig, axes: Axes) -> Operation:
        """Return a point's operation; may allocate."""


def whole(axes: Axes, name: str) -> int:
    """Return the value of an axis that counts something."""
    value = axes[name]
    assert isinstance(value, int)
    return value
