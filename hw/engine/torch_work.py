"""The real compute stream: dense work in torch, experts by the FP4 kernels straight from the device's slots.

Numbers are random, work is whole: every matrix of the shape, every expert on exactly the rows that the replayed
routing sends to it. Each expert's output goes to its own place in a table (row, choice); the table is summed in
ascending order of experts at the end of the visit, so that a row's result does not depend on when which expert came.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from hideaway.hw.engine.kv_store import KvStore
from hideaway.hw.engine.products import product
from hideaway.hw.engine.replayed import token_indices
from hideaway.hw.engine.row_groups import Indices, RowGroups
from hideaway.hw.engine.synthetic_layers import SyntheticTrunk
from hideaway.hw.engine.work import ForwardWork, LayeredWork, Seat
from hideaway.sim.inputs.routing import RoutingTrace

ComputeExpert = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""From an expert's bytes (uint8) and rows (n, hidden) to outputs (n, hidden)."""

ComputeSlots = Callable[[Sequence[int], torch.Tensor, Sequence[int]], torch.Tensor]
"""From slots, the rows of their experts one after the other and where each expert's begin and end, to outputs."""


class TorchWork(LayeredWork):
    """Executes the compute of a run.

    Parameters
    ----------
    slot_tensor : callable
        The bytes of a slot.
    lookahead : int
        Next layers whose routers run at each visit.
    compute_slots : callable, optional
        What computes a visit's resident experts at once; by default one by one.
    """

    def __init__(
        self,
        trunk: SyntheticTrunk,
        trace: RoutingTrace,
        *,
        compute_expert: ComputeExpert,
        slot_tensor: Callable[[int], torch.Tensor],
        lookahead: int,
        compute_slots: ComputeSlots | None = None,
    ) -> None:
        self.num_layers = trace.num_layers
        self._trunk = trunk
        self._trace = trace
        self._compute_expert = compute_expert
        self._slot_tensor = slot_tensor
        self._lookahead = lookahead
        self._compute_slots = compute_slots
        self._kv = KvStore()
        self._device = trunk.head.device
        self._forward: ForwardWork | None = None
        self._rows = trunk.embedding[:0]
        self._inputs = self._rows
        self._logits = self._rows
        self._groups: list[RowGroups] = []
        self._table = trunk.embedding[:0]

    def draft(self, seats: tuple[Seat, ...]) -> None:
        """Run the drafter over the blocks, and its argmax."""
        self._trunk.draft(self._embedded(seats))
        self._settle()

    def route(self, seats: tuple[Seat, ...], exact_depth: int, num_layers: int | None = None) -> None:
        """Run every router on what is at hand; where `exact_depth` is above 1 those layers' attention as well."""
        rows = self._embedded(seats)
        for number, layer in enumerate(self._trunk.moe_layers):
            if exact_depth > 1 and number < exact_depth:
                rows = layer.attend(rows, seats, self._kv)
            for router in self._trunk.routers(number, 1):
                product(layer.normed(rows), router)
        self._settle()

    def begin(self, forward: ForwardWork) -> None:
        """Take up a forward: embed its rows, group them by expert."""
        self._forward = forward
        ids = self._trace.expert_ids[token_indices(forward.replayed.ranges, self._trace.num_tokens)]
        self._groups = [RowGroups(ids[:, layer]) for layer in range(self._trace.num_layers)]
        self._rows = self._embedded(forward.every_seat)
        num_rows, top_k = ids.shape[0], ids.shape[2]
        if self._table.shape[0] < num_rows * top_k:
            self._table = self._rows.new_zeros((num_rows * top_k, self._rows.shape[1]))

    def dense(self, layer: int) -> None:
        """Compute attention, shared experts and the routers of this layer and those looked ahead to."""
        forward, made = self._work(), self._trunk.moe_layers[layer]
        if layer >= forward.reused_layers:
            self._rows = made.attend(self._rows, forward.every_seat, self._kv)
        elif forward.prefill is not None:
            first = self._rows.shape[0] - forward.prefill.num_rows
            prompt = made.attend(self._rows[first:], (forward.prefill,), self._kv)
            self._rows = torch.cat([self._rows[:first], prompt])
        self._inputs = made.normed(self._rows)
        logits = [product(self._inputs, router) for router in self._trunk.routers(layer, 1 + self._lookahead)]
        self._logits = logits[0]
        if made.always is not None:
            self._rows = self._rows + made.always.forward(self._inputs)
        self._settle()

    def learn_routing(self, layer: int) -> None:
        """Bring as many ids to the host as were routed (their values are replayed)."""
        top_k = self._groups[layer].ids.shape[1]
        self._logits.topk(top_k, dim=1).indices.cpu()

    def needed(self, layer: int) -> int:
        """Return the replayed mask."""
        return self._work().replayed.needed[layer]

    def hits(self, layer: int, experts: dict[int, int]) -> None:
        """Compute the resident experts, at once or in ascending order."""
        if self._compute_slots is not None and experts:
            groups = [self._groups[layer].places(expert) for expert in experts]
            places, inputs = self._inputs_of(layer, np.concatenate(groups))
            offsets = np.cumsum([0, *(len(group) for group in groups)]).tolist()
            self._table[places] = self._compute_slots(list(experts.values()), inputs, offsets)
        else:
            for expert, slot in experts.items():
                self._expert(layer, expert, slot)
        self._settle()

    def arrival(self, layer: int, expert: int, slot: int) -> None:
        """Compute one expert that has just arrived."""
        self._expert(layer, expert, slot)
        self._settle()

    def finish_layer(self, layer: int) -> None:
        """Add each row's experts, weighted by the softmax of their own logits, in ascending order."""
        ids = torch.from_numpy(self._groups[layer].ids).to(self._device)
        chosen = self._logits.gather(1, ids.clamp(min=0))
        weights = torch.softmax(chosen.masked_fill(ids < 0, -torch.inf), dim=1).nan_to_num()
        num_rows, top_k = ids.shape
        table = self._table[: num_rows * top_k].view(num_rows, top_k, -1)
        self._rows = self._rows + torch.bmm(weights[:, None], table)[:, 0]
        self._settle()

    def finish_forward(self) -> None:
        """Compute the layers without routed experts, then the head of the rows that need logits."""
        forward = self._work()
        for layer in self._trunk.dense_layers:
            self._rows = layer.attend(self._rows, forward.every_seat, self._kv)
            if layer.always is not None:
                self._rows = self._rows + layer.always.forward(layer.normed(self._rows))
        rows = self._rows
        if forward.prefill is not None:
            seated = rows.shape[0] - forward.prefill.num_rows
            rows = torch.cat([rows[:seated], rows[-1:]])
        self._trunk.logits(rows).argmax(dim=1).cpu()

    def forget(self, seq_id: int) -> None:
        """Give back the cache of a sequence."""
        self._kv.forget(seq_id)

    @property
    def rows(self) -> torch.Tensor:
        """The rows (rows, hidden) as the last layer left them."""
        return self._rows

    def _expert(self, layer: int, expert: int, slot: int) -> None:
        places, inputs = self._inputs_of(layer, self._groups[layer].places(expert))
        self._table[places] = self._compute_expert(self._slot_tensor(slot), inputs)

    def _inputs_of(self, layer: int, uses: Indices) -> tuple[torch.Tensor, torch.Tensor]:
        """Return places in the table, and the rows that are read there."""
        places = torch.from_numpy(uses).to(self._device)
        return places, self._inputs.index_select(0, places // self._groups[layer].ids.shape[1])

    def _embedded(self, seats: tuple[Seat, ...]) -> torch.Tensor:
        """Return input rows of seats: which token stands where is arbitrary, but the same in every run."""
        positions = [
            torch.arange(seat.tokens_before, seat.tokens_before + seat.num_rows) + 7919 * seat.seq_id
            for seat in seats
        ]
        tokens = torch.cat(positions).to(self._device) % self._trunk.embedding.shape[0]
        return self._trunk.embedding.index_select(0, tokens)

    def _work(self) -> ForwardWork:
        assert self._forward is not None
        return self._forward

    def _settle(self) -> None:
        """Let an accelerator finish, so that the clock reads what was computed."""
        if self._device.type == "cuda":
            torch.cuda.current_stream(self._device).synchronize()
