"""The compute stream of a real model: transformers' forward, which calls at every layer's experts, and the drafter.

The dense part runs inside the model's own code (`hideaway.hw.target`); experts are computed here, from the device's
slots, as the visitor says. What a forward found out (logits, routed ids, features) stays until the next one, for
`generated.py` to read.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch

from hideaway.hw.acceptance.sampling import SamplingRule
from hideaway.hw.engine.block_drafter import BlockDrafter, Drafts
from hideaway.hw.engine.expert_rows import ExpertRows
from hideaway.hw.engine.kv_store import KvStore
from hideaway.hw.engine.token_book import TokenBook
from hideaway.hw.engine.torch_work import ComputeExpert, ComputeSlots
from hideaway.hw.engine.work import AtExperts, ForwardWork, Seat
from hideaway.hw.target.attention import PackedRows
from hideaway.hw.target.model import Hidden, Target
from hideaway.hw.target.predict import Predictor
from hideaway.sim.errors import HideawayError


class ModelWork:
    """Executes the compute of a run.

    Parameters
    ----------
    tokens : TokenBook
        What stands in the rows.
    drafter : BlockDrafter or None
        None where nothing is drafted.
    compute_expert, slot_tensor : callable
        What computes an expert, and the bytes of a slot.
    compute_slots : callable, optional
        What computes a visit's resident experts at once; by default one by one.

    Attributes
    ----------
    ids : list of array
        What the rows of the last forward chose, (rows, top_k), layer by layer.
    logits : torch.Tensor
        Of the seats' rows, and of the prompt chunk's last row after them.
    hidden : Hidden
        Of all rows.
    drafted : dict of seq_id to Tensor
        What a sequence's drafts were drawn from, (drafts, vocabulary); absent where nothing was drawn.
    named : dict of seq_id to tuple of int
        What the last route pass names.
    last_read : dict of seq_id to tuple of int
        Per layer, what a sequence's last kept rows read.
    """

    def __init__(
        self,
        target: Target,
        tokens: TokenBook,
        *,
        drafter: BlockDrafter | None,
        rule: SamplingRule,
        predictor: Predictor,
        compute_expert: ComputeExpert,
        slot_tensor: Callable[[int], torch.Tensor],
        compute_slots: ComputeSlots | None = None,
    ) -> None:
        self.target = target
        self._tokens = tokens
        self._drafter = drafter
        self._rule = rule
        self.predictor = predictor
        self._compute_expert = compute_expert
        self._slot_tensor = slot_tensor
        self._compute_slots = compute_slots
        self._kv = KvStore()
        self._table = target.embedding[:0]
        self._experts: ExpertRows | None = None
        self._total = self._table
        self._arguments: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None = None
        self.ids: list[npt.NDArray[np.int64]] = []
        self.logits = self._table
        self.hidden = Hidden(self._table, self._table)
        self.drafted: dict[int, torch.Tensor] = {}
        self.named: dict[int, tuple[int, ...]] = {}
        self.last_read: dict[int, tuple[int, ...]] = {}

    def draft(self, seats: tuple[Seat, ...]) -> None:
        """Run the drafter over the blocks and keep what it proposes. Changes state."""
        if self._drafter is None:
            raise HideawayError("a draft was asked for without a drafter; this is a fault in the engine")
        drafts: Drafts = self._drafter.draft(seats, self._tokens, self._rule)
        for row, seat in enumerate(seats):
            self._tokens.propose(seat.seq_id, drafts.tokens[row].tolist())
            if drafts.probabilities is not None:
                self.drafted[seat.seq_id] = drafts.probabilities[row]
        self._settle()

    def route(self, seats: tuple[Seat, ...], exact_depth: int, num_layers: int) -> None:
        """Guess what the drafted blocks read; no layer can be known exactly before its attention. Changes state."""
        for seat in seats:
            tokens = torch.tensor(self._tokens.rows(seat))
            last_read = self.last_read.get(seat.seq_id, ())
            self.named[seat.seq_id] = self.predictor.named(tokens, last_read, num_layers)
        self._settle()

    def forward(self, work: ForwardWork, at_experts: AtExperts) -> None:
        """Run the model over the rows, and its head over those whose logits are needed. Changes state."""
        seats = work.every_seat
        tokens = torch.tensor([token for seat in seats for token in self._tokens.rows(seat)])
        packed = PackedRows(seats, self._kv, self.target.invariant)
        self.ids = []

        def experts(layer: int, rows: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
            self._settle()
            self._arguments, self._experts = (rows, ids, weights), None
            at_experts(layer)
            return self._total

        self.hidden = self.target.forward(tokens, packed, experts)
        rows = self.hidden.rows
        if work.prefill is not None:
            seated = rows.shape[0] - work.prefill.num_rows
            rows = torch.cat([rows[:seated], rows[-1:]])
        self.logits = self.target.logits(rows)
        self._settle()

    def learn_routing(self, layer: int) -> None:
        """Bring the routed ids to the host and group the rows by expert. Changes state."""
        if self._experts is not None:
            return
        assert self._arguments is not None
        rows, ids, weights = self._arguments
        places = ids.numel()
        if self._table.shape[0] < places:
            self._table = rows.new_zeros((places, rows.shape[1]))
        self._experts = ExpertRows(rows, ids, weights, self._table)
        self.ids.append(self._experts.groups.ids)

    def needed(self, layer: int) -> int:
        """Return what the model's own router chose; a real model has to look, whoever is resident."""
        self.learn_routing(layer)
        return self._current().needed

    def hits(self, layer: int, experts: dict[int, int]) -> None:
        """Compute the resident experts, at once or in ascending order."""
        if self._compute_slots is not None and experts:
            self._current().compute_slots(experts, self._compute_slots)
            experts = {}
        for expert, slot in experts.items():
            self._current().compute(expert, self._slot_tensor(slot), self._compute_expert)
        self._settle()

    def arrival(self, layer: int, expert: int, slot: int) -> None:
        """Compute one expert that has just arrived."""
        self._current().compute(expert, self._slot_tensor(slot), self._compute_expert)
        self._settle()

    def finish_layer(self, layer: int) -> None:
        """Sum each row's experts in ascending order."""
        self._total = self._current().total()
        self._settle()

    def keep(self, seat: Seat, first_row: int, count: int) -> None:
        """Note that the first `count` rows of a seat, which starts at `first_row`, are committed. Changes state."""
        rows = slice(first_row, first_row + count)
        self.last_read[seat.seq_id] = tuple(mask_of_rows(ids[rows]) for ids in self.ids)
        if self._drafter is not None:
            self._drafter.observe(seat.seq_id, seat.tokens_before, self.hidden.features[rows])

    def forget(self, seq_id: int) -> None:
        """Give back the caches of a sequence; its tokens stay. Changes state."""
        self._kv.forget(seq_id)
        self._tokens.drop_drafts(seq_id)
        for known in (self.drafted, self.named, self.last_read):
            known.pop(seq_id, None)
        if self._drafter is not None:
            self._drafter.forget(seq_id)

    def _current(self) -> ExpertRows:
        assert self._experts is not None
        return self._experts

    def _settle(self) -> None:
        """Let an accelerator finish, so that the clock reads what was computed."""
        if self.target.device.type == "cuda":
            torch.cuda.current_stream(self.target.device).synchronize()


def mask_of_rows(ids: npt.NDArray[np.int64]) -> int:
    """Return the mask of the experts in an array of ids."""
    mask = 0
    for expert in np.unique(ids).tolist():
        mask |= 1 << expert
    return mask
