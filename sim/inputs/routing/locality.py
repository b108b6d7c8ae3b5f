"""What is measured on a routing trace: overlap at a lag, unions of windows, hits of an LRU cache.

Each figure is taken inside sequences: no pair, window or block crosses a border. `lru_hits` is the literal, slow
reference; `lru_hit_curve` gives all cache sizes at once and agrees with it wherever an event fits into the cache.

Not here: a generator of traces with given figures (`generative.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.routing.trace import RoutingTrace
from hideaway.sim.inputs.routing.union_table import UnionTable, token_words


def membership(trace: RoutingTrace) -> npt.NDArray[np.bool_]:
    """Return which experts each token chose, bool (num_tokens, num_layers, num_experts)."""
    chosen = np.zeros((trace.num_tokens, trace.num_layers, trace.num_experts + 1), dtype=np.bool_)
    ids = trace.expert_ids.astype(np.int64)
    np.put_along_axis(chosen, np.where(ids < 0, trace.num_experts, ids), True, axis=2)
    return chosen[:, :, :-1]


def lag_overlap(trace: RoutingTrace, lag_tokens: int) -> npt.NDArray[np.float64]:
    """Return the share of a token's top_k experts also chosen exactly `lag_tokens` earlier, (num_layers,).

    Raises
    ------
    InputError
        The lag is below 1 or no sequence is longer than it.
    """
    _check_span(trace, lag_tokens + 1, lag_tokens >= 1, f"a lag of {lag_tokens} tokens")
    words = token_words(trace, _num_words(trace))
    shared = np.zeros(trace.num_layers)
    pairs = 0
    for start, length in zip(trace.sequence_starts, trace.seq_lengths, strict=True):
        if length > lag_tokens:
            rows = words[start : start + length]
            shared += _bits_per_layer(rows[lag_tokens:] & rows[:-lag_tokens], trace.num_layers)
            pairs += int(length) - lag_tokens
    return shared / (pairs * trace.top_k)


def window_union(trace: RoutingTrace, window_tokens: int) -> npt.NDArray[np.float64]:
    """Return the mean number of distinct experts in a window, (num_layers,).

    Windows start at a sequence's first token and every half window after it (every token for a window of one).

    Raises
    ------
    InputError
        The window is below 1 token or no sequence holds it.
    """
    _check_span(trace, window_tokens, window_tokens >= 1, f"a window of {window_tokens} tokens")
    step = max(1, window_tokens // 2)
    starts = np.concatenate(
        [
            np.arange(start, start + length - window_tokens + 1, step)
            for start, length in zip(trace.sequence_starts, trace.seq_lengths, strict=True)
            if length >= window_tokens
        ]
    )
    words = token_words(trace, _num_words(trace))
    union = words[starts]
    for offset in range(1, window_tokens):
        union |= words[starts + offset]
    return _bits_per_layer(union, trace.num_layers) / len(starts)


def blocks(trace: RoutingTrace, block_tokens: int) -> npt.NDArray[np.int64]:
    """Return (first token, number of tokens) of the blocks that sequences fall into, (num_blocks, 2).

    The last block of a sequence may be short.

    Raises
    ------
    InputError
        The block is below 1 token or longer than every sequence.
    """
    _check_span(trace, block_tokens, block_tokens >= 1, f"a block of {block_tokens} tokens")
    found = []
    for start, length in zip(trace.sequence_starts.tolist(), trace.seq_lengths.tolist(), strict=True):
        found += [(start + at, min(block_tokens, length - at)) for at in range(0, length, block_tokens)]
    return np.array(found, dtype=np.int64)


def lru_hits(trace: RoutingTrace, block_tokens: int, num_slots: int, layer: int) -> tuple[int, int]:
    """Return (hits, lookups) of an event-atomic LRU cache of one layer, literally.

    A block is one event: its distinct experts are looked up once, in ascending order; no victim is taken from the
    event itself, and what finds no room is streamed without being kept. Among experts last used in the same
    event the one longest resident goes first. The cache stays warm across sequences.
    """
    last_use: dict[int, int] = {}  # in order of becoming resident
    hits = lookups = 0
    for event, (start, count) in enumerate(blocks(trace, block_tokens).tolist()):
        ids = trace.expert_ids[start : start + count, layer].ravel().tolist()
        needed = sorted({expert for expert in ids if expert >= 0})
        lookups += len(needed)
        hits += sum(expert in last_use for expert in needed)
        for expert in needed:
            if expert not in last_use and len(last_use) >= num_slots:
                victims = [resident for resident in last_use if resident not in needed]
                if not victims:
                    continue
                del last_use[min(victims, key=last_use.__getitem__)]
            last_use[expert] = event
    return hits, lookups


def lru_hit_curve(
    trace: RoutingTrace, block_tokens: int, num_slots: Sequence[int]
) -> npt.NDArray[np.float64]:
    """Return the hit rate over all layers of an event-atomic LRU cache per layer, (len(num_slots),).

    By recency rank: an expert hits a cache of C slots if fewer than C experts were used after it, ties going to the
    lower id. For caches at least as large as any one event this is the cache of `lru_hits` up to the order of ties;
    below that it overstates hits a little, since which part of an event stays is a matter of that order.
    """
    table = UnionTable(trace)
    num_experts = trace.num_experts
    recency = np.tile(-1 - np.arange(num_experts), (trace.num_layers, 1))  # never used: negative
    hits_by_rank = np.zeros(num_experts)
    lookups = 0
    ids = np.arange(num_experts)
    for event, (start, count) in enumerate(blocks(trace, block_tokens).tolist()):
        masks = table.unions(np.array([start]), np.array([count]))
        needed = _unpacked(masks, num_experts)
        order = np.argsort(-recency, axis=1)
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.broadcast_to(ids, order.shape), axis=1)
        hits_by_rank += np.bincount(rank[needed & (recency >= 0)], minlength=num_experts)
        lookups += int(np.count_nonzero(needed))
        recency = np.where(needed, (event + 1) * num_experts - ids, recency)
    hits = np.concatenate(([0.0], np.cumsum(hits_by_rank)))
    return np.asarray(hits[np.clip(num_slots, 0, num_experts)] / lookups)


def _num_words(trace: RoutingTrace) -> int:
    return -(-trace.num_experts // 64)


def _bits_per_layer(words: npt.NDArray[np.uint64], num_layers: int) -> npt.NDArray[np.float64]:
    """Return how many bits are set in each layer's words over all rows, (num_layers,)."""
    counts = np.zeros(num_layers)
    for part in np.array_split(words, max(1, words.size // 2**18)):  # bits take 64 bytes a word
        bits = np.unpackbits(part.view(np.uint8), axis=1)
        counts += bits.reshape(len(part), num_layers, -1).sum(axis=(0, 2))
    return counts


def _unpacked(masks: list[int], num_experts: int) -> npt.NDArray[np.bool_]:
    size = -(-num_experts // 8)
    packed = np.frombuffer(b"".join(mask.to_bytes(size, "little") for mask in masks), dtype=np.uint8)
    bits = np.unpackbits(packed.reshape(len(masks), size), axis=1, bitorder="little")
    return bits[:, :num_experts].astype(np.bool_)


def _check_span(trace: RoutingTrace, needed_tokens: int, allowed: bool, what: str) -> None:
    longest = int(trace.seq_lengths.max())
    if not allowed or longest < needed_tokens:
        raise InputError(
            f"{what} was asked of {trace.name}, whose longest sequence has {longest} tokens; ask for less"
        )
