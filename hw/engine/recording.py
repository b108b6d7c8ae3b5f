"""What a real run routed and accepted, in the files that a simulation replays (docs/formats.md).

Routing holds every committed row once, request by request in order of position, with its phase; a preempted request's
recomputed rows replace the earlier ones. Rows of a block that were not kept stand beside them (`rejected_*`): they did
read experts, and no replay of committed rows shows them. Acceptance is one length a verified round. Both are in one
file, so that `hideaway.sim.inputs.routing.recorded` can replay the run itself.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hideaway.hw.engine.work import Seat
from hideaway.sim.errors import InputError
from hideaway.sim.files import write_bytes_atomically, write_text_atomically

Ids = npt.NDArray[np.int64]
_PREFILL, _DECODE = 0, 1


class _Lost(NamedTuple):
    """A row that was verified and not kept: its block's first position, its place there, and in what it was off."""

    seq_id: int
    anchor: int
    row: int
    distance: int
    chosen: Ids


class Recorder:
    """Collects rows and rounds of a run.

    Parameters
    ----------
    num_experts : int
        Routed experts of a layer.
    prompt_tokens : sequence of int
        Length of each request's own prompt: rows before it are prefill.
    """

    def __init__(self, num_experts: int, prompt_tokens: Sequence[int]) -> None:
        self._num_experts = num_experts
        self._prompt_tokens = prompt_tokens
        self._rows: dict[int, dict[int, Ids]] = {}
        self._rejected: list[_Lost] = []
        self.rounds: list[tuple[int, int]] = []

    def prompt(self, seat: Seat, first: int, ids: list[Ids]) -> None:
        """Note the rows of a prompt chunk, which start at row `first` of the forward. Changes state."""
        self._keep(seat, first, ids, seat.num_rows)

    def round(self, seat: Seat, first: int, ids: list[Ids], *, kept: int, accepted: int) -> None:
        """Note a verified block of which `kept` rows are committed. Changes state.

        Parameters
        ----------
        accepted : int
            Rows that the target confirmed; more than `kept` where the request needed fewer.
        """
        self._keep(seat, first, ids, kept)
        for row in range(kept, seat.num_rows):
            chosen = np.stack([layer[first + row] for layer in ids])
            self._rejected.append(_Lost(seat.seq_id, seat.tokens_before, row, row - accepted, chosen))
        self.rounds.append((seat.seq_id, accepted))

    def _keep(self, seat: Seat, first: int, ids: list[Ids], count: int) -> None:
        rows = self._rows.setdefault(seat.seq_id, {})
        for row in range(count):
            rows[seat.tokens_before + row] = np.stack([layer[first + row] for layer in ids])

    def write_routing(self, path: str | os.PathLike[str]) -> None:
        """Write the committed rows, and the rejected ones beside them.

        Raises
        ------
        InputError
            Nothing was recorded, or the file cannot be written.
        """
        if not self._rows:
            raise InputError("no request got far enough to record its routing; see why they failed")
        order = sorted(self._rows)
        rows = [self._rows[seq_id][at] for seq_id in order for at in sorted(self._rows[seq_id])]
        phases = [
            _PREFILL if at < self._prompt_tokens[seq_id] else _DECODE
            for seq_id in order
            for at in sorted(self._rows[seq_id])
        ]
        dtype = np.int8 if self._num_experts <= 128 else np.int16
        number = {seq_id: index for index, seq_id in enumerate(order)}
        lost = [row for row in self._rejected if row.seq_id in number]
        lost.sort(key=lambda row: (row.seq_id, row.anchor, row.row))
        places = np.array(
            [(number[row.seq_id], row.anchor, row.row, row.distance) for row in lost], dtype=np.int32
        ).reshape(-1, 4)
        rounds = np.array(
            [(number[seq_id], length) for seq_id, length in self.rounds if seq_id in number], dtype=np.int32
        ).reshape(-1, 2)
        buffer = io.BytesIO()
        np.savez_compressed(
            buffer,
            expert_ids=np.stack(rows).astype(dtype),
            num_experts=np.int64(self._num_experts),
            top_k=np.int64(rows[0].shape[1]),
            seq_lengths=np.array([len(self._rows[seq_id]) for seq_id in order], dtype=np.int32),
            phase=np.array(phases, dtype=np.int8),
            rejected_expert_ids=np.array([row.chosen for row in lost], dtype=dtype).reshape(
                -1, *rows[0].shape
            ),
            rejected_seq_ids=places[:, 0],
            rejected_anchors=places[:, 1],
            rejected_rows=places[:, 2],
            rejected_distances=places[:, 3],
            round_seq_ids=rounds[:, 0],
            round_lengths=rounds[:, 1],
        )
        write_bytes_atomically(path, buffer.getvalue())

    def write_acceptance(self, path: str | os.PathLike[str]) -> None:
        """Write one line a verified round, request by request, in order.

        Raises
        ------
        InputError
            The file cannot be written.
        """
        by_request = sorted(self.rounds, key=lambda round_: round_[0])
        lines = ["seq_id,acceptance_length", *(f"{seq_id},{length}" for seq_id, length in by_request)]
        write_text_atomically(path, "\n".join(lines) + "\n")
