"""What each operation costs on a given card: the calibrated cost model that both worlds and every policy use.

Built from a hardware profile (`hideaway.sim.inputs.profiles`) and a model (`hideaway.sim.inputs.models`). Every
operation is affine or a roofline: launch floor + max(bytes / bandwidth, flops / rate), Williams, Waterman and
Patterson, "Roofline", CACM 52(4), 2009; a profile may say that a share of the lesser is not hidden. The simulated
machine that spends these seconds is `hideaway.sim.world`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.models import ModelSpec
from hideaway.sim.inputs.profiles import ATTENTION_FLOPS, CACHE_READ, DENSE_READ, SERIAL_SHARE, Profile

BF16_BYTES = 2
FLOPS_PER_WEIGHT = 2  # one multiply and one add


@dataclass(frozen=True, slots=True)
class ExpertCosts:
    """Costs of the routed experts of one layer visit, affine in experts and rows.

    A group of n experts that together serve `rows` token-expert pairs takes
    `group_seconds + n * expert_seconds + rows * row_seconds`.
    """

    group_seconds: float
    expert_seconds: float
    row_seconds: float


@dataclass(frozen=True, slots=True)
class LinkCosts:
    """Costs of one host-to-device copy: issue on the host thread, then latency + bytes / bandwidth on the link."""

    issue_seconds: float
    batch_seconds: float
    batch_transfer_seconds: float
    latency_seconds: float
    bytes_per_second: float
    holds_issue_thread: bool

    def copy_seconds(self, num_bytes: int) -> float:
        """Return the link time of one copy of `num_bytes`."""
        return self.latency_seconds + num_bytes / self.bytes_per_second


class CostModel:
    """Seconds of every operation of `model` on the card of `profile`.

    Parameters
    ----------
    launch : {"eager", "graph"}
        How the dense part of a layer is launched.
    drafter_parameters : float
        Weights of the drafter (bf16), embedding and head excluded: those are the target's.
    pageable : bool
        The expert store is in pageable memory: slower copies that hold the issue thread throughout.

    Raises
    ------
    InputError
        `launch` is neither of the two.
    """

    def __init__(
        self,
        model: ModelSpec,
        profile: Profile,
        *,
        launch: str = "eager",
        drafter_parameters: float = 0.8e9,
        pageable: bool = False,
    ) -> None:
        launches = {"eager": "compute.layer_launch_seconds", "graph": "compute.layer_launch_seconds_graph"}
        if launch not in launches:
            raise InputError(f"launch is {launch!r}; it must be one of {', '.join(launches)}")
        value = profile.value
        self.model = model
        self.profile = profile
        self.pageable = pageable
        self.drafter_bytes = round(drafter_parameters * BF16_BYTES)
        self._read_bytes_per_second = value("memory.read_bytes_per_second")
        dense_read = profile.optional_value(DENSE_READ)
        self._dense_bytes_per_second = self._read_bytes_per_second if dense_read is None else dense_read
        self._serial_share = profile.optional_value(SERIAL_SHARE) or 0.0
        self._flops_per_second = value("compute.flops_per_second")
        self._context_rates = self._own_context_rates()
        self._layer_launch_seconds = value(launches[launch])
        self._router_launch_seconds = value("router.launch_seconds")
        self._draft_launch_seconds = value("draft.launch_seconds")
        self.round_trip_seconds = value("host.round_trip_seconds")
        self.iteration_seconds = value("host.iteration_seconds")
        self.compute_slowdown = value("contention.compute_slowdown")
        self.link_slowdown = value("contention.link_slowdown")
        self.link = self._link_costs()
        self.experts = ExpertCosts(
            group_seconds=value("expert.group_launch_seconds"),
            expert_seconds=value("expert.launch_seconds") + model.expert_bytes / self._read_bytes_per_second,
            row_seconds=model.expert_flops_per_row / value("compute.expert_flops_per_second"),
        )

    def _link_costs(self) -> LinkCosts:
        value = self.profile.value
        pinned = not self.pageable
        return LinkCosts(
            issue_seconds=value("issue.seconds_per_call") if pinned else value("link.pageable_issue_seconds"),
            batch_seconds=value("issue.batch_seconds"),
            batch_transfer_seconds=value("issue.batch_seconds_per_transfer"),
            latency_seconds=value("link.latency_seconds"),
            bytes_per_second=value(
                "link.h2d_bytes_per_second" if pinned else "link.pageable_bytes_per_second"
            ),
            holds_issue_thread=self.pageable,
        )

    def _own_context_rates(self) -> tuple[float, float] | None:
        """Return the rates at which attention reads caches and computes, None where they are those of the weights."""
        read, compute = (self.profile.optional_value(name) for name in (CACHE_READ, ATTENTION_FLOPS))
        if read is None and compute is None:
            return None
        return read or self._dense_bytes_per_second, compute or self._flops_per_second

    def _roofline(self, num_bytes: float, flops: float) -> float:
        read, compute = num_bytes / self._dense_bytes_per_second, flops / self._flops_per_second
        longer = max(read, compute)
        return longer + self._serial_share * min(read, compute) if self._serial_share else longer

    def dense_seconds(self, rows: int, contexts: Sequence[tuple[int, int]] = ()) -> float:
        """Return attention and dense work of one MoE layer, shared experts included, router excluded.

        Parameters
        ----------
        rows : int
            Token rows in the forward.
        contexts : sequence of (rows, context_tokens)
            For each sequence its rows and the tokens they attend to; the mean over the layers' kinds is taken.
        """
        model = self.model
        router_weights = model.router_bytes_per_layer / BF16_BYTES
        num_bytes = float(model.dense_bytes_per_layer - model.router_bytes_per_layer)
        flops = (model.dense_flops_per_row - FLOPS_PER_WEIGHT * router_weights) * rows
        num_layers = len(model.layer_kinds)
        apart = 0.0
        for sequence_rows, context_tokens in contexts:
            cache_bytes = model.kv_read_bytes_per_row(context_tokens) / num_layers
            attention = model.attention_flops_per_row_per_context_token * sequence_rows * context_tokens
            if self._context_rates is None:
                num_bytes += cache_bytes
                flops += attention
            else:
                apart += cache_bytes / self._context_rates[0] + attention / self._context_rates[1]
        return self._layer_launch_seconds + self._roofline(num_bytes, flops) + apart

    def router_seconds(self, rows: int) -> float:
        """Return the router of one layer over `rows` token rows."""
        num_bytes = self.model.router_bytes_per_layer
        flops = FLOPS_PER_WEIGHT * (num_bytes / BF16_BYTES) * rows
        return self._router_launch_seconds + self._roofline(num_bytes, flops)

    def experts_seconds(self, num_experts: int, rows: int) -> float:
        """Return one grouped computation of `num_experts` experts serving `rows` token-expert pairs; 0 for none."""
        if num_experts == 0:
            return 0.0
        costs = self.experts
        return costs.group_seconds + num_experts * costs.expert_seconds + rows * costs.row_seconds

    def other_seconds(self, rows: int, head_rows: int) -> float:
        """Return the rest of a forward: its non-MoE layers over all rows, the head over those that need logits."""
        model = self.model
        extra = float(model.extra_dense_layer_bytes)
        layers = self._layer_launch_seconds * model.num_dense_layers
        body = self._roofline(extra, FLOPS_PER_WEIGHT * (extra / BF16_BYTES) * rows)
        return layers + body + self.head_seconds(head_rows)

    def head_seconds(self, rows: int) -> float:
        """Return the language-model head over `rows` rows."""
        weights = self.model.vocab_size * self.model.hidden_size
        return self._roofline(self.model.head_bytes, FLOPS_PER_WEIGHT * weights * rows)

    def draft_seconds(self, num_seqs: int, block_size: int) -> float:
        """Return one parallel draft forward: every sequence's block at once, then the target's head."""
        if num_seqs == 0 or block_size <= 1:
            return 0.0
        rows = num_seqs * block_size
        weights = self.drafter_bytes / BF16_BYTES
        body = self._roofline(self.drafter_bytes, FLOPS_PER_WEIGHT * weights * rows)
        return self._draft_launch_seconds + body + self.head_seconds(rows)

    def route_seconds(self, num_rows: int, depth: int, contexts: Sequence[tuple[int, int]] = ()) -> float:
        """Return the route pass over the drafted block: every layer's router, and attention where it is exact.

        At depth 1 there is no exact pass: the routers run on what is at hand and their answers are predictions.
        At a greater depth each exact layer needs its attention and dense part as well; `contexts` as in
        `dense_seconds`.
        """
        routers = self.model.num_layers * self.router_seconds(num_rows)
        return routers + (depth * self.dense_seconds(num_rows, contexts) if depth > 1 else 0.0)

    def forward_floor_seconds(self, rows: int, experts_per_layer: float, top_k: int) -> float:
        """Return the compute of a forward with every expert resident and no waiting."""
        layer = self.dense_seconds(rows) + self.router_seconds(rows)
        costs = self.experts
        layer += (
            costs.group_seconds + experts_per_layer * costs.expert_seconds + rows * top_k * costs.row_seconds
        )
        return self.model.num_layers * layer + self.other_seconds(rows, rows) + self.iteration_seconds

    def transfer_seconds(self, num_bytes: int) -> float:
        """Return the link time of one copy (latency and bytes); issue is `issue_seconds`."""
        return self.link.copy_seconds(num_bytes)

    def issue_seconds(self, num_transfers: int, *, batched: bool) -> float:
        """Return the host time to issue `num_transfers` copies one by one, or as one batch."""
        if num_transfers == 0:
            return 0.0
        link = self.link
        if batched:
            return link.batch_seconds + num_transfers * link.batch_transfer_seconds
        return num_transfers * link.issue_seconds
