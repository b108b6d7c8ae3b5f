"""Which requests a failed transfer takes down: those with a row that needs the expert, and no others.

A prefetch that fails before anybody waits for it takes nobody down: whoever needs the expert asks for it again.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hideaway.hw.engine.work import ForwardWork
from hideaway.sim.inputs.routing import RoutingTrace
from hideaway.sim.world.rows import Range


class Failures:
    """Failed requests of a run.

    Attributes
    ----------
    seq_ids : set of int
        Sequences that failed in the forward that is going on.
    sentences : dict of seq_id to str
        Why each request of the run failed.
    """

    def __init__(self, trace: RoutingTrace) -> None:
        self._trace = trace
        self._forward: ForwardWork | None = None
        self.seq_ids: set[int] = set()
        self.sentences: dict[int, str] = {}

    def begin(self, forward: ForwardWork) -> None:
        """Take up a forward. Changes state."""
        self._forward = forward
        self.seq_ids.clear()

    def note(self, layer: int, expert: int, sentence: str) -> None:
        """Fail the requests of the forward that wait for this expert in this layer. Changes state."""
        assert self._forward is not None
        for seat, tokens in zip(self._forward.every_seat, self._rows(), strict=True):
            if bool((self._trace.expert_ids[tokens, layer] == expert).any()):
                self.seq_ids.add(seat.seq_id)
                self.sentences.setdefault(seat.seq_id, f"request {seat.seq_id} failed: {sentence}")

    def _rows(self) -> list[npt.NDArray[np.int64]]:
        """Return the rows of each seat as indices into the trace."""
        assert self._forward is not None
        indices = token_indices(self._forward.rows.ranges, self._trace.num_tokens)
        ends = np.cumsum([seat.num_rows for seat in self._forward.every_seat])
        return np.split(indices, ends[:-1])


def token_indices(ranges: list[Range], num_tokens: int) -> npt.NDArray[np.int64]:
    """Return the token of the trace that each row replays, in the order of the ranges; they wrap at its end."""
    pieces = [np.arange(start, start + count, dtype=np.int64) for start, count in ranges]
    joined: npt.NDArray[np.int64] = np.concatenate(pieces) % num_tokens
    return joined
