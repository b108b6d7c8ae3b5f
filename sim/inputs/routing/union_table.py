"""Unions of expert sets over ranges of a trace, fast enough to be asked once per simulated forward.

A sparse table: level j holds, for every token t, the union over [t, t + 2**j) as 64-bit words, wrapping at the
end of the trace. A union is idempotent, so a range of c tokens is two overlapping spans of 2**floor(log2 c)
tokens (M. Bender and M. Farach-Colton, "The LCA problem revisited", LATIN 2000, section 3, with minimum replaced
by union). Levels stop at 128 tokens to bound the memory; longer ranges are laid out as several spans.

Not here: the trace itself (`trace.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.routing.trace import RoutingTrace

_TOP_LEVEL = 7
_TOP_SPAN = 1 << _TOP_LEVEL
MAX_TABLE_BYTES = 2**32
"""Of all levels; 600,000 tokens of 48 layers of 128 experts fit."""
_FEW_RANGES = 24
_NOT_BUILT = np.iinfo(np.intp).max // 2
"""A row that no table has: looking it up raises IndexError, which is how a missing level is noticed."""


class UnionTable:
    """Expert sets of a trace as bitmasks, with unions over ranges of tokens.

    Changes only by building a level when a range first needs it; answers do not depend on the order of asking.
    """

    __slots__ = (
        "_built_levels",
        "_num_words",
        "_popularity",
        "_rows_of_count",
        "_stride",
        "_table",
        "num_experts",
        "num_layers",
        "num_tokens",
    )

    def __init__(self, trace: RoutingTrace) -> None:
        self.num_tokens = trace.num_tokens
        self.num_layers = trace.num_layers
        self.num_experts = trace.num_experts
        self._num_words = -(-trace.num_experts // 64)
        self._popularity = _counts(trace)
        # Each level is followed by the trace's first tokens again, so that no span needs a modulo. Pages of levels
        # that are never built are never touched, so the operating system does not commit them.
        self._stride = self.num_tokens + _TOP_SPAN
        num_rows = (_TOP_LEVEL + 1) * self._stride
        token_bytes = (_TOP_LEVEL + 1) * self.num_layers * self._num_words * 8
        if self._stride * token_bytes > MAX_TABLE_BYTES:
            raise InputError(
                f"routing trace {trace.name!r} has {self.num_tokens} tokens, too many to hold the unions of its"
                f" {self.num_layers} layers; cut it to at most {MAX_TABLE_BYTES // token_bytes - _TOP_SPAN}"
            )
        self._table = np.empty((num_rows, self.num_layers * self._num_words), dtype=np.uint64)
        self._table[: self._stride] = token_words(trace, self._num_words)[
            np.arange(self._stride) % self.num_tokens
        ]
        # For each count the rows, before adding the start, of the two spans that cover the range.
        self._rows_of_count = np.full((2, _TOP_SPAN + 1), _NOT_BUILT, dtype=np.intp)
        self._rows_of_count[:, 1] = 0
        self._built_levels = 1

    def unions(self, starts: npt.NDArray[np.integer], counts: npt.NDArray[np.integer]) -> list[int]:
        """Return the union over all ranges [start, start + count), one bitmask (bit e is expert e) per layer.

        Parameters
        ----------
        starts
            First token of each range, (num_ranges,); taken modulo the trace's length.
        counts
            Tokens of each range, (num_ranges,), at least 0; a range past the end goes on at the start.

        Raises
        ------
        InputError
            A count is negative or the two differ in length.
        """
        if len(starts) != len(counts) or len(counts) == 0 or np.minimum.reduce(counts) < 1:
            return self._unions_of_odd_ranges(starts, counts)
        firsts = starts % self.num_tokens
        try:
            rows = self._table.take((self._rows_of_count.take(counts, axis=1) + firsts).ravel(), axis=0)
        except IndexError:
            return self._unions_of_new_counts(firsts, counts)
        return self._masks(np.bitwise_or.reduce(rows, axis=0))

    def unions_of(self, ranges: Sequence[tuple[int, int]]) -> list[int]:
        """Return `unions` of (start, count) pairs; a few of them take a third of the time of two arrays."""
        rows = self._rows_of(ranges) if len(ranges) <= _FEW_RANGES else []
        if rows:
            return self._masks(np.bitwise_or.reduce(self._table.take(rows, axis=0), axis=0))
        pairs = np.array(ranges, dtype=np.int64).reshape(-1, 2)
        return self.unions(pairs[:, 0], pairs[:, 1])

    def _rows_of(self, ranges: Sequence[tuple[int, int]]) -> list[int]:
        """Return the rows of the table that cover the ranges; none where a level is missing or a range is odd."""
        rows: list[int] = []
        for start, count in ranges:
            level = min(count, _TOP_SPAN).bit_length() - 1
            if not 0 <= level < self._built_levels or count > self.num_tokens:
                return []
            base, span = level * self._stride, 1 << level
            for begin in range(start, start + count - span, span):
                rows.append(base + begin % self.num_tokens)
            rows.append(base + (start + count - span) % self.num_tokens)
        return rows

    def token_masks(self, index: int) -> list[int]:
        """Return the experts of one token, one bitmask per layer; the index is taken modulo the length."""
        return self._masks(self._table[index % self.num_tokens])

    def popularity(self) -> npt.NDArray[np.float64]:
        """Return how often each expert was chosen, float64 (num_layers, num_experts)."""
        return self._popularity.copy()

    def _unions_of_odd_ranges(
        self, starts: npt.NDArray[np.integer], counts: npt.NDArray[np.integer]
    ) -> list[int]:
        if len(starts) != len(counts):
            raise InputError(
                f"{len(starts)} range starts do not match {len(counts)} counts; give as many of each"
            )
        if len(counts) and int(counts.min()) < 0:
            raise InputError(
                f"a range of {int(counts.min())} tokens was asked for; counts must be at least 0"
            )
        kept = counts > 0
        return self.unions(starts[kept], counts[kept]) if kept.any() else [0] * self.num_layers

    def _unions_of_new_counts(
        self, starts: npt.NDArray[np.integer], counts: npt.NDArray[np.integer]
    ) -> list[int]:
        """Cut ranges longer than the longest span, build the missing levels and answer."""
        counts = np.minimum(counts, self.num_tokens)
        if int(counts.max()) > _TOP_SPAN:
            starts, counts = _split_long_ranges(starts, counts)
        for level in range(self._built_levels, int(counts.max()).bit_length()):
            self._build_level(level)
        return self.unions(starts, counts)

    def _build_level(self, level: int) -> None:
        stride, span = self._stride, 1 << level
        below = self._table[(level - 1) * stride : level * stride]
        here = self._table[level * stride : (level + 1) * stride]
        half = span // 2
        np.bitwise_or(below[:-half], below[half:], out=here[:-half])
        tail = np.arange(stride - half, stride)
        here[-half:] = below[-half:] | below[(tail + half) % self.num_tokens]
        counts = np.arange(span, min(2 * span, _TOP_SPAN + 1))
        self._rows_of_count[:, counts] = level * stride + np.array([np.zeros_like(counts), counts - span])
        self._built_levels = level + 1

    def _masks(self, words: npt.NDArray[np.uint64]) -> list[int]:
        values: list[int] = words.tolist()
        if self._num_words == 1:
            return values
        if self._num_words == 2:
            return [low | high << 64 for low, high in zip(values[::2], values[1::2], strict=True)]
        size = 8 * self._num_words
        data = words.astype("<u8").tobytes()
        return [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)]


def token_words(trace: RoutingTrace, num_words: int) -> npt.NDArray[np.uint64]:
    """Return each token's experts as 64-bit words, uint64 (num_tokens, num_layers * num_words)."""
    words = np.zeros((trace.num_tokens, trace.num_layers, num_words), dtype=np.uint64)
    for choice in range(trace.top_k):
        ids = trace.expert_ids[:, :, choice].astype(np.int64)
        bits = np.where(ids < 0, np.uint64(0), np.uint64(1) << (ids % 64).astype(np.uint64))
        for word in range(num_words):
            words[:, :, word] |= np.where(ids // 64 == word, bits, np.uint64(0))
    return words.reshape(trace.num_tokens, -1)


def _counts(trace: RoutingTrace) -> npt.NDArray[np.float64]:
    counts = np.empty((trace.num_layers, trace.num_experts))
    for layer in range(trace.num_layers):
        ids = trace.expert_ids[:, layer]
        counts[layer] = np.bincount(ids[ids >= 0], minlength=trace.num_experts)
    return counts


def _split_long_ranges(
    starts: npt.NDArray[np.integer], counts: npt.NDArray[np.integer]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the same ranges cut into pieces of at most the longest span."""
    pieces = -(-counts // _TOP_SPAN)
    owner = np.repeat(np.arange(len(counts)), pieces)
    ordinal = np.arange(len(owner)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    cut_starts = starts[owner] + ordinal * _TOP_SPAN
    cut_counts = np.minimum(counts[owner] - ordinal * _TOP_SPAN, _TOP_SPAN)
    return cut_starts.astype(np.int64), cut_counts.astype(np.int64)
