"""How the time of one operation varies from run to run: what a simulation may draw from, beside the costs themselves.

Measured by `hideaway calibrate` and kept in a profile under `noise`. The medians are the costs of
`hideaway.sim.costs`; nothing here is needed to compute them.
"""

from __future__ import annotations

from dataclasses import dataclass

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.bounded import bounded_whole
from hideaway.sim.number_checks import finite_number


@dataclass(frozen=True, slots=True)
class OperationNoise:
    """The variation of one operation about the median of its point.

    Parameters
    ----------
    relative_spread : float
        Robust standard deviation (1.4826 · median absolute deviation) of the logarithm of its time.
    mean_ratio : float
        Mean / median.
    tail_ratio : float
        99th percentile / median; of fewer than 100 samples the largest stands for it.
    lag_one_correlation : float
        Rank correlation of successive samples of one point, over all its points.
    samples : int
        How many it rests on.
    """

    relative_spread: float
    mean_ratio: float
    tail_ratio: float
    lag_one_correlation: float
    samples: int

    def __post_init__(self) -> None:
        for name in ("relative_spread", "mean_ratio", "tail_ratio"):
            object.__setattr__(self, name, finite_number(name, getattr(self, name), maximum=1e6))
        if not -1.0 <= finite_number("lag_one_correlation", self.lag_one_correlation, minimum=-1.0) <= 1.0:
            raise InputError(
                f"lag_one_correlation is {self.lag_one_correlation} but must be from -1 to 1; correct it"
            )
        bounded_whole("samples", self.samples, 1, 2**53)
