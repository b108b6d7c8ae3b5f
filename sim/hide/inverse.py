"""Inverses of the nominal form: the least r and BW that hide, and the sets of B and of slots that do.

r and BW have thresholds, because the inequality is monotone in them. B and slots have *sets*: a longer
block needs more experts but also brings a longer window, so short and long blocks may hide and middling
ones not; and under a policy that is not a stack (first-in first-out, say) more slots may mean more misses.
Each result put back into the form it inverts says hidden.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hideaway.sim.errors import InputError
from hideaway.sim.hide.checks import FloatArray, as_floats
from hideaway.sim.hide.nominal import evaluate_nominal

_R_STEP = 2.0**-53
"""Spacing of 1 - r for r in [0, 1]: a smaller step of r may not change it."""


def smallest_resident_fraction(
    *,
    saturation: npt.ArrayLike,
    total_expert_bytes: npt.ArrayLike,
    measured_h2d_bytes_per_second: npt.ArrayLike,
    draft_seconds: npt.ArrayLike,
    router_seconds: npt.ArrayLike,
    overlap_seconds: npt.ArrayLike,
) -> FloatArray:
    """Return the smallest r that hides, max(0, 1 - window·BW/(s·M)); r = 1 moves nothing, so there is one.

    The result is raised by the few steps of 2**-53 that make the nominal form say hidden at it.
    """
    terms = {
        "saturation": saturation,
        "total_expert_bytes": total_expert_bytes,
        "measured_h2d_bytes_per_second": measured_h2d_bytes_per_second,
        "draft_seconds": draft_seconds,
        "router_seconds": router_seconds,
        "overlap_seconds": overlap_seconds,
    }
    all_missing = evaluate_nominal(resident_fraction=0.0, **terms)
    fetch, window = all_missing.fetch_seconds, all_missing.hide_window_seconds
    share = np.divide(window, fetch, out=np.ones_like(fetch), where=fetch > window)
    fraction = np.asarray(1.0 - share)
    while not np.all(hidden := evaluate_nominal(resident_fraction=fraction, **terms).hidden):
        fraction = np.where(hidden, fraction, np.minimum(1.0, fraction + _R_STEP))
    return fraction


def smallest_bandwidth_bytes_per_second(
    *,
    resident_fraction: npt.ArrayLike,
    saturation: npt.ArrayLike,
    total_expert_bytes: npt.ArrayLike,
    draft_seconds: npt.ArrayLike,
    router_seconds: npt.ArrayLike,
    overlap_seconds: npt.ArrayLike,
) -> FloatArray:
    """Return the smallest BW that hides, (1-r)·s·M/window.

    Infinity where bytes must move and the window is 0; 0 where nothing must move: any bandwidth hides. A
    finite, positive result is raised by the few units in the last place that make the nominal form say
    hidden at it.
    """
    terms = {
        "resident_fraction": resident_fraction,
        "saturation": saturation,
        "total_expert_bytes": total_expert_bytes,
        "draft_seconds": draft_seconds,
        "router_seconds": router_seconds,
        "overlap_seconds": overlap_seconds,
    }
    at_one = evaluate_nominal(measured_h2d_bytes_per_second=1.0, **terms)
    num_bytes, window = at_one.fetch_seconds, at_one.hide_window_seconds
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        bandwidth = np.where(num_bytes > 0.0, num_bytes / window, 0.0)
        settled = (bandwidth == 0.0) | ~np.isfinite(bandwidth)
        while np.any(low := ~settled & (num_bytes / bandwidth > window)):
            bandwidth = np.where(low, np.nextafter(bandwidth, np.inf), bandwidth)
    return np.asarray(bandwidth)


def hiding_set(
    candidates: Sequence[int], fetch_seconds: npt.ArrayLike, hide_window_seconds: npt.ArrayLike
) -> tuple[int, ...]:
    """Return the candidates (block sizes, slot counts) whose fetch fits their window, in the order given.

    The set need not be an interval; `as_ranges` writes it down.

    Parameters
    ----------
    candidates
        (N,) block sizes or slot counts.
    fetch_seconds, hide_window_seconds
        Both sides at each candidate; one number stands for all of them.
    """
    shape = (len(candidates),)
    try:
        fetch = np.broadcast_to(as_floats("fetch_seconds", fetch_seconds), shape)
        window = np.broadcast_to(as_floats("hide_window_seconds", hide_window_seconds), shape)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(
            f"there are {shape[0]} candidates but the two sides have other lengths; give equal lists"
        ) from error
    return tuple(candidate for candidate, fits in zip(candidates, fetch <= window, strict=True) if fits)


def as_ranges(chosen: Sequence[int], candidates: Sequence[int]) -> str:
    """Return a set as text, runs of neighbouring candidates joined: '1 to 3, 16'; 'none' when it is empty."""
    picked = set(chosen)
    runs: list[list[int]] = [[]]
    for candidate in candidates:
        if candidate in picked:
            runs[-1].append(candidate)
        elif runs[-1]:
            runs.append([])
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs if run]
    return ", ".join(texts) or "none"
