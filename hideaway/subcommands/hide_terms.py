"""The terms of `hideaway hide`: what a round moves, what it may hide behind, what verify computes meanwhile.

Terms come from flags (`hideaway.subcommands.hide_flags`) or from a model and a hardware profile through the
calibrated cost model (`terms_from_scenario`). What follows from them is in
`hideaway.subcommands.hide_answer`.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field

from hideaway.sim.contract import evaluate_hide_inequality
from hideaway.sim.costs import CostModel
from hideaway.sim.errors import InputError
from hideaway.sim.hide import nominal_saturation
from hideaway.sim.inputs.models import ModelSpec
from hideaway.sim.inputs.profiles import Profile
from hideaway.sim.number_checks import finite_number, whole_number

MOST_LAYERS = 4096
MOST_EXPERTS = 65536
MOST_SEQUENCES = 4096
MOST_ROWS = 1024
MOST_SECONDS = 1e9
_LEAST_SECONDS = 1e-12
MOST_BYTES = 1e18
"""Far beyond any model, batch or machine: what lies outside is a slip of the keyboard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NominalTerms:
    """The arguments of `evaluate_hide_inequality`, by their names there."""

    resident_fraction: float
    saturation: float
    total_expert_bytes: float
    measured_h2d_bytes_per_second: float
    draft_seconds: float
    router_seconds: float
    overlap_seconds: float

    def __post_init__(self) -> None:
        evaluate_hide_inequality(**self.as_arguments())
        for name in ("draft_seconds", "router_seconds", "overlap_seconds"):
            finite_number(name, getattr(self, name), maximum=MOST_SECONDS)
        finite_number("total_expert_bytes", self.total_expert_bytes, maximum=MOST_BYTES)
        rate = self.measured_h2d_bytes_per_second
        finite_number("measured_h2d_bytes_per_second", rate, minimum=1.0, maximum=MOST_BYTES)

    def as_arguments(self) -> dict[str, float]:
        """Return the terms as keyword arguments."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferTerms:
    """What one forward transfers: mean distinct experts of a layer, those that move, costs of each copy."""

    num_layers: int
    expert_bytes: int
    experts_per_layer: float
    missing_per_layer: float
    latency_seconds: float
    issue_seconds: float
    batch_issue_seconds: float
    idle_link_seconds: float

    def __post_init__(self) -> None:
        for name in ("latency_seconds", "issue_seconds", "batch_issue_seconds", "idle_link_seconds"):
            finite_number(name, getattr(self, name), maximum=MOST_SECONDS)
        finite_number("experts_per_layer", self.experts_per_layer, maximum=MOST_EXPERTS)
        finite_number("missing_per_layer", self.missing_per_layer, maximum=self.experts_per_layer)
        whole_number("num_layers", self.num_layers, minimum=1)
        whole_number("expert_bytes", self.expert_bytes, minimum=1, maximum=int(MOST_BYTES))
        if self.num_layers > MOST_LAYERS:
            raise InputError(f"num_layers is {self.num_layers}; give at most {MOST_LAYERS}")


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyTerms:
    """Compute of one layer of the verify forward, and of the rest of it.

    A launch of n experts takes `group_seconds` + n·`expert_seconds`, rows included.
    `before_experts_seconds` is attention, dense part, router and the host's round trip.
    """

    before_experts_seconds: float
    group_seconds: float
    expert_seconds: float
    other_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockTerms:
    """Sequences in one forward, rows of each, and the layer they are routed in."""

    num_sequences: int
    block_size: int
    top_k: int
    num_experts: int

    def __post_init__(self) -> None:
        for name, most in (
            ("num_sequences", MOST_SEQUENCES),
            ("block_size", MOST_ROWS),
            ("num_experts", MOST_EXPERTS),
        ):
            if whole_number(name, getattr(self, name), minimum=1) > most:
                raise InputError(f"{name} is {getattr(self, name)}; give at most {most}")
        if whole_number("top_k", self.top_k, minimum=1) > self.num_experts:
            raise InputError(f"top_k is {self.top_k} but num_experts is {self.num_experts}; lower top_k")


@dataclass(frozen=True, slots=True, kw_only=True)
class HideTerms:
    """Everything the forms can be given; what is None was not given, and its forms are left out.

    `sources` says for each term where it came from.
    """

    nominal: NominalTerms
    transfers: TransferTerms | None = None
    verify: VerifyTerms | None = None
    block: BlockTerms | None = None
    verify_seconds: float | None = None
    acceptance_length: float | None = None
    b0_seconds_per_token: float | None = None
    sources: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.verify_seconds is not None:
            finite_number("verify_seconds", self.verify_seconds, maximum=MOST_SECONDS)
        if self.b0_seconds_per_token is not None:
            b0 = self.b0_seconds_per_token
            finite_number("b0_seconds_per_token", b0, minimum=_LEAST_SECONDS, maximum=MOST_SECONDS)
        if self.acceptance_length is not None:
            most = math.inf if self.block is None else float(self.block.block_size)
            finite_number("acceptance_length", self.acceptance_length, minimum=1.0, maximum=most)


@dataclass(frozen=True, slots=True, kw_only=True)
class HideScenario:
    """A model on a card: the knobs from which `terms_from_scenario` derives every term."""

    model: ModelSpec
    profile: Profile
    slot_fraction: float
    block_size: int
    num_sequences: int
    context_tokens: int
    router_exact_depth: int
    batched_issue: bool

    def __post_init__(self) -> None:
        finite_number("slot_fraction", self.slot_fraction, maximum=1.0)
        finite_number("context_tokens", self.context_tokens, maximum=1e8)
        _ = self.block
        if not 1 <= self.router_exact_depth <= self.model.num_layers:
            raise InputError(
                f"router_exact_depth is {self.router_exact_depth} but {self.model.name} has "
                f"{self.model.num_layers} MoE layers; give a number from 1 to that"
            )

    @property
    def block(self) -> BlockTerms:
        """The scenario's rows and the layer they are routed in."""
        return BlockTerms(
            num_sequences=self.num_sequences,
            block_size=self.block_size,
            top_k=self.model.top_k,
            num_experts=self.model.num_experts,
        )


