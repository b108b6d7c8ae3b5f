"""Bounded least squares, plain or Huber's, and the covariance that follows from its Jacobian.

The core under every fit, without a notion of what is fitted. Huber's loss: "Robust Estimation of a Location
Parameter", Annals of Mathematical Statistics 35, 1964; with its constant 1.345 a fit keeps 95 % of the efficiency of
least squares where errors are normal (Holland and Welsch, Communications in Statistics A6(9), 1977).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

Floats = npt.NDArray[np.float64]
HUBER = 1.345
HUBER_EFFICIENCY = 0.95
_TIGHTEST = 1e-14
_SINGULAR = 1e-10


@dataclass(frozen=True, slots=True)
class Minimum:
    """Where the loss is least.

    Parameters
    ----------
    values : Floats
        (num_unknowns,).
    residuals, jacobian : Floats
        There, (num_points,) and (num_points, num_unknowns).
    loss : float
        Half the sum of squares, or of Huber's loss.
    converged : bool
        Whether the solver said so.
    """

    values: Floats
    residuals: Floats
    jacobian: Floats
    loss: float
    converged: bool


def minimise(
    residuals: Callable[[Floats], Floats],
    start: Floats,
    *,
    jacobian: Callable[[Floats], Floats] | None = None,
    lower: Floats | None = None,
    upper: Floats | None = None,
    huber: bool = False,
    tolerance: float = _TIGHTEST,
) -> Minimum:
    """Return the minimum that is found from `start`.

    Parameters
    ----------
    residuals, jacobian : callable
        Of the values; residuals in units of their errors where `huber` is set. Differences are taken without a
        Jacobian.
    lower, upper : Floats, optional
        Bounds of the values.
    tolerance : float
        Relative change of loss or values at which it ends.
    """
    low = np.full(len(start), -np.inf) if lower is None else lower
    high = np.full(len(start), np.inf) if upper is None else upper
    found = least_squares(
        residuals,
        np.clip(start, low, high),
        jac="3-point" if jacobian is None else jacobian,
        bounds=(low, high),
        x_scale="jac",
        loss="huber" if huber else "linear",
        f_scale=HUBER,
        xtol=tolerance,
        ftol=tolerance,
        gtol=tolerance,
        max_nfev=400,
    )
    values = np.asarray(found.x, dtype=float)
    slopes = np.asarray(found.jac, dtype=float) if jacobian is None or huber else jacobian(values)
    if huber and jacobian is not None:
        slopes = jacobian(values)  # the solver's own is scaled by the loss
    return Minimum(values, residuals(values), slopes, float(found.cost), bool(found.success))


def inverse_information(jacobian: Floats) -> tuple[Floats, list[int]]:
    """Return (JᵀJ)⁻¹ and the columns that no combination of points determines.

    Columns are scaled to length one, so that what counts as undetermined does not hang on units. Undetermined are
    columns that are zero, or that are needed to make a singular direction: the last of each such direction.
    """
    num_unknowns = jacobian.shape[1]
    lengths = np.sqrt((jacobian**2).sum(axis=0))
    lost = [index for index in range(num_unknowns) if lengths[index] == 0.0]
    kept = [index for index in range(num_unknowns) if lengths[index] > 0.0]
    while kept:
        scaled = jacobian[:, kept] / lengths[kept]
        _, singular, right = np.linalg.svd(scaled, full_matrices=len(kept) > len(scaled))
        null = (
            right[len(singular) :] if len(singular) < len(kept) else right[singular < _SINGULAR * singular[0]]
        )
        if len(null) == 0:
            break
        worst = max(index for index in range(len(kept)) if np.abs(null[:, index]).max() > 1e-3)
        lost.append(kept.pop(worst))
    covariance = np.zeros((num_unknowns, num_unknowns))
    if kept:
        scaled = jacobian[:, kept] / lengths[kept]
        _, singular, right = np.linalg.svd(scaled, full_matrices=False)
        inner = (right.T / singular**2) @ right
        covariance[np.ix_(kept, kept)] = inner / np.outer(lengths[kept], lengths[kept])
    return covariance, sorted(lost)
