"""Measurement files: every sample of microbenchmarks, from one environment. What calibration fits.

Written by `hideaway measure` and by campaigns, read here; nothing here measures or fits. A *series* is the samples of
one quantity at one point of a benchmark; times of its samples are seconds since the measurement began, so that a
drift of the machine can be seen and fitted. Next: `measurement_merge.py`, which joins files of one machine.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hideaway.sim.errors import InputError
from hideaway.sim.files import write_text_atomically
from hideaway.sim.inputs.plain_numbers import read_json_value
from hideaway.sim.inputs.schemas import check_schema
from hideaway.sim.number_checks import shown

MEASUREMENT_FORMAT = "hideaway-measurement"
MEASUREMENT_VERSION = 1

STOP_REASONS = ("converged", "sample cap", "time budget", "interrupted", "mostly disturbed")
"""Why sampling ended. The last: too few samples were undisturbed, so disturbed ones are among those kept."""

DISTURBANCES = (
    "preempted",
    "waited for a processor",
    "did not compute",
    "stolen by the host",
    "clock dropped",
)
"""Reasons for which a sample is discarded that lie outside what was measured: something else had the processor."""

ELAPSED = "elapsed"
"""The quantity of a series that does not name one: the whole operation on the engine's clock."""

AxisValue = int | float | str | bool
SeriesKey = tuple[str, str, tuple[tuple[str, AxisValue], ...]]


@dataclass(frozen=True, slots=True)
class Discarded:
    """A sample left out: how long it took, when it began, and why it does not count."""

    seconds: float
    started_seconds: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One series.

    Parameters
    ----------
    axes : mapping
        Names and values of the point, units in the names.
    quantity : str
        Which interval was timed.
    bytes, flops : int or None
        What one operation reads or moves, and computes.
    started_seconds : tuple of float
        When each sample began, since the measurement began; empty where it was not recorded.
    discarded : int
        Samples left out, warm-up included; those that were recorded stand in `discarded_samples`.
    operations_per_sample : int
        A sample is the mean of so many operations in a row.
    informs : tuple of str
        Profile parameters that the series says something about.
    cache : str
        In what state the memory was that it reads: "cold", "warm", "arrived" (just written by the link).
    """

    benchmark: str
    axes: Mapping[str, AxisValue]
    samples_seconds: tuple[float, ...]
    stop_reason: str
    quantity: str = ELAPSED
    bytes: int | None = None
    flops: int | None = None
    started_seconds: tuple[float, ...] = ()
    discarded: int = 0
    discarded_samples: tuple[Discarded, ...] = ()
    operations_per_sample: int = 1
    informs: tuple[str, ...] = ()
    cache: str | None = None

    @property
    def key(self) -> SeriesKey:
        """What tells this series from others."""
        return self.benchmark, self.quantity, tuple(sorted(self.axes.items()))

    def discard_reasons(self) -> dict[str, int]:
        """Return how many samples were left out for each recorded reason."""
        return dict(Counter(sample.reason for sample in self.discarded_samples))

    @property
    def num_disturbed(self) -> int:
        """Samples that were discarded because something else had the processor."""
        return sum(sample.reason in DISTURBANCES for sample in self.discarded_samples)

    def with_disturbed(self) -> Measurement:
        """Return the series with its disturbed samples among the others, in order of time where that is known.

        For comparing with work that was disturbed alike: undisturbed samples alone favour short operations, which
        are more often left alone, on a machine that does other work as well.
        """
        kept = [sample for sample in self.discarded_samples if sample.reason not in DISTURBANCES]
        back = [sample for sample in self.discarded_samples if sample.reason in DISTURBANCES]
        seconds = list(self.samples_seconds) + [sample.seconds for sample in back]
        started = list(self.started_seconds) + [sample.started_seconds for sample in back]
        if len(started) == len(seconds):
            order = sorted(range(len(seconds)), key=lambda index: started[index])
            seconds, started = [seconds[index] for index in order], [started[index] for index in order]
        else:
            started = []
        return replace(
            self,
            samples_seconds=tuple(seconds),
            started_seconds=tuple(started),
            discarded=self.discarded - len(back),
            discarded_samples=tuple(kept),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object; what says nothing is left out."""
        value: dict[str, Any] = {
            "benchmark": self.benchmark,
            "quantity": self.quantity,
            "axes": dict(self.axes),
            "bytes": self.bytes,
            "samples_seconds": list(self.samples_seconds),
            "discarded": self.discarded,
            "stop_reason": self.stop_reason,
        }
        if self.flops is not None:
            value["flops"] = self.flops
        if self.started_seconds:
            value["started_seconds"] = list(self.started_seconds)
        if self.discarded_samples:
            value["discarded_samples"] = [
                {
                    "seconds": sample.seconds,
                    "started_seconds": sample.started_seconds,
                    "reason": sample.reason,
                }
                for sample in self.discarded_samples
            ]
        if self.operations_per_sample != 1:
            value["operations_per_sample"] = self.operations_per_sample
        if self.informs:
            value["informs"] = list(self.informs)
        if self.cache is not None:
            value["cache"] = self.cache
        return value


