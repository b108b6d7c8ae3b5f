"""How each operation's time varies: spread, tail and correlation in time, pooled over the points of its curve."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hideaway.calibrate.point_samples import in_time_order, lag_one_correlation, relative_spread
from hideaway.calibrate.work import Datum
from hideaway.sim.inputs.profiles import OperationNoise

_FEWEST = 3
_TAIL = 0.99
_FEW = 100


def noise_of(data: Sequence[Datum]) -> OperationNoise | None:
    """Return the noise of a curve, None where no point has three samples.

    Every sample is divided by its point's median first. Of fewer than a hundred the 99th percentile is the largest.
    """
    points = [datum for datum in data if len(datum.samples) >= _FEWEST]
    if not points:
        return None
    ratios = np.concatenate([np.asarray(datum.samples) / np.median(datum.samples) for datum in points])
    weights = np.array([len(datum.samples) for datum in points], dtype=float)
    spreads = np.array([relative_spread(datum.samples) for datum in points])
    lags = np.array([lag_one_correlation(in_time_order(datum)) for datum in points])
    tail = float(ratios.max()) if len(ratios) < _FEW else float(np.quantile(ratios, _TAIL))
    return OperationNoise(
        relative_spread=float((weights @ spreads**2 / weights.sum()) ** 0.5),
        mean_ratio=float(ratios.mean()),
        tail_ratio=tail,
        lag_one_correlation=float(weights @ lags / weights.sum()),
        samples=len(ratios),
    )