def terms_from_scenario(
    scenario: HideScenario, *, experts_per_layer: float | None = None, missing_per_layer: float | None = None
) -> HideTerms:
    """Return the terms of one lock-step round of a scenario.

    Parameters
    ----------
    scenario
        Model, card and knobs.
    experts_per_layer, missing_per_layer
        A measured mean union of a layer, and how many of it are not resident. Without them the nominal
        union min(E, c·B·k), and its share without a slot. They change transfers and verify, never the
        nominal terms.
    """
    model, profile = scenario.model, scenario.profile
    costs = CostModel(model, profile)
    saturation = float(nominal_saturation(**asdict(scenario.block)))
    union = saturation * model.num_experts if experts_per_layer is None else experts_per_layer
    rows = scenario.num_sequences * scenario.block_size
    link = costs.link
    per_copy = link.batch_transfer_seconds if scenario.batched_issue else link.issue_seconds
    return HideTerms(
        nominal=NominalTerms(
            resident_fraction=scenario.slot_fraction,
            saturation=saturation,
            total_expert_bytes=model.total_expert_bytes,
            measured_h2d_bytes_per_second=link.bytes_per_second,
            draft_seconds=costs.draft_seconds(scenario.num_sequences, scenario.block_size),
            router_seconds=costs.route_seconds(rows, scenario.router_exact_depth),
            overlap_seconds=0.0,
        ),
        transfers=TransferTerms(
            num_layers=model.num_layers,
            expert_bytes=model.expert_bytes,
            experts_per_layer=union,
            missing_per_layer=(1.0 - scenario.slot_fraction) * union
            if missing_per_layer is None
            else missing_per_layer,
            latency_seconds=link.latency_seconds,
            issue_seconds=per_copy,
            batch_issue_seconds=link.batch_seconds if scenario.batched_issue else 0.0,
            idle_link_seconds=0.0,
        ),
        verify=_verify_terms(scenario, costs, union),
        block=scenario.block,
        sources=_sources(scenario, measured=experts_per_layer is not None),
    )


def _sources(scenario: HideScenario, *, measured: bool) -> dict[str, str]:
    """Return where each derived term comes from."""
    from_model = f"model {scenario.model.name}"
    from_profile = f"profile {scenario.profile.name}"
    costs = f"cost model of {scenario.profile.name}"
    union = "sampled routing" if measured else "min(E, c·B·k)"
    return {
        "resident_fraction": "slot fraction",
        "saturation": "min(1, c·B·k/E)",
        "total_expert_bytes": from_model,
        "measured_h2d_bytes_per_second": from_profile,
        "draft_seconds": costs,
        "router_seconds": costs,
        "overlap_seconds": "default",
        "num_layers": from_model,
        "expert_bytes": from_model,
        "experts_per_layer": union,
        "missing_per_layer": union if measured else f"(1-r) · {union}",
        "latency_seconds": from_profile,
        "issue_seconds": from_profile,
        "batch_issue_seconds": from_profile,
        "idle_link_seconds": "default",
        "before_experts_seconds": costs,
        "group_seconds": from_profile,
        "expert_seconds": costs,
        "other_seconds": costs,
        "verify_seconds": costs,
        "num_sequences": "concurrency",
        "block_size": "block size",
        "top_k": from_model,
        "num_experts": from_model,
    }


def _verify_terms(scenario: HideScenario, costs: CostModel, union: float) -> VerifyTerms:
    """Return verify's compute as the engine charges it: rows spread evenly over the experts of the union.

    The host needs to learn the routed set unless every expert is resident; every row needs its logits.
    """
    rows = scenario.num_sequences * scenario.block_size
    contexts = [(scenario.block_size, scenario.context_tokens)] * scenario.num_sequences
    rows_per_expert = rows * scenario.model.top_k / union if union > 0 else 0.0
    return VerifyTerms(
        before_experts_seconds=costs.dense_seconds(rows, contexts)
        + costs.router_seconds(rows)
        + (costs.round_trip_seconds if scenario.slot_fraction < 1.0 else 0.0),
        group_seconds=costs.experts.group_seconds,
        expert_seconds=costs.experts.expert_seconds + rows_per_expert * costs.experts.row_seconds,
        other_seconds=costs.other_seconds(rows, rows) + costs.iteration_seconds,
    )
