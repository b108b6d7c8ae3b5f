"""Two probabilities that must not be mixed: that a round is hidden, and that the mean round is hidden.

*A round*: rounds differ (unions, acceptance, queueing). From samples of a round's slack comes P(a round is
hidden), however well the machine is known. *The mean*: bandwidth and costs were measured with error.
Drawing them from normal distributions and evaluating the mean slack for each draw gives P(mean hidden),
however much rounds vary. With each come the exposed seconds max(0, -slack) at p50, p90 and p99.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hideaway.sim.errors import InputError
from hideaway.sim.hide.checks import FloatArray

_Z_95 = 1.959963984540054
"""Two-sided 95 % point of the standard normal distribution."""


@dataclass(frozen=True, slots=True)
class HiddenProbability:
    """How often slack is zero or more among `num_samples` samples, and how much is exposed.

    `interval_95` is Wilson's score interval for the proportion: sampling error of these samples only, and
    only if they are independent. The exposed quantiles are samples (nearest rank), over all samples, hidden
    ones being 0.
    """

    probability: float
    interval_95: tuple[float, float]
    num_samples: int
    exposed_p50_seconds: float
    exposed_p90_seconds: float
    exposed_p99_seconds: float


def round_hidden_probability(slack_seconds: npt.ArrayLike) -> HiddenProbability:
    """Return P(a round is hidden) from one slack a round (any shape); process variation only."""
    return _summarise(slack_seconds)


def mean_hidden_probability(
    mean_slack_seconds: Callable[[Mapping[str, FloatArray]], npt.ArrayLike],
    estimates: Mapping[str, tuple[float, float]],
    rng: np.random.Generator,
    *,
    num_draws: int = 2000,
) -> HiddenProbability:
    """Return P(mean hidden) over the calibration error of the parameters; the process is averaged out inside.

    Parameters
    ----------
    mean_slack_seconds
        Mean slack of a round for each draw; takes each parameter as an array (num_draws,), returns
        (num_draws,).
    estimates
        Parameter name to (value, standard error). Draws are independent and normal, redrawn until above zero:
        every parameter here is a time, a rate or a size. A standard error of 0 fixes the parameter.
    rng
        Source of the draws, taken in the order of `estimates`.
    num_draws
        More draws narrow `interval_95`, not the calibration error.
    """
    draws = draw_parameters(estimates, rng, num_draws=num_draws)
    slack = np.asarray(mean_slack_seconds(draws), dtype=np.float64)
    return _summarise(np.broadcast_to(slack, (num_draws,)))


def draw_parameters(
    estimates: Mapping[str, tuple[float, float]], rng: np.random.Generator, *, num_draws: int
) -> dict[str, FloatArray]:
    """Return `num_draws` positive normal draws of each parameter, in the order of `estimates`."""
    if num_draws < 1:
        raise InputError(f"num_draws is {num_draws}; give at least one")
    draws: dict[str, FloatArray] = {}
    for name, (value, error) in estimates.items():
        if not (np.isfinite(value) and np.isfinite(error)) or value < 0 or error < 0:
            raise InputError(
                f"{name} is {value} with standard error {error}; give finite numbers, zero or more"
            )
        sample = np.full(num_draws, float(value))
        if error > 0:
            sample = rng.normal(value, error, num_draws)
            while np.any(low := sample <= 0.0):
                sample[low] = rng.normal(value, error, int(np.count_nonzero(low)))
        draws[name] = sample
    return draws


def _summarise(slack_seconds: npt.ArrayLike) -> HiddenProbability:
    slack = np.asarray(slack_seconds, dtype=np.float64).ravel()
    if slack.size == 0 or np.any(np.isnan(slack)):
        raise InputError(
            f"slack_seconds has {slack.size} samples, some of them perhaps NaN; give at least one number"
        )
    exposed = np.maximum(0.0, -slack)
    p50, p90, p99 = np.quantile(exposed, [0.5, 0.9, 0.99], method="inverted_cdf").tolist()
    num_hidden = int(np.count_nonzero(slack >= 0.0))
    return HiddenProbability(
        probability=num_hidden / slack.size,
        interval_95=_wilson(num_hidden, slack.size),
        num_samples=slack.size,
        exposed_p50_seconds=p50,
        exposed_p90_seconds=p90,
        exposed_p99_seconds=p99,
    )


def _wilson(successes: int, trials: int) -> tuple[float, float]:
    """Return Wilson's 95 % score interval (E. B. Wilson, J. Am. Stat. Assoc. 22, 1927)."""
    share = successes / trials
    scale = 1.0 + _Z_95**2 / trials
    centre = (share + _Z_95**2 / (2 * trials)) / scale
    half = _Z_95 * np.sqrt(share * (1 - share) / trials + _Z_95**2 / (4 * trials**2)) / scale
    low, high = max(0.0, float(centre - half)), min(1.0, float(centre + half))
    return min(low, share), max(high, share)
