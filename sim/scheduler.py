"""The scheduler: `handle(event) -> commands`. No clock, no input or output, no randomness.

Theory of operation. The world reports facts (`hideaway.sim.events`) and executes commands
(`hideaway.sim.commands`). An iteration is one forward:

    Ready -> Draft -> DraftDone -> [Route -> RouteDone] -> Forward -> per layer: LayerRouted, LayerDone -> ForwardDone

Sequences are the business of `hideaway.sim.batch`, expert slots that of `hideaway.sim.expert_cache`; here they
meet: admission sees the demands of the drafted sequences, and prefetch follows from whom it seats. The last
command of a list says what the compute stream does next; the rest are transfers. The same object drives the
simulated and the real engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from hideaway.sim.admission import VerifyDemand
from hideaway.sim.batch import Batch
from hideaway.sim.commands import Command, Draft, Forward, Idle, Route
from hideaway.sim.errors import IllegalEventError
from hideaway.sim.events import (
    DraftDone,
    Event,
    ForwardDone,
    LayerDone,
    LayerRouted,
    LayersHit,
    Ready,
    RequestArrived,
    RequestFailed,
    RouteDone,
    TransfersArrived,
    TransfersCancelled,
)
from hideaway.sim.expert_cache import ExpertCache
from hideaway.sim.masks import packed
from hideaway.sim.policies.admission.base import AdmissionPolicy
from hideaway.sim.request import Sequence


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """What the scheduler must know besides its parts.

    Parameters
    ----------
    speculative : bool
        Draft and verify blocks; otherwise decode token by token.
    exact_depth : int
        Layers whose experts the route pass knows exactly (1: what a real engine can do; num_layers: the oracle).
    expert_bytes : int
        Size of one expert, for byte demands.
    """

    speculative: bool
    exact_depth: int
    expert_bytes: int


class Scheduler:
    """Decides what runs next and which experts move.

    Attributes
    ----------
    seated_rounds, waited_rounds : int
        Drafted sequences that admission seated, and that it made wait.
    """

    def __init__(
        self, options: SchedulerOptions, batch: Batch, cache: ExpertCache, admission: AdmissionPolicy
    ) -> None:
        self.options = options
        self.batch = batch
        self.cache = cache
        self.seated_rounds = 0
        self.waited_rounds = 0
        self._admission = admission
        self._handlers: dict[type, Callable[[Any], list[Command]]] = {
            LayerRouted: self._on_layer_routed,
            LayerDone: self._on_layer_done,
            LayersHit: self._on_layers_hit,
            TransfersArrived: self._on_transfers_arrived,
            TransfersCancelled: self._on_transfers_cancelled,
            Ready: self._on_ready,
            DraftDone: self._on_draft_done,
            RouteDone: self._on_route_done,
            ForwardDone: self._on_forward_done,
            RequestFailed: self._on_request_failed,
            RequestArrived: self._on_request_arrived,
        }

    def handle(self, event: Event) -> list[Command]:
        """Return the commands that answer `event`. Changes state.

        Raises
        ------
        IllegalEventError
            The event cannot happen now.
        InputError
            A request can never fit the KV memory.
        """
        handler = self._handlers.get(type(event))
        if handler is None:
            raise IllegalEventError(f"{event!r} is not an event")
        return handler(event)

    def _on_layer_routed(self, event: LayerRouted) -> list[Command]:
        return self.cache.visit(event.layer, event.needed, event.ahead)

    def _on_layer_done(self, event: LayerDone) -> list[Command]:
        self.cache.visit_done(event.layer, event.fetched)
        return []

    def _on_layers_hit(self, event: LayersHit) -> list[Command]:
        self.cache.count_all_hits(event.needed)
        return []

    def _on_transfers_arrived(self, event: TransfersArrived) -> list[Command]:
        self.cache.arrived(event.arrivals)
        return []

    def _on_transfers_cancelled(self, event: TransfersCancelled) -> list[Command]:
        self.cache.cancelled(event.layer, event.experts)
        return []

    def _on_request_arrived(self, event: RequestArrived) -> list[Command]:
        self.batch.join_line(event.seq_id, event.input_tokens, event.output_tokens)
        return []

    def _on_request_failed(self, event: RequestFailed) -> list[Command]:
        self.batch.drop(event.seq_id)
        return []

    def _on_ready(self, event: Ready) -> list[Command]:
        self.batch.seat_waiting()
        if self.options.speculative:
            undrafted = [sequence for sequence in self.batch.decoding() if not sequence.drafted]
            undrafted = self.batch.grow(undrafted)
            if undrafted:
                return [Draft(tuple(sequence.seq_id for sequence in undrafted))]
        return self._plan_forward()

    def _on_draft_done(self, event: DraftDone) -> list[Command]:
        for seq_id in event.seq_ids:
            self.batch.note_drafted(seq_id)
        if self.cache.prefetch.routes:
            every_layer = self.cache.residency.num_layers
            named = every_layer if self._admission.needs_bytes else self.cache.prefetch.horizon
            return [Route(event.seq_ids, self.options.exact_depth, named)]
        return self._plan_forward()

    def _on_route_done(self, event: RouteDone) -> list[Command]:
        for seq_id, predicted in zip(event.seq_ids, event.predicted, strict=True):
            one = packed(predicted, self.cache.num_experts) if self._admission.needs_bytes else 0
            self.batch.note_predicted(seq_id, predicted, one)
        return self._plan_forward()

    def _plan_forward(self) -> list[Command]:
        """Seat the sequences of the next forward and prefetch for them."""
        decoding = self.batch.decoding()
        if self.options.speculative:
            seated = self._admit([sequence for sequence in decoding if sequence.drafted])
        else:
            seated = self.batch.grow(decoding)
        prefill = self.batch.prefill_chunk()
        if not seated and prefill is None:
            return [Idle()]
        commands: list[Command] = []
        if self.cache.prefetch.routes and any(sequence.predicted for sequence in seated):
            commands += self.cache.place_wants(self.cache.prefetch.on_route(_union_of_predictions(seated)))
        rows = self.batch.options.block_size if self.options.speculative else 1
        commands.append(Forward(tuple((sequence.seq_id, rows) for sequence in seated), prefill))
        return commands

    def _admit(self, drafted: list[Sequence]) -> list[Sequence]:
        """Return who is verified now; the head of the line rather than nobody."""
        if not drafted:
            return drafted
        block = self.batch.options.block_size
        demands = [
            VerifyDemand(sequence.seq_id, block, bytes_) for sequence, bytes_ in self._demands(drafted)
        ]
        admission = self._admission.admit(demands)
        chosen = {*admission.seated_ids, *admission.admitted_ids}
        seated = [sequence for sequence in drafted if sequence.seq_id in chosen] or drafted[:1]
        self.seated_rounds += len(seated)
        self.waited_rounds += len(drafted) - len(seated)
        return seated

    def _demands(self, drafted: list[Sequence]) -> Iterator[tuple[Sequence, int]]:
        """Yield each sequence with the bytes of its predicted, non-resident experts (0 if nobody asks)."""
        cache = self.cache
        absent = ~packed(cache.residency.resident, cache.num_experts) if self._admission.needs_bytes else 0
        for sequence in drafted:
            missing = sequence.predicted_packed & absent
            yield sequence, missing.bit_count() * self.options.expert_bytes

    def _on_forward_done(self, event: ForwardDone) -> list[Command]:
        for seq_id, tokens in event.committed:
            self.batch.note_committed(seq_id, tokens)
        if event.prefilled is not None:
            self.batch.note_prefilled(*event.prefilled)
        self.cache.round_done(event.kept_rows)
        return self.cache.place_wants(self.cache.prefetch.on_forward(event.last_rows, event.kept_rows))


def _union_of_predictions(sequences: list[Sequence]) -> list[int]:
    """Return per layer the union of the sequences' predicted experts."""
    routed = [sequence.predicted for sequence in sequences if sequence.predicted]
    unions = list(routed[0])
    for predicted in routed[1:]:
        unions = [union | experts for union, experts in zip(unions, predicted, strict=True)]
    return unions
