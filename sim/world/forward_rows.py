"""The rows of one forward: what they read, what of them is kept, how much context they attend to.

Both worlds gather rows here, from the scheduler's sequences and a routing trace (`hideaway.sim.world.rows`), so
that a forward of the real engine reads the experts that the simulator's reads.
"""

from __future__ import annotations

from dataclasses import dataclass

from hideaway.sim.commands import Forward
from hideaway.sim.scheduler import Scheduler
from hideaway.sim.world.rows import Range, RowRouting


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one forward.

    Attributes
    ----------
    ranges : list of Range
        The rows in the trace, in the order of the seats, the prefill chunk last.
    needed : tuple of int
        Per layer, the experts that all rows read.
    kept : list of Range
        Committed rows of each sequence in the trace.
    committed : tuple of (seq_id, tokens)
        What each verified sequence commits.
    contexts : list of (rows, context tokens)
    num_rows, head_rows : int
        All token rows, and those whose logits are needed.
    """

    ranges: list[Range]
    needed: tuple[int, ...]
    kept: list[Range]
    committed: tuple[tuple[int, int], ...]
    contexts: list[tuple[int, int]]
    num_rows: int
    head_rows: int


class RowGatherer:
    """Looks up the rows of forwards; changes nothing."""

    def __init__(self, scheduler: Scheduler, rows: RowRouting) -> None:
        self._scheduler = scheduler
        self._rows = rows
        prefetch = scheduler.cache.prefetch
        self._wants_last_rows = prefetch.last_rows
        self._wants_kept_rows = prefetch.kept_rows or prefetch.last_rows or prefetch.prefetches

    def gather(self, work: Forward, accepted: dict[int, int]) -> Rows:
        """Return what every row of a forward reads; `accepted` says how much of each block will be kept."""
        ranges: list[Range] = []
        kept: list[Range] = []
        contexts: list[tuple[int, int]] = []
        committed: list[tuple[int, int]] = []
        num_rows = 0
        running = self._scheduler.batch.running
        for seq_id, block in work.seats:
            sequence = running[seq_id]
            tokens = accepted.get(seq_id, 1)
            ranges += self._rows.block(seq_id, block, tokens)
            tokens = min(tokens, sequence.output_tokens - sequence.committed)
            kept.append(self._rows.kept(seq_id, tokens))
            committed.append((seq_id, tokens))
            contexts.append((block, sequence.prompt_tokens + sequence.committed))
            num_rows += block
        head_rows = num_rows
        if work.prefill is not None:
            seq_id, first, tokens = work.prefill
            chunk = self._rows.prompt(seq_id, first, tokens, running[seq_id].prompt_tokens)
            ranges.append(chunk)
            kept.append(chunk)
            contexts.append((tokens, first + tokens))
            num_rows += tokens
            head_rows += 1
        needed = self._rows.unions(ranges)
        return Rows(ranges, needed, kept, tuple(committed), contexts, num_rows, head_rows)

    def row_experts(self, kept: list[Range]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return what the last and all of the `kept` rows read, per layer, as far as the prefetch policy asks."""
        last: tuple[int, ...] = ()
        every: tuple[int, ...] = ()
        if self._wants_last_rows:
            last = self._rows.unions([(start + tokens - 1, 1) for start, tokens in kept])
        if self._wants_kept_rows:
            every = self._rows.unions(kept)
        return last, every
