"""Files of measurements of one machine joined into one; those of different machines, drivers or clocks refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.measurements import Discarded, Measurement, MeasurementFile, SeriesKey
from hideaway.sim.number_checks import shown

SAME_ENVIRONMENT = (
    "device", "driver", "processor", "instructions", "cores", "memory_bytes", "last_level_cache_bytes", "threads",
    "openmp_wait_policy", "torch", "cuda", "expert_kernel", "dense_dtype",
    "link", "file_system",
)  # fmt: skip
"""Keys of an environment in which files that are merged must agree, where both know them (null: not known)."""
CLOCK_TOLERANCE = 0.02
"""Relative difference up to which two readings of a clock count as the same setting."""


def check_same_environment(first: Mapping[str, Any], second: Mapping[str, Any]) -> None:
    """Refuse two environments of which figures cannot be pooled.

    Raises
    ------
    InputError
        Naming the key in which they differ and both values.
    """
    for key in SAME_ENVIRONMENT:
        if _differ(first.get(key), second.get(key)):
            raise InputError(
                f"measurements of different machines cannot be merged: {key} is {shown(first[key])} in one and "
                f"{shown(second[key])} in another; calibrate each by itself"
            )
    clocks = (first.get("clocks_mhz", {}), second.get("clocks_mhz", {}))
    for name in sorted(clocks[0].keys() | clocks[1].keys()):
        one, other = (clock.get(name) for clock in clocks)
        if one is None or other is None or abs(one - other) > CLOCK_TOLERANCE * max(one, other):
            raise InputError(
                f"measurements at different clocks cannot be merged: {name} is {one} MHz in one and {other} MHz in "
                "another; calibrate each by itself"
            )


def _common(environments: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what holds for all: what must agree as far as anyone knows it, of the rest what is the same."""
    common: dict[str, Any] = {}
    for key, value in environments[0].items():
        if key in SAME_ENVIRONMENT:
            known = [environment[key] for environment in environments if environment.get(key) is not None]
            common[key] = max(
                known, key=lambda fact: len(fact) if isinstance(fact, dict) else 0, default=None
            )
        elif key == "clocks_mhz" or all(environment.get(key) == value for environment in environments):
            common[key] = value
    return common


def _differ(one: object, other: object) -> bool:
    """Return whether two facts contradict each other; of two objects the keys that both have are compared."""
    if one is None or other is None:
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return any(_differ(one[key], other[key]) for key in one.keys() & other.keys())
    return one != other


def merge_measurements(files: Iterable[MeasurementFile]) -> MeasurementFile:
    """Return the series of several files of one machine, samples of the same series joined.

    Of the environments what all share is kept. Times at which samples started count from the beginning of the
    earliest file; where a file does not say when it began, no file's times are kept, because they would not be
    comparable.

    Raises
    ------
    InputError
        There is no file, devices, drivers, clocks or another part of the environment differ, or one series moves
        different bytes in two files.
    """
    every = list(files)
    if not every:
        raise InputError("there are no measurements to merge; give one file or more")
    begun = [file.environment.get("started_unix_seconds") for file in every]
    known = [float(begin) for begin in begun if begin is not None]
    comparable = len(known) == len(every)
    joined: dict[SeriesKey, Measurement] = {}
    for number, file in enumerate(every):
        check_same_environment(every[0].environment, file.environment)
        shift = known[number] - min(known) if comparable else None
        for series in file.measurements:
            moved = _moved(series, shift)
            earlier = joined.get(series.key)
            joined[series.key] = moved if earlier is None else _joined(earlier, moved)
    environment = _common([file.environment for file in every])
    if comparable:
        environment["started_unix_seconds"] = min(known)
    environment["interrupted"] = any(file.interrupted for file in every)
    environment["merged_files"] = len(every)
    return MeasurementFile(environment, tuple(joined.values()))


def _moved(series: Measurement, shift: float | None) -> Measurement:
    """Return a series whose times begin earlier by `shift`; without times where that is not known."""
    if shift is None:
        return replace(series, started_seconds=())
    discarded = tuple(
        Discarded(sample.seconds, sample.started_seconds + shift, sample.reason)
        for sample in series.discarded_samples
    )
    started = tuple(seconds + shift for seconds in series.started_seconds)
    return replace(series, started_seconds=started, discarded_samples=discarded)


def _joined(first: Measurement, second: Measurement) -> Measurement:
    for name in ("bytes", "flops", "cache", "operations_per_sample"):
        one, other = getattr(first, name), getattr(second, name)
        if one != other:
            raise InputError(
                f"measurements cannot be merged: {name} of {first.benchmark} ({first.quantity}) at "
                f"{shown(dict(first.axes))} is {one} in one and {other} in another; they are of different versions"
            )
    both_timed = bool(first.started_seconds) and bool(second.started_seconds)
    return replace(
        first,
        samples_seconds=first.samples_seconds + second.samples_seconds,
        started_seconds=first.started_seconds + second.started_seconds if both_timed else (),
        discarded=first.discarded + second.discarded,
        discarded_samples=first.discarded_samples + second.discarded_samples,
        stop_reason=first.stop_reason if first.stop_reason == second.stop_reason else "time budget",
        informs=tuple(dict.fromkeys(first.informs + second.informs)),
    )
