"""Figures of a trace: hand-made cases, fast against literal, and figures derived independently from the same traces."""

import numpy as np
import pytest

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.routing import RoutingTrace
from hideaway.sim.inputs.routing.load import load_shipped_trace
from hideaway.sim.inputs.routing.locality import (
    blocks,
    lag_overlap,
    lru_hit_curve,
    lru_hits,
    membership,
    window_union,
)


def trace_of(rows, num_experts=6, lengths=None):
    """Return a one-layer trace with the given experts a token."""
    ids = np.array(rows)[:, None, :]
    return RoutingTrace(
        "hand-made", ids, num_experts, ids.shape[2], np.array(lengths or [len(rows)]), "made up"
    )


def every_second_sequence(trace):
    kept = [
        trace.expert_ids[start : start + length]
        for start, length in zip(trace.sequence_starts[::2], trace.seq_lengths[::2], strict=True)
    ]
    return RoutingTrace(
        "half", np.concatenate(kept), trace.num_experts, trace.top_k, trace.seq_lengths[::2], trace.origin
    )


GPT_OSS = load_shipped_trace("gpt-oss-20b")
QWEN = load_shipped_trace("qwen3-30b-a3b-top6")


def test_overlap_counts_shared_experts_inside_sequences_only():
    trace = trace_of([[0, 1], [1, 2], [3, 4], [3, 4]], lengths=[2, 2])
    assert lag_overlap(trace, 1).tolist() == [
        (1 + 2) / 4
    ]  # the pair across the border shares nothing and is not asked
    assert lag_overlap(trace_of([[0, 1], [1, 2], [0, 1]]), 2).tolist() == [1.0]


def test_unions_are_means_over_windows_that_start_every_half_window():
    trace = trace_of([[0, 1], [1, 2], [3, 4], [3, 5], [0, 1]])
    assert window_union(trace, 1).tolist() == [2.0]
    assert window_union(trace, 2).tolist() == [(3 + 4 + 3 + 4) / 4]
    assert window_union(trace, 4).tolist() == [6.0]
    assert window_union(trace_of([[0, -1], [0, 1]]), 2).tolist() == [2.0]


def test_membership_ignores_what_was_not_recorded():
    assert membership(trace_of([[0, -1]])).tolist() == [[[True, False, False, False, False, False]]]


def test_a_block_is_one_event_and_never_evicts_itself():
    # {0,1} twice in a block of two tokens, then {2,3}: an event larger than the cache streams what does not fit.
    trace = trace_of([[0, 1], [0, 1], [2, 3], [2, 3], [0, 1], [0, 1]])
    assert lru_hits(trace, 2, 4, 0) == (2, 6)
    assert lru_hits(trace, 2, 2, 0) == (0, 6)
    assert lru_hits(trace, 1, 1, 0) == (3, 12)  # of two experts one fits, and it is there at the next token
    assert lru_hits(trace, 6, 4, 0) == (0, 4)


def test_the_least_recently_used_goes_first():
    trace = trace_of([[0], [1], [0], [2], [1], [0]])
    # 0 miss, 1 miss, 0 hit, 2 evicts 1, 1 evicts 0, 0 evicts 2.
    assert lru_hits(trace, 1, 2, 0) == (1, 6)


def test_the_cache_stays_warm_across_sequences_and_odd_ends_are_short_blocks():
    trace = trace_of([[0], [1], [2], [0], [1]], lengths=[3, 2])
    assert blocks(trace, 2).tolist() == [[0, 2], [2, 1], [3, 2]]
    assert lru_hits(trace, 2, 3, 0) == (2, 5)


@pytest.mark.parametrize("block_tokens", [1, 3])
def test_the_fast_curve_is_the_literal_cache_where_ties_cannot_matter(block_tokens):
    rng = np.random.default_rng(0)
    ids = np.minimum(rng.geometric(0.15, (400, 2, 1)), 20) - 1
    trace = RoutingTrace("one choice", ids, 20, 1, np.array([250, 150]), "made up")
    slots = (
        [3, 6, 12, 20] if block_tokens == 1 else [20]
    )  # with several experts an event ties matter below all
    literal = [
        np.sum([lru_hits(trace, block_tokens, count, layer) for layer in range(2)], axis=0) for count in slots
    ]
    curve = lru_hit_curve(trace, block_tokens, slots)
    assert curve == pytest.approx([hits / lookups for hits, lookups in literal], abs=1e-12)


