"""Whether something else had the processor while a sample was taken, as far as the operating system tells.

The scheduler's account of a thread (Linux, `/proc/thread-self/schedstat`) says for how long it was ready but not
running; the processor time of the thread says how much of a sample it computed. Where the system tells nothing,
nothing is discarded and `facts` says so.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

WAITED_SHARE = 0.05
"""Share of a sample spent ready but not running from which it counts as disturbed."""
PREEMPTED_SHARE = 0.02
"""The same where the thread was also taken off the processor in the middle of its work."""
COMPUTED_SHARE = 0.5
"""Least share of a sample that a computing thread is on the processor. It sleeps where its helpers end later."""
STOLEN_SHARE = 0.05
"""Share of a sample that the host may take; it is counted in hundredths of a second, over all processors."""
FREE_SECONDS = 30e-6
"""Waits this short are part of any system call."""
CLOCK_SHARE = 0.9
"""A clock below this share of the highest one seen has dropped."""
_TICKS_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class Reading:
    """What the system had counted for the calling thread at a moment."""

    cpu_seconds: float
    waited_seconds: float
    involuntary_switches: int
    stolen_seconds: float


class Probe(Protocol):
    """Reads the counters; a fake one in tests."""

    def read(self) -> Reading:
        """Return the counters now."""

    def clock_dropped(self) -> bool:
        """Return whether the processor now runs slower than it did."""


class SystemProbe:
    """Reads the counters of the thread that made it.

    Parameters
    ----------
    read_mhz : callable, optional
        The clock to watch; the processors' lowest by default.
    """

    def __init__(self, read_mhz: Callable[[], float | None] | None = None) -> None:
        self._read_mhz = clock_mhz if read_mhz is None else read_mhz
        self._schedule = _open("/proc/thread-self/schedstat")
        self._stat = _open("/proc/stat")
        self._highest_mhz = 0.0

    def facts(self) -> dict[str, bool]:
        """Return which disturbances can be seen here."""
        return {
            "waiting_for_a_processor": self._schedule is not None,
            "preemption": resource is not None,
            "stolen_by_the_host": self._stat is not None,
            "clock": self._read_mhz() is not None,
        }

    def read(self) -> Reading:
        """Return the counters now."""
        switches = 0 if resource is None else resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw
        waited = 0.0
        if self._schedule is not None:
            waited = int(os.pread(self._schedule, 64, 0).split()[1]) * 1e-9
        stolen = 0.0
        if self._stat is not None:
            stolen = int(os.pread(self._stat, 256, 0).split(maxsplit=9)[8]) * _TICKS_SECONDS
        return Reading(time.thread_time(), waited, switches, stolen)

    def clock_dropped(self) -> bool:
        """Return whether what is watched now runs slower than it did at some earlier look."""
        mhz = self._read_mhz()
        if mhz is None:
            return False
        self._highest_mhz = max(self._highest_mhz, mhz)
        return mhz < CLOCK_SHARE * self._highest_mhz

    def close(self) -> None:
        """Close the files. Changes state."""
        for descriptor in (self._schedule, self._stat):
            if descriptor is not None:
                os.close(descriptor)
        self._schedule = self._stat = None


def disturbance(before: Reading, after: Reading, elapsed_seconds: float, *, computes: bool) -> str | None:
    """Return why a sample does not count (one of `DISTURBANCES`), None where nothing speaks against it.

    Parameters
    ----------
    computes : bool
        Whether the thread was to compute throughout; one that waits is late for reasons that belong to the sample.
    """
    if after.stolen_seconds - before.stolen_seconds > STOLEN_SHARE * elapsed_seconds:
        return "stolen by the host"
    if not computes:
        return None
    waited = after.waited_seconds - before.waited_seconds - FREE_SECONDS
    if (
        after.involuntary_switches > before.involuntary_switches
        and waited > PREEMPTED_SHARE * elapsed_seconds
    ):
        return "preempted"
    if waited > WAITED_SHARE * elapsed_seconds:
        return "waited for a processor"
    if after.cpu_seconds - before.cpu_seconds < COMPUTED_SHARE * (elapsed_seconds - FREE_SECONDS):
        return "did not compute"
    return None


def clock_mhz() -> float | None:
    """Return the lowest current clock of the processors that the system states, None where it does not."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
            found = [float(line.split(":")[1]) for line in lines if line.startswith("cpu MHz")]
    except (OSError, ValueError, IndexError):
        return None
    return min(found, default=None)


def _open(path: str) -> int | None:
    try:
        return os.open(path, os.O_RDONLY)
    except OSError:
        return None
