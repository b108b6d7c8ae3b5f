"""What a reader should know before trusting a calibration: one sentence each, none where all is well."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence

from hideaway.calibrate.drift import Drift
from hideaway.calibrate.estimates import Estimate
from hideaway.calibrate.family import FamilyFit, curve_names
from hideaway.sim.inputs.measurements import MeasurementFile

_FEW_SAMPLES = 6
"""Fewer than this have no 95 % interval of their median."""
_POOR = 0.10
_OUTLIER_SHARE = 0.02
_TIMER_CALLS = 100


def flags_of(
    file: MeasurementFile,
    fits: Sequence[FamilyFit],
    estimates: Mapping[str, Estimate],
    drift: Drift | None,
) -> tuple[str, ...]:
    """Return the sentences, the gravest first."""
    return (
        *_of_the_run(file),
        *_of_the_drift(drift),
        *(f"{name} is at its bound ({estimate.value:.4g} {estimate.unit})"
          for name, estimate in estimates.items() if estimate.at_bound),
        *(f"{name} has an unknown error: too few samples"
          for name, estimate in estimates.items() if estimate.standard_error is None and not estimate.at_bound),
        *_of_the_fits(fits),
    )  # fmt: skip


def _of_the_run(file: MeasurementFile) -> list[str]:
    found = []
    if file.interrupted:
        found.append("the measurement was interrupted: series are short or missing")
    every = file.measurements
    few = sum(len(series.samples_seconds) < _FEW_SAMPLES for series in every)
    if few:
        found.append(f"{few} of {len(every)} series have fewer than {_FEW_SAMPLES} samples; measure longer")
    disturbed = sum(series.stop_reason == "mostly disturbed" for series in every)
    if disturbed:
        found.append(f"{disturbed} of {len(every)} series were disturbed by other work most of the time")
    reasons = Counter[str]()
    for series in every:
        reasons.update(
            {reason: count for reason, count in series.discard_reasons().items() if reason != "warm-up"}
        )
    if reasons:
        listed = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
        found.append(f"samples left out by the measurement: {listed}")
    clock = [statistics.median(series.samples_seconds) for series in file.series("timer", call="clock")]
    if clock:
        short = [s.benchmark for s in every
                 if s.benchmark != "timer" and statistics.median(s.samples_seconds) * s.operations_per_sample
                 < _TIMER_CALLS * clock[0]]  # fmt: skip
        if short:
            names = ", ".join(sorted(set(short)))
            found.append(f"series of {names} are shorter than {_TIMER_CALLS} looks at the clock")
    return found


def _of_the_drift(drift: Drift | None) -> list[str]:
    if drift is None:
        return ["too few samples have a time: whether the machine drifted cannot be told"]
    found = []
    if drift.drifted:
        found.append(
            f"the machine drifted by {100 * drift.change:+.1f} % over the run "
            f"(95 % interval {100 * drift.low:+.1f} to {100 * drift.high:+.1f} %)"
        )
    for spell in drift.spells:
        found.append(
            f"from {spell.from_seconds:.1f} s to {spell.to_seconds:.1f} s everything took "
            f"{100 * spell.slowdown:.0f} % longer, as under a throttled clock or other load"
        )
    if drift.outliers > _OUTLIER_SHARE * drift.num_samples:
        found.append(f"{drift.outliers} of {drift.num_samples} samples lie far off their point's level")
    return found


def _of_the_fits(fits: Sequence[FamilyFit]) -> list[str]:
    found = []
    for fit in fits:
        for curve in curve_names(fit.family.data):
            spread = fit.spread(curve)
            if spread > _POOR:
                found.append(f"points of {curve} scatter by {100 * spread:.0f} % about the cost model")
        if not fit.solved.converged:
            found.append(f"the fit of {fit.family.name} did not converge")
    return found
