"""The nominal form over arrays: (1-r)·s·M/BW against the hide window.

The scalar, frozen form and every range check are `hideaway.sim.contract.evaluate_hide_inequality`; this
file repeats its arithmetic over broadcast arrays, bit for bit. Saturation s, nominal and measured, is here
too. What the inequality leaves out (per-transfer costs, real unions, order in time) is in `union` and
`staggered`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hideaway.sim.contract import evaluate_hide_inequality
from hideaway.sim.errors import InputError
from hideaway.sim.hide.checks import BoolArray, FloatArray, as_floats, as_positive

_HARMLESS = {
    "resident_fraction": 1.0,
    "saturation": 0.0,
    "total_expert_bytes": 0.0,
    "measured_h2d_bytes_per_second": 1.0,
    "draft_seconds": 0.0,
    "router_seconds": 0.0,
    "overlap_seconds": 0.0,
}
"""Terms that are always allowed, so that one term at a time can be checked."""


@dataclass(frozen=True, slots=True)
class NominalHide:
    """Both sides of the nominal inequality, each an array of the broadcast shape.

    `slack_seconds` is window minus fetch; `hidden` holds where it is zero or more.
    """

    fetch_seconds: FloatArray
    hide_window_seconds: FloatArray
    slack_seconds: FloatArray
    hidden: BoolArray


def evaluate_nominal(
    *,
    resident_fraction: npt.ArrayLike,
    saturation: npt.ArrayLike,
    total_expert_bytes: npt.ArrayLike,
    measured_h2d_bytes_per_second: npt.ArrayLike,
    draft_seconds: npt.ArrayLike,
    router_seconds: npt.ArrayLike,
    overlap_seconds: npt.ArrayLike,
) -> NominalHide:
    """Return both sides, slack and verdict of (1-r)·s·M/BW <= t_draft + t_router + overlap, for each element.

    Arguments broadcast against each other. Each operation is one rounded product, quotient or sum, and
    these are monotone, so the verdict is monotone without tolerance: more bandwidth, a larger r, a smaller
    s or M, or a longer window never turns hidden into not hidden.

    Raises
    ------
    InputError
        A term is out of the range that `evaluate_hide_inequality` allows, or the shapes do not broadcast.
    """
    terms = {
        "resident_fraction": resident_fraction,
        "saturation": saturation,
        "total_expert_bytes": total_expert_bytes,
        "measured_h2d_bytes_per_second": measured_h2d_bytes_per_second,
        "draft_seconds": draft_seconds,
        "router_seconds": router_seconds,
        "overlap_seconds": overlap_seconds,
    }
    arrays = {name: _as_array(name, value) for name, value in terms.items()}
    _check_ranges(arrays)
    try:
        arrays = dict(zip(arrays, np.broadcast_arrays(*arrays.values()), strict=True))
    except ValueError as error:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise InputError(
            f"the terms do not broadcast ({shapes}); give equal shapes, or single numbers"
        ) from error
    with np.errstate(over="ignore"):
        fetch = (1.0 - arrays["resident_fraction"]) * arrays["saturation"] * arrays["total_expert_bytes"]
        fetch = np.asarray(fetch / arrays["measured_h2d_bytes_per_second"])
        window = np.asarray(arrays["draft_seconds"] + arrays["router_seconds"] + arrays["overlap_seconds"])
    if not (np.all(np.isfinite(fetch)) and np.all(np.isfinite(window))):
        raise InputError(
            "a side of the inequality overflows a float with these terms; give terms of physical size"
        )
    return NominalHide(fetch, window, np.asarray(window - fetch), np.asarray(fetch <= window))


def nominal_saturation(
    *,
    num_sequences: npt.ArrayLike,
    block_size: npt.ArrayLike,
    top_k: npt.ArrayLike,
    num_experts: npt.ArrayLike,
) -> FloatArray:
    """Return s = min(1, c·B·k/E): the share of a layer's experts that c·B rows would need if no two agreed.

    Real unions are 40 to 60 % of it; `measured_saturation` is the measured counterpart.
    """
    rows = as_floats("num_sequences", num_sequences) * as_floats("block_size", block_size)
    picks = rows * as_floats("top_k", top_k)
    return np.minimum(1.0, picks / as_positive("num_experts", num_experts))


def measured_saturation(union_sizes: npt.ArrayLike, num_experts: int) -> float:
    """Return s = mean(u)/E from measured unions u (any shape: rounds, layers) of E experts a layer."""
    sizes = as_floats("union_sizes", union_sizes)
    if sizes.size == 0:
        raise InputError("union_sizes is empty; give at least one measured union")
    if num_experts < 1 or np.max(sizes) > num_experts:
        raise InputError(
            f"union_sizes reach {np.max(sizes):g} but num_experts is {num_experts}; correct one of them"
        )
    return float(np.mean(sizes) / num_experts)


def _as_array(name: str, value: npt.ArrayLike) -> FloatArray:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} is not an array of numbers ({error}); give finite numbers") from error
    if array.size == 0:
        raise InputError(f"{name} is empty; give at least one number")
    return array


def _check_ranges(arrays: dict[str, FloatArray]) -> None:
    """Let the contract judge the least and the greatest of each term: every allowed range is an interval."""
    for name, array in arrays.items():
        for extreme in (np.min(array), np.max(array)):
            evaluate_hide_inequality(**{**_HARMLESS, name: float(extreme)})
