"""The rows of a recorded run, looked up request by request: the simulation reads exactly what the run read."""

from __future__ import annotations

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.routing.recorded import RecordedRun
from hideaway.sim.inputs.routing.union_table import UnionTable
from hideaway.sim.world.rows import Range, RowRouting


class RecordedRows(RowRouting):
    """Rows by request and position; no surrogate stands in for a rejected row."""

    def __init__(self, run: RecordedRun, table: UnionTable) -> None:
        super().__init__(run.trace, table, rejected="true", seed=0)
        self._run = run
        self._firsts = run.trace.sequence_starts.tolist()
        self._committed: dict[int, int] = {}

    def open(self, seq_id: int) -> None:
        """Begin a request. Changes state."""
        self._committed[seq_id] = 0

    def close(self, seq_id: int) -> None:
        """Forget a finished request. Changes state."""
        del self._committed[seq_id]

    def block(self, seq_id: int, rows: int, accepted: int) -> list[Range]:
        """Return the ranges that a round reads; changes nothing.

        Raises
        ------
        InputError
            The run was recorded with blocks of fewer rows, or with other rounds.
        """
        anchor = self._anchor(seq_id)
        length = self._run.input_tokens[seq_id] + self._run.output_tokens[seq_id] - 1
        kept = min(accepted, length - anchor)
        ranges = [(self._firsts[seq_id] + anchor, kept)]
        if rows > kept:
            start, count = self._run.rejected.get((seq_id, anchor), (0, 0))
            if count != rows - kept:
                raise InputError(
                    f"request {seq_id} was recorded with {count} rejected rows where a block of {rows} rows that keeps "
                    f"{kept} has {rows - kept}; simulate the block size and baseline that were recorded"
                )
            ranges.append((start, count))
        return ranges

    def kept(self, seq_id: int, accepted: int) -> Range:
        """Return the range of a round's committed rows; changes nothing."""
        return self._firsts[seq_id] + self._anchor(seq_id), accepted

    def prompt(self, seq_id: int, first_token: int, tokens: int, prompt_tokens: int) -> Range:
        """Return the range that a prefill chunk reads; changes nothing."""
        return self._firsts[seq_id] + first_token, tokens

    def advance(self, seq_id: int, tokens: int) -> None:
        """Move a request on by the tokens it committed. Changes state."""
        self._committed[seq_id] += tokens

    def _anchor(self, seq_id: int) -> int:
        """Return the position of the last committed token."""
        return self._run.input_tokens[seq_id] + self._committed[seq_id] - 1
