"""A calibration as tables of text: parameters, forms of curves, checks, noise. Terminal and page show the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hideaway.report.measurement_table import time_text
from hideaway.sim.inputs.profiles import ALL_PARAMETERS

if TYPE_CHECKING:
    from hideaway.calibrate.calibration import Calibration
    from hideaway.calibrate.estimates import Estimate
    from hideaway.sim.inputs.measurements import AxisValue

PARAMETER_COLUMNS = (
    "parameter",
    "value",
    "unit",
    "standard error",
    "95 % interval",
    "residuals",
    "origin",
    "remark",
)
CHOICE_COLUMNS = ("curve", "points", "cost model's form", "held-out error", "best form", "its held-out error")
CHECK_COLUMNS = ("check", "point", "measured", "foretold", "error")
NOISE_COLUMNS = ("operation", "samples", "spread", "mean / median", "p99 / median", "lag-1 correlation")
VALIDITY_COLUMNS = ("parameter", "curve", "measured over")


def parameter_rows(made: Calibration) -> list[tuple[str, ...]]:
    """Return a row for each parameter of the profile; those that keep a base value say why."""
    rows: list[tuple[str, ...]] = []
    for name, parameter in made.profile.parameters.items():
        estimate = made.estimates.get(name)
        value = f"{parameter.value:.5g}"
        if estimate is None:
            error = "" if parameter.standard_error is None else f"{parameter.standard_error:.2g}"
            remark = f"from {made.base.name}: {made.kept[name]}"
            rows.append((name, value, parameter.unit, error, "", "", parameter.origin, remark))
            continue
        error = "unknown" if estimate.standard_error is None else f"{estimate.standard_error:.2g}"
        interval = interval_text(estimate)
        remark = "AT BOUND" if estimate.at_bound else ""
        spread = percent(estimate.residual_spread)
        rows.append((name, value, parameter.unit, error, interval, spread, parameter.origin, remark))
    return rows


def choice_rows(made: Calibration) -> list[tuple[str, ...]]:
    """Return a row for each curve: the cost model's form and the best one, by error on points left out."""
    rows: list[tuple[str, ...]] = []
    points: dict[str, int] = {}
    for fit in made.fits:
        for datum in fit.family.data:
            points[datum.curve] = points.get(datum.curve, 0) + 1
    for choice in made.choices:
        errors = {trial.form: trial.median_error for trial in choice.trials}
        best = "too few points" if choice.chosen is None else choice.chosen
        rows.append(
            (
                choice.curve,
                str(points[choice.curve]),
                choice.cost_model,
                percent(errors[choice.cost_model]),
                best,
                "" if choice.chosen is None else percent(errors[choice.chosen]),
            )
        )
    return rows


def check_rows(made: Calibration) -> list[tuple[str, ...]]:
    """Return a row for each point that no fit has seen."""
    return [
        (
            check.curve,
            axes_text(check.axes),
            time_text(check.measured_seconds),
            time_text(check.foretold_seconds),
            f"{100 * check.error:+.1f} %",
        )
        for check in made.checks
    ]


def noise_rows(made: Calibration) -> list[tuple[str, ...]]:
    """Return a row for each operation's noise."""
    return [
        (
            name,
            str(noise.samples),
            percent(noise.relative_spread),
            f"{noise.mean_ratio:.3f}",
            f"{noise.tail_ratio:.2f}",
            f"{noise.lag_one_correlation:+.2f}",
        )
        for name, noise in made.noise.items()
    ]


def validity_rows(made: Calibration) -> list[tuple[str, ...]]:
    """Return a row for each parameter and curve: the ranges of the axes."""
    return [
        (name, curve, _ranges(axes))
        for name, estimate in made.estimates.items()
        for curve, axes in estimate.validity.items()
    ]


def note_lines(made: Calibration) -> list[str]:
    """Return what readers of single parameters must know."""
    return [
        f"{name}: {'; '.join(estimate.notes)}" for name, estimate in made.estimates.items() if estimate.notes
    ]


def interval_text(estimate: Estimate) -> str:
    """Return the 95 % interval; an end at the greatest value that a profile may hold is no end."""
    if estimate.low is None or estimate.high is None:
        return ""
    if estimate.high >= ALL_PARAMETERS[estimate.name].maximum and estimate.unit != "fraction":
        return f"{estimate.low:.4g} or more"
    return f"{estimate.low:.4g} to {estimate.high:.4g}"


def axes_text(axes: Mapping[str, AxisValue]) -> str:
    """Return a point as `name value, …`."""
    return ", ".join(f"{name} {value}" for name, value in axes.items() if name not in ("shape", "format"))


def percent(share: float | None) -> str:
    """Return a share with three digits."""
    return "too few points" if share is None else f"{100 * share:.3g} %"


def _ranges(axes: Mapping[str, tuple[AxisValue, ...]]) -> str:
    parts = []
    for name, values in axes.items():
        numbers = [value for value in values if isinstance(value, float)]
        if len(numbers) == 2 and len(values) == 2:
            low, high = (f"{value:g}" for value in numbers)
            parts.append(f"{name} {low}" if low == high else f"{name} {low} to {high}")
        else:
            parts.append(f"{name} {', '.join(str(value) for value in values)}")
    return "; ".join(parts)


def is_flagged(estimate: Estimate | None) -> bool:
    """Return whether a row of the table should stand out."""
    return estimate is not None and (estimate.at_bound or estimate.standard_error is None)
