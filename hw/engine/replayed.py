"""Forwards whose routing and acceptance are replayed from traces, exactly as the simulator replays them."""

from __future__ import annotations

from collections.abc import Set

import numpy as np
import numpy.typing as npt

from hideaway.hw.engine.content import Outcome
from hideaway.hw.engine.work import ForwardWork, Seat
from hideaway.sim.commands import Forward, Route
from hideaway.sim.inputs.routing import RoutingTrace
from hideaway.sim.scheduler import Scheduler
from hideaway.sim.world.forward_rows import Rows
from hideaway.sim.world.rows import Range
from hideaway.sim.world.serving import Serving


class Replayed:
    """The `Content` of a run over traces."""

    def __init__(self, serving: Serving, scheduler: Scheduler, trace: RoutingTrace) -> None:
        self._serving = serving
        self._trace = trace
        self._asks = not scheduler.cache.all_resident()
        self._forward: ForwardWork | None = None
        self._ahead: list[tuple[int, ...]] = []

    def drafting(self, seq_ids: tuple[int, ...]) -> None:
        """Settle how much of each drafted block will be kept. Changes state."""
        self._serving.book.settle_draft(seq_ids)

    def named(self, work: Route) -> tuple[tuple[int, ...], ...]:
        """Return the true sets of the exact layers and guesses of a stated quality beyond them."""
        return self._serving.book.named(work)

    def begin(self, work: Forward) -> ForwardWork:
        """Look up what the rows of a forward read. Changes state."""
        serving = self._serving
        rows = serving.gatherer.gather(work, serving.book.accepted)
        if self._asks:
            self._ahead = serving.foresight.ahead(rows.needed, len(work.seats))
        self._forward = _forward_work(work, rows, serving.reused_layers)
        return self._forward

    def ahead(self, layer: int) -> tuple[int, ...]:
        """Return guesses of a stated quality."""
        return self._ahead[layer]

    def readers(self, layer: int, expert: int) -> Set[int]:
        """Return the sequences whose replayed rows chose an expert."""
        assert self._forward is not None
        return {
            seat.seq_id
            for seat, tokens in zip(self._forward.every_seat, self._rows(), strict=True)
            if bool((self._trace.expert_ids[tokens, layer] == expert).any())
        }

    def end(self, work: Forward, failed: Set[int]) -> Outcome:
        """Return what was settled before."""
        assert self._forward is not None
        rows = self._forward.replayed
        last, kept = self._serving.gatherer.row_experts(rows.kept)
        return Outcome(tuple(pair for pair in rows.committed if pair[0] not in failed), last, kept)

    def _rows(self) -> list[npt.NDArray[np.int64]]:
        """Return the rows of each seat as indices into the trace."""
        assert self._forward is not None
        indices = token_indices(self._forward.replayed.ranges, self._trace.num_tokens)
        ends = np.cumsum([seat.num_rows for seat in self._forward.every_seat])
        return np.split(indices, ends[:-1])


def token_indices(ranges: list[Range], num_tokens: int) -> npt.NDArray[np.int64]:
    """Return the token of the trace that each row replays, in the order of the ranges; they wrap at its end."""
    pieces = [np.arange(start, start + count, dtype=np.int64) for start, count in ranges]
    joined: npt.NDArray[np.int64] = np.concatenate(pieces) % num_tokens
    return joined


def _forward_work(work: Forward, rows: Rows, reused_layers: int) -> ForwardWork:
    contexts = rows.contexts
    seats = tuple(
        Seat.block(seq_id, num_rows, context)
        for (seq_id, num_rows), (_, context) in zip(work.seats, contexts, strict=False)
    )
    prefill = None if work.prefill is None else Seat.chunk(work.prefill[0], *contexts[-1])
    return ForwardWork(seats, prefill, rows, reused_layers)
