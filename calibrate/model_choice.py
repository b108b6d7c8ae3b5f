"""Which form a curve has, by how well each form foretells points that it was not fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hideaway.calibrate.design import Design
from hideaway.calibrate.forms import FORMS, Form
from hideaway.calibrate.point_samples import Floats, median_errors
from hideaway.calibrate.solver import solve
from hideaway.calibrate.work import Datum, Unknown, Work

SPARE_POINTS = 1
"""Points that a curve must have beyond a form's unknowns, knot included, once one is left out."""


IMMATERIAL = 0.01
"""Held-out errors that differ by less than this are alike: medians are hardly known better."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One form and its errors on points left out, one at a time; None where there are too few points to tell.

    Parameters
    ----------
    median_error, worst_error : float or None
        Relative, absolute.
    """

    form: str
    num_unknowns: int
    median_error: float | None
    worst_error: float | None


@dataclass(frozen=True, slots=True)
class Choice:
    """The forms of a curve.

    Parameters
    ----------
    chosen : str or None
        The form that foretells best; None where no form could be tried.
    cost_model : str
        The form that the cost model has.
    """

    curve: str
    cost_model: str
    chosen: str | None
    trials: tuple[Trial, ...]


def choose(curve: str, data: Sequence[Datum], kind: str) -> Choice:
    """Return the form of a curve.

    The cost model's own is kept unless another foretells better by more than `IMMATERIAL` and its error (the rule of
    one standard error: Breiman et al., "Classification and Regression Trees", 1984, section 3.4.3); of others that are
    as good as the best, the one with fewest unknowns is taken.

    Parameters
    ----------
    kind : str
        Of the forms that compete.
    """
    forms = FORMS[kind]
    held_out = {form.name: _held_out_errors(form, data) for form in forms}
    trials = tuple(_trial(form, held_out[form.name]) for form in forms)
    tried = {name: errors for name, errors in held_out.items() if errors is not None}
    if not tried:
        return Choice(curve, forms[0].name, None, trials)
    means = {name: float(errors.mean()) for name, errors in tried.items()}
    best = min(means, key=lambda name: means[name])
    limit = means[best] + max(IMMATERIAL, float(tried[best].std(ddof=1)) / len(data) ** 0.5)
    good = [trial for trial in trials if trial.form in means and means[trial.form] <= limit]
    chosen = min(good, key=lambda trial: (trial.form != forms[0].name, trial.num_unknowns))
    return Choice(curve, forms[0].name, chosen.form, trials)


def _trial(form: Form, errors: Floats | None) -> Trial:
    count = len(form.unknowns) + (form.knot is not None)
    if errors is None:
        return Trial(form.name, count, None, None)
    return Trial(form.name, count, float(np.median(errors)), float(errors.max()))


def _held_out_errors(form: Form, data: Sequence[Datum]) -> Floats | None:
    """Return the relative errors on each point when it is left out, None with too few points.

    With a knot, every remaining set of points chooses its own.
    """
    if len(data) < len(form.unknowns) + (form.knot is not None) + 1 + SPARE_POINTS:
        return None
    errors = median_errors(data)
    observed = np.array([datum.observed for datum in data])
    losses, foretold = [], []
    for knot in _knots(form, data):
        works = [form.work(datum.features, knot) for datum in data]
        loss, seconds = leave_one_out(
            works, form.unknowns, observed, errors, "serial" if form.serial else None
        )
        losses.append(loss)
        foretold.append(seconds)
    best = np.argmin(np.array(losses), axis=0)
    chosen = np.array(foretold)[best, np.arange(len(data))]
    return np.asarray(np.abs(chosen / observed - 1.0))


def leave_one_out(
    works: Sequence[Work],
    unknowns: Sequence[Unknown],
    observed: Floats,
    errors: Floats,
    serial: str | None = None,
) -> tuple[Floats, Floats]:
    """Return, for each point left out, the others' mean absolute residual and the seconds they foretell, (num_points,).

    Parameters
    ----------
    errors : Floats
        Relative standard errors of what was observed.
    """
    whole = solve(Design(works, unknowns, serial), unknowns, observed, errors)
    losses, foretold = np.empty(len(works)), np.empty(len(works))
    for place in range(len(works)):
        kept = [index for index in range(len(works)) if index != place]
        design = Design([works[index] for index in kept], unknowns, serial)
        part = solve(design, unknowns, observed[kept], errors[kept], start=whole.values, misfit=whole.misfit)
        losses[place] = np.abs(part.residuals).mean()
        foretold[place] = Design([works[place]], unknowns, serial).seconds(part.values)[0]
    return losses, foretold


def _knots(form: Form, data: Sequence[Datum]) -> list[float]:
    if form.knot is None:
        return [0.0]
    values = sorted({datum.features[form.knot] for datum in data})
    return values[1:-1] or [values[0]]
