"""Layers of a round as the exact forms take them: work before, at and behind each arrival, and the arrivals.

Built from terms and whole numbers of experts; `hideaway.subcommands.hide_answer` does so for mean layers,
`hideaway.subcommands.hide_chance` for each sampled round.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hideaway.sim.hide import (
    UnionHide,
    barrier_exposed_seconds,
    depth_one_exposed_seconds,
    evaluate_union,
    link_arrival_seconds,
    link_seconds,
    smallest_staggered_window_seconds,
    split_by_layer,
    staggered_exposed_seconds,
)
from hideaway.sim.hide.checks import FloatArray
from hideaway.subcommands.hide_terms import NominalTerms, TransferTerms, VerifyTerms


@dataclass(frozen=True, slots=True)
class Layers:
    """Inputs of the exact forms; seconds, L arrays or arrays (L,).

    An expert that arrives on its own is a launch of its own; behind a barrier all experts are one launch.
    `own_arrivals` gives the arrivals of so many transfers from the instant at which their layer asks.
    """

    dense: FloatArray
    hits: FloatArray
    works: list[FloatArray]
    barrier_hits: FloatArray
    barrier_works: list[FloatArray]
    ahead: list[FloatArray]
    own_arrivals: Callable[[int], FloatArray]

    def staggered(self, window_seconds: float) -> float:
        """Return the exposed seconds when all is prefetched from time 0, hits first."""
        return staggered_exposed_seconds(window_seconds, self.dense, self.hits, self.ahead, self.works)

    def staggered_window(self) -> float:
        """Return the smallest window that exposes nothing."""
        return smallest_staggered_window_seconds(self.dense, self.hits, self.ahead, self.works)

    def barrier(self, window_seconds: float) -> float:
        """Return the exposed seconds when a layer's experts wait for the last of them."""
        return barrier_exposed_seconds(
            window_seconds, self.dense, self.barrier_hits, self.ahead, self.barrier_works
        )

    def depth_one(self) -> float:
        """Return the exposed seconds when each layer fetches after its own router."""
        own = [self.own_arrivals(len(work)) for work in self.works]
        return depth_one_exposed_seconds(self.hits, own, self.works)

    @property
    def last_arrival_seconds(self) -> float:
        """When the last prefetched expert arrives."""
        return max((float(times[-1]) for times in self.ahead if len(times)), default=0.0)

    @property
    def on_demand_seconds(self) -> float:
        """Transfer time of all layers when each fetches on demand."""
        return sum(float(self.own_arrivals(len(work))[-1]) for work in self.works if len(work))

    @property
    def compute_seconds(self) -> float:
        """Compute of all layers, launches of single arrivals included."""
        return float(np.sum(self.dense) + np.sum(self.hits) + sum(float(np.sum(work)) for work in self.works))


def build_layers(
    nominal: NominalTerms,
    transfers: TransferTerms,
    verify: VerifyTerms,
    *,
    needed: npt.NDArray[np.float64],
    missing: npt.NDArray[np.int64],
) -> Layers:
    """Return the layers of a round that needs `needed` (L,) experts, of which `missing` (L,) must move."""
    counts: list[int] = missing.tolist()
    resident = np.maximum(0.0, needed - missing)
    launches = np.where(resident > 0, verify.group_seconds, 0.0)
    barrier_launches = np.where(needed > 0, verify.group_seconds, 0.0)
    one = verify.expert_seconds
    return Layers(
        dense=np.full(len(counts), verify.before_experts_seconds),
        hits=launches + resident * one,
        works=[np.full(count, verify.group_seconds + one) for count in counts],
        barrier_hits=barrier_launches + resident * one,
        barrier_works=[np.full(count, one) for count in counts],
        ahead=split_by_layer(_arrivals(sum(counts), nominal, transfers), counts),
        own_arrivals=lambda count: _arrivals(count, nominal, transfers),
    )


def union_form(nominal: NominalTerms, transfers: TransferTerms, num_transfers: npt.ArrayLike) -> UnionHide:
    """Return the measured-union form of `num_transfers` transfers (any shape) in the nominal window."""
    return evaluate_union(
        num_transfers=num_transfers,
        expert_bytes=transfers.expert_bytes,
        measured_h2d_bytes_per_second=nominal.measured_h2d_bytes_per_second,
        latency_seconds=transfers.latency_seconds,
        issue_seconds=transfers.issue_seconds,
        batch_issue_seconds=transfers.batch_issue_seconds,
        draft_seconds=nominal.draft_seconds,
        router_seconds=nominal.router_seconds,
        overlap_seconds=nominal.overlap_seconds,
        idle_link_seconds=transfers.idle_link_seconds,
    )


def _arrivals(count: int, nominal: NominalTerms, transfers: TransferTerms) -> FloatArray:
    """Return arrival times (count,): issued as one batch where a batch has a cost, else one by one."""
    issues = np.full(count, transfers.issue_seconds)
    if count and transfers.batch_issue_seconds > 0:
        issues = np.zeros(count)
        issues[0] = transfers.batch_issue_seconds + count * transfers.issue_seconds
    copy = link_seconds(
        transfers.expert_bytes,
        h2d_bytes_per_second=nominal.measured_h2d_bytes_per_second,
        latency_seconds=transfers.latency_seconds,
    )
    return link_arrival_seconds(issues, np.full(count, copy))
