"""A recorded run: what every row of every request read, kept or rejected, and how much each round kept.

Written by `hideaway run --model DIR --record DIR`. With it a simulation replays the run itself: request r is the r-th
recorded one, its prompt, rounds and rejected rows included. `npz.py` reads the same file as a plain trace of decode
tokens; `hideaway.sim.world.recorded_rows` answers a simulation from it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.acceptance.model import DrawLength, capped_draws, check_block_size
from hideaway.sim.inputs.routing.npz import read_arrays
from hideaway.sim.inputs.routing.trace import RoutingTrace

ARRAYS = (
    "expert_ids",
    "num_experts",
    "top_k",
    "seq_lengths",
    "phase",
    "rejected_expert_ids",
    "rejected_seq_ids",
    "rejected_anchors",
    "round_seq_ids",
    "round_lengths",
)


@dataclass(frozen=True, slots=True, eq=False)
class RecordedRun:
    """One run, request by request.

    Parameters
    ----------
    trace : RoutingTrace
        Committed rows of each request in order of position, one sequence a request; then, as a last sequence, the
        rows that were verified and not kept, block by block.
    input_tokens, output_tokens : tuple of int
        Lengths of each request.
    rejected : dict of (request, position of the block's first row) to (first row, rows)
        Where in the trace the rows of a block stand that were not kept.
    rounds : tuple of tuple of int
        Each request's acceptance lengths, in order.
    """

    trace: RoutingTrace
    input_tokens: tuple[int, ...]
    output_tokens: tuple[int, ...]
    rejected: dict[tuple[int, int], tuple[int, int]]
    rounds: tuple[tuple[int, ...], ...]

    @property
    def num_requests(self) -> int:
        """Requests that were recorded."""
        return len(self.input_tokens)


class RecordedAcceptance:
    """Acceptance lengths of a recorded run: the n-th sequence asked for is the n-th request."""

    def __init__(self, run: RecordedRun) -> None:
        self._rounds = run.rounds
        self._asked = 0
        self.origin = f"acceptance lengths of each round, as recorded with {run.trace.name}"

    def mean_length(self, block_size: int) -> float:
        """Return the mean over all rounds, each length cut at the block size; 1 where nothing was drafted."""
        check_block_size(block_size)
        lengths = [min(length, block_size) for rounds in self._rounds for length in rounds]
        return float(np.mean(lengths)) if lengths else 1.0

    def sequence(self, rng: np.random.Generator) -> DrawLength:
        """Return the draws of the next request. Changes state."""
        rounds = self._rounds[self._asked % len(self._rounds)]
        self._asked += 1
        return capped_draws(_in_circle(rounds or (1,)))


def read_recorded_run(path: str | os.PathLike[str]) -> RecordedRun:
    """Return the run in a file that `hideaway run --record` wrote.

    Raises
    ------
    InputError
        The file cannot be read, or it is a trace without the arrays of a recorded run.
    """
    shown = os.fspath(path)
    arrays = read_arrays(shown, ARRAYS)
    lacking = [name for name in ARRAYS if name not in arrays]
    if lacking:
        raise InputError(
            f"routing file {shown!r} has no array {lacking[0]}, so it is no recorded run; record one with "
            "`hideaway run --model DIR --record DIR`, or take another --rejected-routing"
        )
    try:
        return _run(shown, arrays)
    except InputError:
        raise
    except (ValueError, IndexError, TypeError) as error:  # arrays that contradict each other
        raise InputError(f"the recorded run in {shown!r} is damaged ({error}); record it again") from error


def _run(shown: str, arrays: dict[str, npt.NDArray[np.generic]]) -> RecordedRun:
    kept, lost = arrays["expert_ids"], arrays["rejected_expert_ids"]
    lengths = [int(length) for length in arrays["seq_lengths"].tolist()]
    phases = np.split(arrays["phase"], np.cumsum(lengths)[:-1])
    if sum(lengths) != len(kept) or len(arrays["phase"]) != len(kept):
        raise ValueError(f"{len(kept)} rows but {sum(lengths)} in requests and {len(arrays['phase'])} phases")
    ids = np.concatenate([kept, lost]) if len(lost) else kept
    trace = RoutingTrace(
        shown,
        ids.astype(np.int16),
        int(arrays["num_experts"]),
        int(arrays["top_k"]),
        np.array([*lengths, *([len(lost)] if len(lost) else [])], dtype=np.int64),
        f"every row of the run recorded in {shown}",
    )
    inputs = tuple(int((phase == 0).sum()) for phase in phases)
    outputs = tuple(length - count + 1 for length, count in zip(lengths, inputs, strict=True))
    if min(inputs) < 1:
        raise ValueError("a request has no prompt")
    rounds: list[list[int]] = [[] for _ in lengths]
    for request, length in zip(
        arrays["round_seq_ids"].tolist(), arrays["round_lengths"].tolist(), strict=True
    ):
        rounds[request].append(length)
    return RecordedRun(trace, inputs, outputs, _rejected(arrays, len(kept)), tuple(map(tuple, rounds)))


def _rejected(
    arrays: dict[str, npt.NDArray[np.generic]], first: int
) -> dict[tuple[int, int], tuple[int, int]]:
    """Return where each block's rows stand that were not kept; they follow one another from row `first` on."""
    found: dict[tuple[int, int], tuple[int, int]] = {}
    places = zip(arrays["rejected_seq_ids"].tolist(), arrays["rejected_anchors"].tolist(), strict=True)
    for row, key in enumerate(places, start=first):
        start, count = found.get(key, (row, 0))
        if start + count != row:
            raise ValueError(f"the rows of the block at {key} do not follow one another")
        found[key] = start, count + 1
    return found


def _in_circle(lengths: tuple[int, ...]) -> Iterator[int]:
    while True:
        yield from lengths
