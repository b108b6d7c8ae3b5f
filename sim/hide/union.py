r"""The measured-union form: Σ_l |U_l \ R_l| transfers with their full costs, against the same window.

It replaces the bytes-only left side of the nominal form. Order in time is still ignored: for that see
`hideaway.sim.hide.staggered`. Expert sets are bitmasks (Python ints), one a layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hideaway.sim.errors import InputError
from hideaway.sim.hide.checks import BoolArray, FloatArray, as_floats, as_positive


@dataclass(frozen=True, slots=True)
class UnionHide:
    """Both sides of the measured-union inequality, each an array of the broadcast shape.

    `overlap_seconds` is the overlap with the previous verify that was *realised* and is part of the window.
    `idle_link_seconds` is the time the link stood idle during that verify: what could have been realised.
    `hidden_if_link_used` is the verdict with the idle link used on top of the realised overlap.
    """

    num_transfers: FloatArray
    fetch_bytes: FloatArray
    fetch_seconds: FloatArray
    hide_window_seconds: FloatArray
    slack_seconds: FloatArray
    hidden: BoolArray
    overlap_seconds: FloatArray
    idle_link_seconds: FloatArray
    hidden_if_link_used: BoolArray


def missing_experts(needed: Sequence[int], resident: Sequence[int]) -> npt.NDArray[np.int64]:
    r"""Return |U_l \ R_l| of each layer (num_layers,), needed experts that are not resident."""
    if len(needed) != len(resident):
        raise InputError(
            f"needed has {len(needed)} layers but resident has {len(resident)}; give one mask a layer"
        )
    if any(mask < 0 for mask in (*needed, *resident)):
        raise InputError("an expert mask is negative; bit e of a mask is expert e, so masks are zero or more")
    counts = [(union & ~held).bit_count() for union, held in zip(needed, resident, strict=True)]
    return np.array(counts, dtype=np.int64)


def evaluate_union(
    *,
    num_transfers: npt.ArrayLike,
    expert_bytes: npt.ArrayLike,
    measured_h2d_bytes_per_second: npt.ArrayLike,
    latency_seconds: npt.ArrayLike = 0.0,
    issue_seconds: npt.ArrayLike = 0.0,
    batch_issue_seconds: npt.ArrayLike = 0.0,
    draft_seconds: npt.ArrayLike = 0.0,
    router_seconds: npt.ArrayLike = 0.0,
    overlap_seconds: npt.ArrayLike = 0.0,
    idle_link_seconds: npt.ArrayLike = 0.0,
) -> UnionHide:
    r"""Return the measured-union form, n·(issue + latency + w_e/BW) + batch issue <= window, by element.

    Parameters
    ----------
    num_transfers
        n = Σ_l |U_l \ R_l|; a mean over rounds need not be whole.
    expert_bytes
        w_e, bytes of one expert as stored.
    measured_h2d_bytes_per_second
        Measured bandwidth of expert-sized copies.
    latency_seconds, issue_seconds
        Fixed device-side cost and host cost of one transfer.
    batch_issue_seconds
        Fixed host cost of issuing all of them as one batch, paid once where n > 0.
    draft_seconds, router_seconds, overlap_seconds
        The window, as in the nominal form; overlap is the realised one.
    idle_link_seconds
        Further seconds during which the link was idle while the previous verify ran.
    """
    transfers = as_floats("num_transfers", num_transfers)
    one_transfer = (
        as_floats("issue_seconds", issue_seconds)
        + as_floats("latency_seconds", latency_seconds)
        + as_floats("expert_bytes", expert_bytes)
        / as_positive("measured_h2d_bytes_per_second", measured_h2d_bytes_per_second)
    )
    batch = np.where(transfers > 0, as_floats("batch_issue_seconds", batch_issue_seconds), 0.0)
    overlap = as_floats("overlap_seconds", overlap_seconds)
    idle = as_floats("idle_link_seconds", idle_link_seconds)
    window = as_floats("draft_seconds", draft_seconds) + as_floats("router_seconds", router_seconds) + overlap
    columns = (
        transfers,
        transfers * np.asarray(expert_bytes),
        transfers * one_transfer + batch,
        window,
        overlap,
        idle,
    )
    transfers, moved, fetch, window, overlap, idle = (
        np.array(column) for column in np.broadcast_arrays(*columns)
    )
    return UnionHide(
        num_transfers=transfers,
        fetch_bytes=moved,
        fetch_seconds=fetch,
        hide_window_seconds=window,
        slack_seconds=np.asarray(window - fetch),
        hidden=np.asarray(fetch <= window),
        overlap_seconds=overlap,
        idle_link_seconds=idle,
        hidden_if_link_used=np.asarray(fetch <= window + idle),
    )
