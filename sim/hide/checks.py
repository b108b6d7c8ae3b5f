"""Checks of the arrays that the hiding forms take: shape, finiteness, sign; one sentence when they are wrong.

The range checks of the frozen inequality's own terms live in `hideaway.sim.contract`, not here. The forms
that use these checks are in `hideaway.sim.hide.staggered`, `depth_one` and `arrivals`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hideaway.sim.errors import InputError

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


def as_floats(name: str, value: npt.ArrayLike) -> FloatArray:
    """Return `value` as a float array of any shape; text, NaN, infinity and negative numbers are refused."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{name} is not an array of numbers ({error}); give finite numbers, zero or more"
        ) from error
    if array.size and not (array.min() >= 0.0 and array.max() < np.inf):  # NaN fails both
        raise InputError(
            f"{name} holds a negative, NaN or infinite number; give finite numbers, zero or more"
        )
    return array


def as_vector(name: str, value: npt.ArrayLike) -> FloatArray:
    """Return `value` as a one-dimensional array of finite numbers, zero or more."""
    array = as_floats(name, value)
    if array.ndim != 1:
        raise InputError(f"{name} has {array.ndim} dimensions; give a flat list, one number an entry")
    return array


def as_scalar(name: str, value: float) -> float:
    """Return `value` as one finite float, zero or more."""
    array = as_floats(name, value)
    if array.ndim != 0:
        raise InputError(f"{name} has {array.ndim} dimensions; give one number")
    return float(array)


def as_positive(name: str, value: npt.ArrayLike) -> FloatArray:
    """Return `value` as a float array in which every number is finite and above zero."""
    array = as_floats(name, value)
    if np.any(array <= 0):
        raise InputError(f"{name} holds zero; give numbers above zero")
    return array


def as_layers(
    hit_seconds: npt.ArrayLike,
    arrival_seconds: Sequence[npt.ArrayLike],
    arrival_compute_seconds: Sequence[npt.ArrayLike],
) -> tuple[FloatArray, list[tuple[FloatArray, FloatArray]]]:
    """Return the hits' work (L,) and, per layer, arrivals in time order with the work each brings.

    Arrivals of one layer may be given in any order; equal times keep the order given.

    Raises
    ------
    InputError
        The lists do not have one entry a layer, or a layer's two lists differ in length.
    """
    hits = as_vector("hit_seconds", hit_seconds)
    num_layers = len(hits)
    for name, value in (
        ("arrival_seconds", arrival_seconds),
        ("arrival_compute_seconds", arrival_compute_seconds),
    ):
        if len(value) != num_layers:
            raise InputError(
                f"{name} has {len(value)} layers but hit_seconds has {num_layers}; give one list a layer"
            )
    layers: list[tuple[FloatArray, FloatArray]] = []
    for layer in range(num_layers):
        times = as_vector(f"arrival_seconds[{layer}]", arrival_seconds[layer])
        works = as_vector(f"arrival_compute_seconds[{layer}]", arrival_compute_seconds[layer])
        if len(times) != len(works):
            raise InputError(
                f"layer {layer} has {len(times)} arrivals but {len(works)} works; give one work an arrival"
            )
        order = np.argsort(times, kind="stable")
        layers.append((times[order], works[order]))
    return hits, layers
