"""Rows of one layer sent through their experts one expert at a time, and summed in ascending order of experts.

Each output goes to its own place in a table (row, choice), so that a row's sum does not depend on which expert came
first; the sum adds one choice after another, element by element, so that it does not depend on the number of rows.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from hideaway.hw.engine.row_groups import RowGroups
from hideaway.hw.engine.torch_work import ComputeExpert, ComputeSlots
from hideaway.sim.masks import experts_of


class ExpertRows:
    """The experts' share of one layer of one forward.

    Parameters
    ----------
    rows : torch.Tensor
        What the experts read, (rows, hidden).
    ids, weights : torch.Tensor
        What the router chose, (rows, top_k).

    Attributes
    ----------
    needed : int
        Mask of the experts that any row reads.
    """

    def __init__(
        self, rows: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor, table: torch.Tensor
    ) -> None:
        order = ids.argsort(dim=1, stable=True)
        self._rows = rows
        self._weights = weights.gather(1, order)
        self._top_k = ids.shape[1]
        self._table = table[: rows.shape[0] * self._top_k]
        self.groups = RowGroups(ids.cpu().numpy())
        self.needed = self.groups.needed
        self._missing = self.needed

    def compute(self, expert: int, stored: torch.Tensor, kernel: ComputeExpert) -> None:
        """Put the outputs of one expert, whose bytes are `stored`, into the table. Changes state."""
        places = self._places(expert)
        inputs = self._rows.index_select(0, places // self._top_k)
        self._table[places] = kernel(stored, inputs).to(self._table.dtype)
        self._missing &= ~(1 << expert)

    def compute_slots(self, slots: Mapping[int, int], kernel: ComputeSlots) -> None:
        """Put the outputs of several experts, by the slots they are in, into the table at once. Changes state."""
        uses = [self.groups.places(expert) for expert in slots]
        places = torch.from_numpy(np.concatenate(uses)).to(self._rows.device)
        offsets = np.cumsum([0, *(len(one) for one in uses)]).tolist()
        inputs = self._rows.index_select(0, places // self._top_k)
        self._table[places] = kernel(list(slots.values()), inputs, offsets).to(self._table.dtype)
        for expert in slots:
            self._missing &= ~(1 << expert)

    def total(self) -> torch.Tensor:
        """Return each row's weighted sum, (rows, hidden); an expert that never came counts as zero."""
        for expert in experts_of(self._missing):
            self._table[self._places(expert)] = 0
        table = self._table.view(self._rows.shape[0], self._top_k, -1)
        total = table[:, 0] * self._weights[:, :1]
        for choice in range(1, self._top_k):
            total += table[:, choice] * self._weights[:, choice : choice + 1]
        return total

    def _places(self, expert: int) -> torch.Tensor:
        return torch.from_numpy(self.groups.places(expert)).to(self._rows.device)
