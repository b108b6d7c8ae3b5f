"""Which experts the rows of a forward read: every sequence's place in a routing trace.

A request replays the trace from the start of one of its sequences; its prompt replays the rows before that. A
round's rows up to the first rejection are the next rows of the trace. The rows after it do not follow the true
continuation's routing (they continue tokens that were never kept), so surrogates stand in, as `rejected` says:

- same-sequence: rows from elsewhere in the same sequence of the trace (default);
- other-sequence: rows from anywhere in the trace;
- true: the true continuation, which flatters speculation by fetching the next round's experts.
"""

from __future__ import annotations

import numpy as np

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.routing.trace import RoutingTrace
from hideaway.sim.inputs.routing.union_table import UnionTable
from hideaway.sim.inputs.scenario.fields import SURROGATE_ROUTING

_DRAWS = 256

Range = tuple[int, int]
"""First token of the trace and number of tokens."""


class _Place:
    """Where one request stands in the trace."""

    __slots__ = ("draws", "first", "length", "position", "rounds")

    def __init__(self, first: int, length: int, draws: list[float]) -> None:
        self.first = first
        self.length = length
        self.position = 0
        self.rounds = 0
        self.draws = draws


class RowRouting:
    """The experts that rows read, for any mix of sequences.

    Parameters
    ----------
    rejected : str
        Stand-in for rows after the first rejection, one of `SURROGATE_ROUTING`.
    seed : int
        Each request draws from its own generator, so that its rows do not depend on the order of scheduling.
    """

    def __init__(self, trace: RoutingTrace, table: UnionTable, *, rejected: str, seed: int) -> None:
        if rejected not in SURROGATE_ROUTING:
            raise InputError(
                f"rejected_routing is {rejected!r}; it must be one of {', '.join(SURROGATE_ROUTING)} "
                "(a recorded one needs a trace with recorded rejections)"
            )
        self.table = table
        self.num_layers = table.num_layers
        self._starts = trace.sequence_starts.tolist()
        self._lengths = trace.seq_lengths.tolist()
        self._num_tokens = trace.num_tokens
        self._rejected = rejected
        self._seed = seed
        self._places: dict[int, _Place] = {}
        self._asked: list[Range] | None = None
        self._answer: tuple[int, ...] = ()

    def open(self, seq_id: int) -> None:
        """Give a request its place in the trace. Changes state."""
        rng = np.random.default_rng([self._seed, 1, seq_id])
        index = int(rng.integers(len(self._starts)))
        self._places[seq_id] = _Place(self._starts[index], self._lengths[index], rng.random(_DRAWS).tolist())

    def close(self, seq_id: int) -> None:
        """Forget a finished request. Changes state."""
        del self._places[seq_id]

    def block(self, seq_id: int, rows: int, accepted: int) -> list[Range]:
        """Return the ranges that a round of `rows` rows reads when `accepted` of them are kept; changes nothing."""
        place = self._places[seq_id]
        start = place.first + place.position
        rejected = rows - accepted
        if rejected <= 0:
            return [(start, rows)]
        if self._rejected == "true":
            return [(start, rows)]
        draw = place.draws[place.rounds % _DRAWS]
        if self._rejected == "same-sequence":
            surrogate = place.first + int(draw * max(1, place.length - rejected + 1))
        else:
            surrogate = int(draw * self._num_tokens)
        return [(start, accepted), (surrogate, rejected)]

    def kept(self, seq_id: int, accepted: int) -> Range:
        """Return the range of a round's committed rows; changes nothing."""
        place = self._places[seq_id]
        return place.first + place.position, accepted

    def prompt(self, seq_id: int, first_token: int, tokens: int, prompt_tokens: int) -> Range:
        """Return the range that a prefill chunk reads: the trace up to the request's place; changes nothing.

        A preempted request's prompt includes what it had generated, which it reads again.
        """
        place = self._places[seq_id]
        end = place.first + place.position
        return (end - prompt_tokens + first_token) % self._num_tokens, tokens

    def advance(self, seq_id: int, tokens: int) -> None:
        """Move a request on by the tokens it committed. Changes state."""
        place = self._places[seq_id]
        place.position += tokens
        place.rounds += 1

    def unions(self, ranges: list[Range]) -> tuple[int, ...]:
        """Return per layer the union of the experts that the ranges read.

        The last answer is kept: a sequence that is verified alone reads what its route pass was asked for.
        """
        if ranges != self._asked:
            self._answer = tuple(self.table.unions_of(ranges))
            self._asked = list(ranges)
        return self._answer
