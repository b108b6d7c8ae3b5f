"""What the compute stream spends on one forward, worked out once and then read layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from hideaway.sim.costs import CostModel


def stretched(seconds: float, start: float, link_busy_until: float, slowdown: float) -> float:
    """Return how long work of `seconds` takes from `start` when it runs slower while the link is busy.

    The part that overlaps the link runs at 1 / (1 + slowdown) of full speed.
    """
    if slowdown == 0.0 or link_busy_until <= start:
        return seconds
    slowed = seconds * (1.0 + slowdown)
    overlap = link_busy_until - start
    if slowed <= overlap:
        return slowed
    return overlap + seconds - overlap / (1.0 + slowdown)


class ForwardCosts:
    """Costs of every layer of one forward.

    Parameters
    ----------
    rows : int
        Token rows, prefill included.
    contexts : sequence of (rows, context_tokens)
        Each sequence's rows and the tokens they attend to.
    head_rows : int
        Rows whose logits are needed: the verified ones, and the last of a prompt.
    lookahead : int
        Next layers whose routing is predicted at each visit: one router each.
    """

    __slots__ = (
        "_costs",
        "_pairs",
        "before_experts_seconds",
        "other_seconds",
        "round_trip_seconds",
        "router_seconds",
    )

    def __init__(
        self,
        model: CostModel,
        rows: int,
        contexts: Sequence[tuple[int, int]],
        *,
        head_rows: int,
        top_k: int,
        lookahead: int,
    ) -> None:
        self._costs = model.experts
        self._pairs = rows * top_k
        self.router_seconds = model.router_seconds(rows) * (1 + lookahead)
        self.before_experts_seconds = model.dense_seconds(rows, contexts) + self.router_seconds
        self.round_trip_seconds = model.round_trip_seconds
        self.other_seconds = model.other_seconds(rows, head_rows) + model.iteration_seconds

    def hits_seconds(self, hits: int, needed: int) -> float:
        """Return one grouped computation of the resident experts, with their share of the rows."""
        count = hits.bit_count()
        if count == 0:
            return 0.0
        costs = self._costs
        share = self._pairs * count / needed.bit_count()
        return costs.group_seconds + count * costs.expert_seconds + share * costs.row_seconds

    def arrival_seconds(self, needed: int) -> float:
        """Return the computation of one expert on its arrival; rows are spread evenly over the needed experts."""
        costs = self._costs
        return (
            costs.group_seconds + costs.expert_seconds + self._pairs / needed.bit_count() * costs.row_seconds
        )

    def with_dense(
        self, model: CostModel, dense_rows: int, contexts: Sequence[tuple[int, int]]
    ) -> ForwardCosts:
        """Return the same costs with attention and dense work for `dense_rows` rows only (none: no time)."""
        other = copy(self)
        dense_seconds = model.dense_seconds(dense_rows, contexts) if dense_rows else 0.0
        other.before_experts_seconds = dense_seconds + self.router_seconds
        return other