@dataclass(frozen=True, slots=True)
class MeasurementFile:
    """All series of one environment."""

    environment: Mapping[str, Any]
    measurements: tuple[Measurement, ...] = field(default=())

    @property
    def interrupted(self) -> bool:
        """Whether it was cut short; what it holds is good, but series may lack samples or be missing."""
        return bool(self.environment.get("interrupted", False))

    def series(self, benchmark: str, quantity: str = ELAPSED, **axes: AxisValue) -> tuple[Measurement, ...]:
        """Return the series of a quantity whose axes have these values."""
        return tuple(
            found
            for found in self.measurements
            if found.benchmark == benchmark
            and found.quantity == quantity
            and all(name in found.axes and found.axes[name] == value for name, value in axes.items())
        )

    @property
    def disturbed_share(self) -> float:
        """Share of samples, warm-up left out, that something disturbed; those kept for want of others count."""
        disturbed = every = 0
        for found in self.measurements:
            kept = len(found.samples_seconds)
            every += kept + found.num_disturbed
            disturbed += found.num_disturbed + (kept if found.stop_reason == "mostly disturbed" else 0)
        return disturbed / every if every else 0.0

    def with_disturbed(self) -> MeasurementFile:
        """Return the file with the disturbed samples of every series among the others."""
        return MeasurementFile(self.environment, tuple(found.with_disturbed() for found in self.measurements))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "format": MEASUREMENT_FORMAT,
            "version": MEASUREMENT_VERSION,
            "environment": dict(self.environment),
            "measurements": [found.to_dict() for found in self.measurements],
        }

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the file, a line for each series.

        Raises
        ------
        InputError
            It cannot be written.
        """
        head = {name: value for name, value in self.to_dict().items() if name != "measurements"}
        text = json.dumps(head, indent=2, allow_nan=False)[:-2]
        lines = ",\n".join(
            "    " + json.dumps(found.to_dict(), allow_nan=False) for found in self.measurements
        )
        write_text_atomically(path, f'{text},\n  "measurements": [\n{lines}\n  ]\n}}\n')


def measurements_from(value: object, what: str) -> MeasurementFile:
    """Return the measurements that a JSON value holds; `what` names the file in errors.

    Raises
    ------
    InputError
        It does not follow the format, or contradicts itself.
    """
    check_schema(value, "measurement", what)
    assert isinstance(value, dict)
    found = tuple(_measurement(entry, f"measurements[{index}] of {what}")
                  for index, entry in enumerate(value["measurements"]))  # fmt: skip
    repeated = next(
        (key for key, count in Counter(series.key for series in found).items() if count > 1), None
    )
    if repeated is not None:
        raise InputError(
            f"{what} has two series of {repeated[0]} ({repeated[1]}) at {shown(dict(repeated[2]))}; keep one"
        )
    return MeasurementFile(value["environment"], found)


def read_measurements(path: str | os.PathLike[str]) -> MeasurementFile:
    """Return the measurements of a file.

    Raises
    ------
    InputError
        It cannot be read, does not follow the format, or contradicts itself.
    """
    return measurements_from(read_json_value(path, "measurement"), f"measurement {os.fspath(path)!r}")


def _measurement(entry: Mapping[str, Any], what: str) -> Measurement:
    samples = tuple(float(seconds) for seconds in entry["samples_seconds"])
    started = tuple(float(seconds) for seconds in entry.get("started_seconds", ()))
    if started and len(started) != len(samples):
        raise InputError(
            f"{what} has {len(samples)} samples but {len(started)} times at which they started; give one for each"
        )
    discarded = tuple(
        Discarded(float(sample["seconds"]), float(sample["started_seconds"]), sample["reason"])
        for sample in entry.get("discarded_samples", ())
    )
    if len(discarded) > entry["discarded"]:
        raise InputError(
            f"{what} lists {len(discarded)} discarded samples but counts {entry['discarded']}; correct the count"
        )
    return Measurement(
        benchmark=entry["benchmark"],
        axes=entry["axes"],
        samples_seconds=samples,
        stop_reason=entry["stop_reason"],
        quantity=entry.get("quantity", ELAPSED),
        bytes=entry["bytes"],
        flops=entry.get("flops"),
        started_seconds=started,
        discarded=entry["discarded"],
        discarded_samples=discarded,
        operations_per_sample=entry.get("operations_per_sample", 1),
        informs=tuple(entry.get("informs", ())),
        cache=entry.get("cache"),
    )
