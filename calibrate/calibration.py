"""From measurements to a profile: every family fitted, forms chosen, noise and drift looked at, parts merged.

The way in is `calibrate`; what it returns holds everything that the report and the profile say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hideaway.calibrate.checks import Check, checks_of
from hideaway.calibrate.contention_family import contention_family
from hideaway.calibrate.dense_checks import dense_checks
from hideaway.calibrate.dense_family import EXTRAS, dense_family
from hideaway.calibrate.drift import Drift, drift_of
from hideaway.calibrate.estimates import Estimate, estimates_of
from hideaway.calibrate.expert_family import expert_family
from hideaway.calibrate.family import Family, FamilyFit, curve_names, fit_family
from hideaway.calibrate.flags import flags_of
from hideaway.calibrate.host_family import host_family
from hideaway.calibrate.link_checks import link_checks
from hideaway.calibrate.link_family import issue_family, link_family
from hideaway.calibrate.measured_profile import measured_profile
from hideaway.calibrate.model_choice import Choice, choose, leave_one_out
from hideaway.calibrate.noise import noise_of
from hideaway.calibrate.point_samples import Floats, median_errors
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.measurements import MeasurementFile
from hideaway.sim.inputs.profiles import PARAMETERS, OperationNoise, Profile

_SURE_ERRORS, _WORTH_SHARE = 2.0, 0.1
"""A richer model must foretell points better by so many errors of that gain, and by this share of the plain one's."""
NOT_EXERCISED = "no series of the measurement exercises it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What a measurement says about a machine.

    Parameters
    ----------
    estimates : mapping
        Parameters that were measured, by name.
    kept : mapping
        Parameters that were not, with the reason; their values are the base profile's.
    choices : tuple of Choice
        Forms of the curves.
    flags : tuple of str
        What a reader should know before trusting it.
    """

    environment: Mapping[str, Any]
    fits: tuple[FamilyFit, ...]
    estimates: Mapping[str, Estimate]
    kept: Mapping[str, str]
    choices: tuple[Choice, ...]
    noise: Mapping[str, OperationNoise]
    drift: Drift | None
    checks: tuple[Check, ...]
    flags: tuple[str, ...]
    base: Profile
    profile: Profile


def calibrate(
    file: MeasurementFile,
    base: Profile,
    *,
    name: str,
    seed: int,
    on_step: Callable[[], None] = lambda: None,
) -> Calibration:
    """Return the calibration of one machine.

    Parameters
    ----------
    base : Profile
        Values of what the measurement does not exercise.
    name : str
        Of the profile.
    on_step : callable
        Called after each of `num_steps(file)` steps.

    Raises
    ------
    InputError
        The measurement has nothing that a parameter could be fitted to.
    """
    rng = np.random.default_rng(seed)
    fits: list[FamilyFit] = []
    estimates: dict[str, Estimate] = {}
    kept: dict[str, str] = {}
    choices: list[Choice] = []
    dense, extras = _chosen_dense(file)
    for family in families_of(file):
        fit = fit_family(dense if dense is not None and family.name == "dense" else family, rng)
        fits.append(fit)
        found, missing = estimates_of(fit)
        for parameter, estimate in found.items():
            estimates.setdefault(parameter, estimate)
        kept |= missing
        on_step()
        for curve in curve_names(family.data):
            points = [datum for datum in family.data if datum.curve == curve]
            choices.append(choose(curve, points, family.forms[curve]))
            on_step()
    if not estimates:
        raise InputError(
            "the measurement has no series that a parameter can be fitted to; measure with `hideaway measure`"
        )
    kept = {
        parameter: kept.get(parameter, NOT_EXERCISED)
        for parameter in PARAMETERS
        if parameter not in estimates
    }
    data = [datum for fit in fits for datum in fit.family.data]
    found_noise = {
        curve: noise_of([datum for datum in data if datum.curve == curve]) for curve in curve_names(data)
    }
    noise = {curve: each for curve, each in found_noise.items() if each is not None}
    drift = drift_of([datum for datum in data if not datum.reference])
    profile = measured_profile(file, base, estimates, kept, noise, name)
    dense_fit = [fit for fit in fits if fit.family.name == "dense"]
    checks = checks_of(dense_fit[0], dense_checks(file, extras)) if dense_fit else ()
    checks += link_checks(file, profile)
    return Calibration(
        environment=file.environment,
        fits=tuple(fits),
        estimates=estimates,
        kept=kept,
        choices=tuple(choices),
        noise=noise,
        drift=drift,
        checks=checks,
        flags=flags_of(file, fits, estimates, drift),
        base=base,
        profile=profile,
    )


def families_of(file: MeasurementFile) -> tuple[Family, ...]:
    """Return the families of which something was measured."""
    makers = (link_family, issue_family, host_family, expert_family, dense_family, contention_family)
    made = (maker(file) for maker in makers)
    return tuple(family for family in made if family is not None)


def num_steps(file: MeasurementFile) -> int:
    """Return how often `calibrate` reports."""
    return sum(1 + len(curve_names(family.data)) for family in families_of(file))


def held_out_errors(family: Family) -> Floats | None:
    """Return the relative errors on points left out one at a time, (num_points,); None with too few points."""
    observed = family.observed
    if len(observed) < len(family.unknowns) + 2:
        return None
    works = [datum.work for datum in family.data]
    errors = median_errors(family.data)
    _, foretold = leave_one_out(works, family.unknowns, observed, errors, family.serial)
    return np.asarray(np.abs(foretold / observed - 1.0))


def _chosen_dense(file: MeasurementFile) -> tuple[Family | None, tuple[str, ...]]:
    """Return the dense family with what foretells points better beyond chance, and what that is; the simplest wins."""
    tried = [(extras, dense_family(file, extras=extras)) for extras in EXTRAS]
    plain = tried[0][1]
    errors = [None if family is None else held_out_errors(family) for _, family in tried]
    for place, (extras, family) in enumerate(tried):
        own = errors[place]
        if own is None:
            break
        if not any(_foretells_better(other, own) for other in errors[place + 1 :]):
            return family, extras
    return plain, ()


def _foretells_better(richer: Floats | None, plain: Floats) -> bool:
    if richer is None:
        return False
    gains = plain - richer
    mean, error = float(gains.mean()), float(gains.std(ddof=1)) / len(gains) ** 0.5
    return mean > _SURE_ERRORS * error and mean > _WORTH_SHARE * float(plain.mean())
