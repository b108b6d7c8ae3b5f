from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from hideaway.hw.acceptance.sampling import SamplingRule, draw, draw_rows
from hideaway.sim.errors import InputError

LOGITS = st.lists(st.floats(-20, 20, width=32), min_size=2, max_size=12)


@given(LOGITS, st.floats(0.05, 5), st.integers(1, 12), st.floats(0.05, 0.99))
def test_probabilities_equal_those_of_transformers(logits, temperature, top_k, top_p):
    # Where the nucleus ends within rounding of a token's sum, either answer is right.
    row = torch.tensor([logits], dtype=torch.float64)
    expected = TemperatureLogitsWarper(temperature)(None, row)
    expected = TopKLogitsWarper(min(top_k, len(logits)))(None, expected)
    ordered = torch.softmax(expected, -1).sort(descending=True).values.cumsum(-1)
    if (ordered - top_p).abs().min() < 1e-6 or len(set(logits)) < len(logits):
        return
    expected = torch.softmax(TopPLogitsWarper(top_p)(None, expected), dim=-1)
    rule = SamplingRule(temperature=temperature, top_k=top_k, top_p=top_p)
    torch.testing.assert_close(rule.probabilities(row), expected, atol=1e-12, rtol=0)


@given(LOGITS, st.floats(0, 5), st.integers(0, 12), st.floats(0.01, 1))
def test_every_row_is_a_distribution_on_the_likeliest_tokens(logits, temperature, top_k, top_p):
    rule = SamplingRule(temperature=temperature, top_k=top_k, top_p=top_p)
    row = torch.tensor([logits])
    shares = rule.probabilities(row)
    assert shares.min() >= 0
    assert float(shares.sum()) == pytest.approx(1, abs=1e-12)
    kept = shares[0] > 0
    if top_k:
        assert int(kept.sum()) <= top_k
    if kept.any() and not kept.all() and temperature > 0.5:
        assert row[0][kept].min() >= row[0][~kept].max()


def test_temperature_zero_takes_the_first_of_the_largest():
    shares = SamplingRule(temperature=0).probabilities(torch.tensor([[1.0, 3.0, 3.0], [2.0, -math.inf, 1.0]]))
    assert shares.tolist() == [[0, 1, 0], [1, 0, 0]]


def test_a_tiny_temperature_is_no_infinity():
    shares = SamplingRule(temperature=1e-300).probabilities(torch.tensor([[1.0, 3.0, 2.0]]))
    assert shares.tolist() == [[0, 1, 0]]


def test_the_same_rule_for_rows_and_for_batches():
    logits = torch.randn(3, 4, 9, generator=torch.Generator().manual_seed(0))
    rule = SamplingRule(temperature=0.7, top_k=5, top_p=0.8)
    apart = torch.stack([torch.stack([rule.probabilities(row) for row in rows]) for rows in logits])
    assert torch.equal(rule.probabilities(logits), apart)


@pytest.mark.parametrize(
    "row", [[1.0, math.nan], [1.0, math.inf], [-math.inf, -math.inf]], ids=["nan", "inf", "none"]
)
def test_rows_without_a_distribution_are_refused(row):
    with pytest.raises(InputError, match="nothing can be drawn"):
        SamplingRule().probabilities(torch.tensor([row]))


@pytest.mark.parametrize("given", [{"temperature": -1.0}, {"top_k": -1}, {"top_p": 0.0}, {"top_p": 1.5}])
def test_rules_outside_their_range_are_refused(given):
    with pytest.raises(InputError, match=next(iter(given))):
        SamplingRule(**given)


def test_draws_split_the_unit_interval_by_the_weights():
    weights = torch.tensor([0.0, 1.0, 0.0, 2.0, 0.0])
    picked = draw(weights.expand(7, -1), torch.tensor([0.0, 0.3, 0.33, 0.34, 0.99, 0.5, 1 - 2**-53]))
    assert picked.tolist() == [1, 1, 1, 3, 3, 3, 3]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0, 1, exclude_max=True))
def test_a_token_of_weight_zero_is_never_drawn(weights, uniform):
    if not sum(weights) > 1e-300:
        return
    picked = draw(torch.tensor([weights], dtype=torch.float64), torch.tensor([uniform], dtype=torch.float64))
    assert weights[int(picked)] > 0


def test_rows_are_drawn_from_each_sequences_own_generator():
    shares = torch.softmax(torch.randn(3, 5, 7, generator=torch.Generator().manual_seed(1)), -1)
    together = draw_rows(shares, [torch.Generator().manual_seed(seed) for seed in (4, 5, 6)])
    alone = draw_rows(shares[1:2], [torch.Generator().manual_seed(5)])
    assert torch.equal(together[1:2], alone)
    assert draw_rows(shares[:0], []).shape == (0, 5)
