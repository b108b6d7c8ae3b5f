"""Which rows of a forward each expert of a layer serves: the replayed ids, grouped once per forward."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int64]


class RowGroups:
    """Rows by expert of one layer.

    Parameters
    ----------
    expert_ids : array
        (rows, top_k), -1 where none was recorded; sorted here, so that a row's experts are summed in ascending order.

    Attributes
    ----------
    ids : array
        (rows, top_k), ascending, -1 first.
    """

    def __init__(self, expert_ids: npt.NDArray[np.int16]) -> None:
        self.ids: Indices = np.sort(expert_ids.astype(np.int64), axis=1)
        flat = self.ids.reshape(-1)
        order = np.argsort(flat, kind="stable")
        bounds = np.searchsorted(flat[order], np.arange(int(flat.max(initial=-1)) + 2))
        self._groups: dict[int, Indices] = {
            expert: order[bounds[expert] : bounds[expert + 1]]
            for expert in range(len(bounds) - 1)
            if bounds[expert] < bounds[expert + 1]
        }

    @property
    def needed(self) -> int:
        """Mask of the experts that any row reads."""
        return sum(1 << expert for expert in self._groups)

    def places(self, expert: int) -> Indices:
        """Return row * top_k + choice of every use of an expert, ascending."""
        return self._groups[expert]
