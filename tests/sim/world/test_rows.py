"""Which rows of the trace a request reads: its true prefix, and stand-ins after the first rejection."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.routing import RoutingTrace, UnionTable
from hideaway.sim.world.rows import RowRouting

LENGTHS = [40, 25, 35]
STARTS = [0, 40, 65]
TOKENS = 100


def trace_of(seed=0, num_layers=2, num_experts=16, top_k=2):
    rng = np.random.default_rng(seed)
    ids = np.array(
        [
            [rng.choice(num_experts, size=top_k, replace=False) for _ in range(num_layers)]
            for _ in range(TOKENS)
        ],
        dtype=np.int16,
    )
    return RoutingTrace("made up", ids, num_experts, top_k, np.array(LENGTHS), "made up for a test")


TRACE = trace_of()
TABLE = UnionTable(TRACE)


def rows_of(rejected="same-sequence", seed=7, seq_id=0):
    rows = RowRouting(TRACE, TABLE, rejected=rejected, seed=seed)
    rows.open(seq_id)
    return rows


def sequence_of(token):
    return max(index for index, start in enumerate(STARTS) if start <= token)


@pytest.mark.parametrize("rejected", ["same-sequence", "other-sequence", "true"])
@given(seed=st.integers(0, 1000), accepted=st.integers(1, 8))
def test_a_block_begins_with_the_true_rows_of_what_is_kept(rejected, seed, accepted):
    rows = rows_of(rejected, seed)
    ranges = rows.block(0, 8, accepted)
    start, count = rows.kept(0, accepted)
    assert ranges[0][0] == start in STARTS
    assert count == accepted <= ranges[0][1]
    assert sum(tokens for _, tokens in ranges) == 8


@given(seed=st.integers(0, 1000), accepted=st.integers(1, 8))
def test_with_the_true_continuation_the_whole_block_is_the_next_rows(seed, accepted):
    rows = rows_of("true", seed)
    start, _ = rows.kept(0, accepted)
    assert rows.block(0, 8, accepted) == [(start, 8)]


@given(
    seed=st.integers(0, 1000), accepted=st.integers(1, 7), advances=st.lists(st.integers(1, 8), max_size=3)
)
def test_rejected_rows_come_from_elsewhere_in_the_same_sequence(seed, accepted, advances):
    rows = rows_of("same-sequence", seed)
    home = sequence_of(rows.kept(0, 1)[0])
    for tokens in advances:
        rows.advance(0, tokens)
    _, (surrogate, rejected) = rows.block(0, 8, accepted)
    assert rejected == 8 - accepted
    assert STARTS[home] <= surrogate
    assert surrogate + rejected <= STARTS[home] + LENGTHS[home]


def test_rejected_rows_of_another_sequence_come_from_anywhere_in_the_trace():
    seen = {sequence_of(rows_of("other-sequence", seed).block(0, 8, 3)[1][0]) for seed in range(60)}
    assert seen == {0, 1, 2}


def test_rejected_rows_change_from_round_to_round_and_not_within_one():
    rows = rows_of()
    first = rows.block(0, 8, 3)
    assert rows.block(0, 8, 3) == first
    rows.advance(0, 3)
    assert rows.block(0, 8, 3)[1] != first[1]


def test_a_request_goes_on_after_what_it_committed():
    rows = rows_of()
    start, _ = rows.kept(0, 1)
    rows.advance(0, 5)
    rows.advance(0, 2)
    assert rows.kept(0, 4) == (start + 7, 4)
    assert rows.block(0, 4, 4) == [(start + 7, 4)]


def test_requests_start_at_sequences_drawn_by_their_own_seed_whatever_else_is_open():
    alone = rows_of(seq_id=3)
    crowd = rows_of(seq_id=1)
    for seq_id in (5, 3, 4):
        crowd.open(seq_id)
    assert crowd.kept(3, 2) == alone.kept(3, 2)
    assert crowd.block(3, 8, 2) == alone.block(3, 8, 2)
    starts = {rows_of(seed=seed).kept(0, 1)[0] for seed in range(50)}
    assert starts == set(STARTS)


def test_a_prompt_reads_the_rows_up_to_the_request_chunk_by_chunk():
    rows = rows_of()
    start, _ = rows.kept(0, 1)
    assert rows.prompt(0, 0, 20, 30) == ((start - 30) % TOKENS, 20)
    assert rows.prompt(0, 20, 10, 30) == ((start - 10) % TOKENS, 10)


def test_a_recomputed_prompt_ends_where_the_request_had_got_to():
    rows = rows_of()
    start, _ = rows.kept(0, 1)
    rows.advance(0, 1)
    rows.advance(0, 6)
    assert rows.prompt(0, 0, 37, 30 + 7) == ((start - 30) % TOKENS, 37)
    first, tokens = rows.prompt(0, 30, 7, 30 + 7)
    assert (first + tokens) % TOKENS == rows.kept(0, 1)[0] % TOKENS


def literal_unions(ranges):
    return [
        sum(
            1 << expert
            for expert in {
                int(expert)
                for start, tokens in ranges
                for token in range(start, start + tokens)
                for expert in TRACE.expert_ids[token % TOKENS, layer]
            }
        )
        for layer in range(TRACE.num_layers)
    ]


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 250)), max_size=5))
def test_the_experts_of_ranges_are_the_union_over_their_tokens_wrapping_at_the_end(ranges):
    assert rows_of().unions(ranges) == tuple(literal_unions(ranges))


def test_a_finished_request_leaves_no_place():
    rows = rows_of()
    rows.close(0)
    with pytest.raises(KeyError):
        rows.kept(0, 1)


def test_an_unknown_stand_in_is_one_sentence():
    with pytest.raises(InputError, match="rejected_routing is 'recorded'; it must be one of same-sequence"):
        rows_of("recorded")