def test_the_fast_curve_is_close_to_the_literal_cache_on_real_routing():
    trace = every_second_sequence(GPT_OSS)
    layers = (3, 12)
    part = RoutingTrace("two", trace.expert_ids[:, layers], 32, 4, trace.seq_lengths, "")
    literal = np.sum([lru_hits(part, 8, 20, layer) for layer in range(2)], axis=0)
    # The two differ only in which of several experts of one event counts as older.
    assert lru_hit_curve(part, 8, [20])[0] == pytest.approx(literal[0] / literal[1], abs=0.003)


# Derived independently from the same traces and published with four digits (overlap) and three (unions): the
# tolerance is half of the last digit.
@pytest.mark.parametrize(
    ("trace", "lag", "mean"),
    [
        (GPT_OSS, 1, 0.4419),
        (GPT_OSS, 2, 0.3762),
        (GPT_OSS, 8, 0.35),
        (GPT_OSS, 32, 0.3375),
        (QWEN, 1, 0.3795),
        (QWEN, 2, 0.2893),
        (QWEN, 8, 0.2668),
        (QWEN, 32, 0.2364),
    ],
)
def test_overlaps_of_the_shipped_traces_are_the_derived_ones(trace, lag, mean):
    assert lag_overlap(trace, lag).mean() == pytest.approx(mean, abs=5.1e-5)


@pytest.mark.parametrize(
    ("trace", "window", "mean"),
    [
        (GPT_OSS, 1, 4.0),
        (GPT_OSS, 2, 6.232),
        (GPT_OSS, 4, 9.33),
        (GPT_OSS, 8, 12.873),
        (GPT_OSS, 16, 16.314),
        (GPT_OSS, 32, 19.328),
        (QWEN, 2, 9.723),
        (QWEN, 4, 15.592),
        (QWEN, 8, 23.673),
        (QWEN, 16, 33.471),
        (QWEN, 32, 42.958),
    ],
)
def test_unions_of_the_shipped_traces_are_the_derived_ones(trace, window, mean):
    assert window_union(trace, window).mean() == pytest.approx(mean, abs=5.1e-4)


def test_single_layers_are_the_derived_ones():
    assert lag_overlap(GPT_OSS, 1)[[0, 1, 2, 3]] == pytest.approx(
        [0.1978, 0.2991, 0.3889, 0.4408], abs=5.1e-5
    )
    assert window_union(GPT_OSS, 16)[[0, 12]] == pytest.approx([23.723, 12.15], abs=5.1e-4)


@pytest.mark.parametrize(
    ("block_tokens", "slots", "rate", "misses_per_block"),
    [
        (8, 8, 0.4884, 6.5462),
        (16, 8, 0.4291, 9.311),
        (16, 16, 0.7757, 3.6589),
        (16, 24, 0.9471, 0.8631),
    ],
)
def test_lru_hit_rates_of_gpt_oss_are_the_derived_ones(block_tokens, slots, rate, misses_per_block):
    # Every second sequence, as derived; the tolerance is half of the last digit.
    trace = every_second_sequence(GPT_OSS)
    counts = np.array([lru_hits(trace, block_tokens, slots, layer) for layer in range(24)])
    hits, lookups = counts.sum(axis=0)
    assert hits / lookups == pytest.approx(rate, abs=5.1e-5)
    misses = (lookups - hits) / (24 * len(blocks(trace, block_tokens)))
    assert misses == pytest.approx(misses_per_block, abs=5.1e-5)


@pytest.mark.parametrize("figure", [lag_overlap, window_union, blocks])
def test_spans_that_no_sequence_holds_are_refused(figure):
    trace = trace_of([[0], [1], [2]])
    for tokens in (0, -1, 4):
        with pytest.raises(InputError, match=f"of {tokens} tokens was asked of hand-made"):
            figure(trace, tokens)
