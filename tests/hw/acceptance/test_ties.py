from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hideaway.hw.acceptance.ties import TieCounts, choice_gaps, judge, measure_gap_error, top_two_gaps
from hideaway.sim.errors import InputError


@st.composite
def two_paths(draw):
    """Logits of a reference on a coarse grid, so that near and exact ties occur, and errors of a second path."""
    rows, vocab = draw(st.integers(1, 6)), draw(st.integers(2, 5))
    seed, size = draw(st.integers(0, 2**32 - 1)), draw(st.sampled_from([1e-6, 1e-3, 0.1, 1.0]))
    drawn = torch.Generator().manual_seed(seed)
    reference = torch.randint(-4, 5, (rows, vocab), generator=drawn).double() / 8
    error = (torch.rand(rows, vocab, generator=drawn, dtype=torch.float64) * 2 - 1) * size
    return reference, error, size


@given(two_paths())
def test_rounding_within_the_error_is_never_a_true_difference(paths):
    reference, error, size = paths
    counts = judge(reference, (reference + error).argmax(-1), 2 * size * 1.0001)
    assert counts.differences == 0
    assert counts.rows == len(reference)


@given(two_paths(), st.floats(0, 2))
def test_a_tie_has_its_top_two_gap_below_the_error_too(paths, bound):
    reference, error, _ = paths
    chosen = (reference + error).argmax(-1)
    for row, token in zip(reference, chosen, strict=True):
        counts = judge(row[None], token[None], bound)
        gap, top_two = float(choice_gaps(row[None], token[None])), float(top_two_gaps(row[None]))
        if counts.ties:
            assert int(token) != int(row.argmax())
            assert top_two <= gap
            assert gap < bound or gap == 0
            assert counts.widest_tie == gap
        if counts.differences:
            assert gap >= bound
            assert gap > 0
            assert counts.widest_difference == gap
        if counts.equal:
            assert int(token) == int(row.argmax())


@given(two_paths(), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_error_never_makes_more_differences(paths, one, other):
    reference, error, _ = paths
    chosen = (reference + error).argmax(-1)
    small, large = (judge(reference, chosen, bound) for bound in sorted((one, other)))
    assert small.differences >= large.differences
    assert small.equal == large.equal


@given(two_paths(), two_paths(), st.floats(0, 1))
def test_counts_of_parts_add_up_to_those_of_the_whole(first, second, bound):
    parts = TieCounts()
    for reference, error, _ in (first, second):
        for row in range(len(reference)):
            chosen = (reference + error).argmax(-1)[row : row + 1]
            parts += judge(reference[row : row + 1], chosen, bound)
    whole = sum(
        (judge(reference, (reference + error).argmax(-1), bound) for reference, error, _ in (first, second)),
        TieCounts(),
    )
    assert parts == whole
    assert whole.rows == len(first[0]) + len(second[0])


@given(two_paths())
def test_the_measured_error_explains_every_choice_of_its_own_rows(paths):
    reference, error, size = paths
    measured = measure_gap_error(reference, reference + error)
    assert measured <= 2 * size * (1 + 1e-9) + 1e-12
    assert judge(reference, (reference + error).argmax(-1), measured * (1 + 1e-9) + 1e-12).differences == 0


def test_a_wrong_token_stays_a_difference_and_is_said():
    reference = torch.tensor([[5.0, 4.9999, 0.0], [5.0, 4.9999, 0.0], [5.0, 4.9999, 0.0]])
    counts = judge(reference, torch.tensor([0, 1, 2]), 1e-3)
    assert (counts.equal, counts.ties, counts.differences) == (1, 1, 1)
    assert counts.describe() == (
        "3 tokens compared: 1 equal, 1 numeric ties (gaps up to 0.0001), 1 true differences (gaps up to 5)"
    )
    assert TieCounts(equal=4).describe() == "4 tokens compared: 4 equal, 0 numeric ties, 0 true differences"


def test_each_row_may_have_an_error_of_its_own():
    reference = torch.tensor([[1.0, 0.5], [1.0, 0.5]])
    counts = judge(reference, torch.tensor([1, 1]), torch.tensor([0.4, 0.6]))
    assert (counts.ties, counts.differences) == (1, 1)


def test_level_logits_are_a_tie_even_without_any_error():
    assert judge(torch.tensor([[2.0, 2.0]]), torch.tensor([1]), 0.0).ties == 1
    assert judge(torch.tensor([[2.0, 2.0 - 1e-6]]), torch.tensor([1]), 0.0).differences == 1


def test_tokens_ruled_out_in_both_paths_do_not_count_as_error():
    reference = torch.tensor([[1.0, -math.inf, 0.5]])
    assert measure_gap_error(reference, reference + 0.25) == 0
    assert judge(reference, torch.tensor([1]), 1e9).widest_difference == math.inf


def test_impossible_comparisons_are_refused():
    row = torch.tensor([[1.0, 2.0]])
    with pytest.raises(InputError, match="gap_error"):
        judge(row, torch.tensor([0]), -1.0)
    with pytest.raises(InputError, match="gap_error"):
        judge(row, torch.tensor([0]), math.nan)
    with pytest.raises(InputError, match=r"gap_error has the shape \[2\] but there are 1 rows"):
        judge(row, torch.tensor([0]), torch.zeros(2))
    with pytest.raises(InputError, match="NaN or no finite best"):
        judge(torch.tensor([[1.0, math.nan]]), torch.tensor([0]), 1.0)
    with pytest.raises(InputError, match="give one for each row"):
        judge(row, torch.tensor([0, 1]), 1.0)
    with pytest.raises(InputError, match="give the same rows of both"):
        measure_gap_error(row, row[:, :1])
    with pytest.raises(InputError, match="two paths' logits"):
        measure_gap_error(row, torch.tensor([[1.0, math.inf]]))
