"""Unions over ranges: equal to the literal union, wrapping, long ranges, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.routing import RoutingTrace, UnionTable


def random_trace(num_tokens, num_layers, num_experts, top_k, seed=0, missing=0.1):
    rng = np.random.default_rng(seed)
    ids = np.argsort(rng.random((num_tokens, num_layers, num_experts)), axis=2)[:, :, :top_k]
    ids[rng.random(ids.shape) < missing] = -1
    return RoutingTrace("random", ids, num_experts, top_k, np.array([num_tokens]), "made up")


def literal_union(trace, starts, counts):
    masks = [0] * trace.num_layers
    for start, count in zip(starts, counts, strict=True):
        for offset in range(min(count, trace.num_tokens)):
            for layer, row in enumerate(trace.expert_ids[(start + offset) % trace.num_tokens].tolist()):
                for expert in row:
                    if expert >= 0:
                        masks[layer] |= 1 << expert
    return masks


@pytest.mark.parametrize("num_tokens", [1, 5, 300])
@pytest.mark.parametrize("num_experts", [3, 64, 100, 200])
def test_any_ranges_give_the_literal_union(num_tokens, num_experts):
    trace = random_trace(num_tokens, 3, num_experts, 2)
    table = UnionTable(trace)
    rng = np.random.default_rng(1)
    for longest in (2, 20, 140, 700):
        for num_ranges in (0, 1, 3, 9):
            starts = rng.integers(0, 3 * num_tokens, num_ranges)
            counts = rng.integers(0, longest, num_ranges)
            assert table.unions(starts, counts) == literal_union(trace, starts.tolist(), counts.tolist())


TRACE = random_trace(150, 2, 70, 3)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 5000)), max_size=5))
def test_answers_do_not_depend_on_what_was_asked_before(ranges):
    starts = np.array([start for start, _ in ranges], dtype=np.int64)
    counts = np.array([count for _, count in ranges], dtype=np.int64)
    used = UnionTable(TRACE)
    used.unions(np.array([0, 3]), np.array([17, 1000]))
    expected = literal_union(TRACE, starts.tolist(), counts.tolist())
    assert used.unions(starts, counts) == UnionTable(TRACE).unions(starts, counts) == expected


def test_masks_of_one_token_and_popularity_are_those_of_the_ids():
    table = UnionTable(TRACE)
    assert table.token_masks(4) == literal_union(TRACE, [4], [1])
    assert table.token_masks(4 + 150) == table.token_masks(4)
    popularity = table.popularity()
    assert popularity.shape == (2, 70)
    assert popularity.sum() == (TRACE.expert_ids >= 0).sum()
    assert popularity[1, 7] == (TRACE.expert_ids[:, 1] == 7).sum()


def test_negative_counts_and_unequal_lengths_are_refused():
    table = UnionTable(TRACE)
    with pytest.raises(InputError, match="range of -1 tokens"):
        table.unions(np.array([0, 1]), np.array([2, -1]))
    with pytest.raises(InputError, match="2 range starts do not match 1 counts"):
        table.unions(np.array([0, 1]), np.array([2]))
