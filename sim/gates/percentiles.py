"""Order statistics of benchmark samples: nearest-rank percentiles and the median.

Nearest rank returns a sample that was measured, never a value between two. Used by `hideaway.sim.gates.bm2`
and `hideaway.sim.gates.bm3`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hideaway.sim.errors import InputError
from hideaway.sim.number_checks import finite_number, shown

_NANOSECONDS_PER_MICROSECOND = 1000.0


def percentiles_us(samples_ns: Sequence[float]) -> dict[str, float]:
    """Return p50, p90, p99, min and max in microseconds, and count, of samples in nanoseconds.

    The p-th percentile of n sorted samples is the ceil(p·n/100)-th (nearest rank).

    Raises
    ------
    InputError
        There are no samples, or one is negative or not finite.
    """
    ordered = sorted_samples("samples_ns", samples_ns)
    count = len(ordered)
    # -(-a // b) is ceil(a / b) in whole numbers: 0.9 * n in floats may land just above a rank.
    ranks = {f"p{percent}": -(-percent * count // 100) for percent in (50, 90, 99)}
    result = {name: ordered[rank - 1] / _NANOSECONDS_PER_MICROSECOND for name, rank in ranks.items()}
    result["min"] = ordered[0] / _NANOSECONDS_PER_MICROSECOND
    result["max"] = ordered[-1] / _NANOSECONDS_PER_MICROSECOND
    result["count"] = count
    return result


def median(samples: Sequence[float]) -> float:
    """Return the middle sample, or the mean of the two middle ones.

    Raises
    ------
    InputError
        There are no samples, or one is negative or not finite.
    """
    ordered = sorted_samples("samples", samples)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2.0


def sorted_samples(name: str, samples: Sequence[float]) -> list[float]:
    """Return the samples sorted, as floats; raises InputError naming `name` for none or for a bad one."""
    if not isinstance(samples, Iterable) or isinstance(samples, (str, bytes)):
        raise InputError(
            f"{name} is {shown(samples)} but must be a list of numbers; give at least one sample"
        )
    ordered = sorted(finite_number(f"{name}[{index}]", sample) for index, sample in enumerate(samples))
    if not ordered:
        raise InputError(f"{name} is empty; give at least one sample")
    return ordered
