"""A routing trace: which experts every token chose in every layer, sequence by sequence.

Not here: reading files (`npz.py`), choosing a trace by name (`load.py`) and the bit tables that a simulation
asks for unions (`union_table.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hideaway.sim.errors import InputError

MAX_EXPERTS = np.iinfo(np.int16).max
"""Ids are stored as int16 with -1 for a choice that was not recorded."""


@dataclass(frozen=True, slots=True, eq=False)
class RoutingTrace:
    """The experts chosen by each token, with the borders of the sequences they came from.

    Parameters
    ----------
    name
        What the trace is called in tables and errors.
    expert_ids
        int16 (num_tokens, num_layers, top_k); -1 where nothing was recorded, otherwise distinct in a row.
    num_experts
        Routed experts of one layer.
    top_k
        Experts a token chooses in one layer.
    seq_lengths
        int64 (num_sequences,), each at least 1, summing to num_tokens; sequences lie one after another.
    origin
        One sentence for the list of defaults in force: where the choices come from and what they lack.
    """

    name: str
    expert_ids: npt.NDArray[np.int16]
    num_experts: int
    top_k: int
    seq_lengths: npt.NDArray[np.int64]
    origin: str

    def __post_init__(self) -> None:
        """Check shapes and ranges, and keep read-only arrays of the stated types."""
        ids = _checked_ids(self.name, np.asarray(self.expert_ids), self.num_experts, self.top_k)
        lengths = checked_lengths(self.name, np.asarray(self.seq_lengths), ids.shape[0])
        object.__setattr__(self, "expert_ids", ids)
        object.__setattr__(self, "seq_lengths", lengths)

    @property
    def num_tokens(self) -> int:
        """Tokens in the trace, over all sequences."""
        return int(self.expert_ids.shape[0])

    @property
    def num_layers(self) -> int:
        """Layers with routed experts."""
        return int(self.expert_ids.shape[1])

    @property
    def sequence_starts(self) -> npt.NDArray[np.int64]:
        """Index of the first token of each sequence, int64 (num_sequences,)."""
        return np.cumsum(self.seq_lengths) - self.seq_lengths


def _checked_ids(
    name: str, ids: npt.NDArray[np.generic], num_experts: int, top_k: int
) -> npt.NDArray[np.int16]:
    if not 1 <= num_experts <= MAX_EXPERTS:
        raise InputError(
            f"routing trace {name!r} has num_experts {num_experts}; give a number from 1 to {MAX_EXPERTS}"
        )
    if not 1 <= top_k <= num_experts:
        raise InputError(
            f"routing trace {name!r} has top_k {top_k}; give a number from 1 to num_experts {num_experts}"
        )
    if not np.issubdtype(ids.dtype, np.integer):
        raise InputError(f"routing trace {name!r} has expert_ids of type {ids.dtype}; store whole numbers")
    if ids.ndim != 3 or 0 in ids.shape or ids.shape[2] != top_k:
        raise InputError(
            f"routing trace {name!r} has expert_ids of shape {ids.shape}; it must be (tokens, layers, {top_k}),"
            " none of them zero"
        )
    lowest, highest = int(ids.min()), int(ids.max())
    if lowest < -1 or highest >= num_experts:
        raise InputError(
            f"routing trace {name!r} has expert ids from {lowest} to {highest}; allowed are -1 (not recorded)"
            f" to {num_experts - 1}"
        )
    small = ids.astype(np.int16)
    if top_k > 1:
        ordered = np.sort(small, axis=2)
        if bool(((ordered[:, :, 1:] == ordered[:, :, :-1]) & (ordered[:, :, 1:] >= 0)).any()):
            raise InputError(
                f"routing trace {name!r} names an expert twice in one row; a token's experts are distinct"
            )
    small.setflags(write=False)
    return small


def checked_lengths(name: str, lengths: npt.NDArray[np.generic], num_tokens: int) -> npt.NDArray[np.int64]:
    """Return sequence lengths as read-only int64, refused unless each is at least 1 and they sum to `num_tokens`."""
    if lengths.ndim != 1 or lengths.size == 0 or not np.issubdtype(lengths.dtype, np.integer):
        raise InputError(
            f"routing trace {name!r} has seq_lengths of shape {lengths.shape}; give a list of whole numbers"
        )
    whole = lengths.astype(np.int64)
    if int(whole.min()) < 1 or int(whole.max()) > num_tokens or int(whole.sum()) != num_tokens:
        raise InputError(
            f"routing trace {name!r} has {num_tokens} tokens but its seq_lengths sum to {int(whole.sum())} or hold"
            " a number below 1; every token must belong to one sequence"
        )
    whole.setflags(write=False)
    return whole
