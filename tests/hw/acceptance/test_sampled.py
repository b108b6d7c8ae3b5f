"""That what is emitted follows the target: by enumeration where it is exact, by chi-square where it is not."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from hideaway.hw.acceptance.greedy import accept_greedy
from hideaway.hw.acceptance.sampled import accept_sampled, decide, residual
from hideaway.hw.acceptance.sampling import SamplingRule, draw_rows
from hideaway.sim.errors import InputError

PARTS = 12
MIDPOINTS = (torch.arange(PARTS, dtype=torch.float64) + 0.5) / PARTS

# Distributions in twelfths such that min(1, p / q), and the shares of every residual, are whole twelfths: numbers at
# the middle of each twelfth then integrate the rule exactly. With zeros in q, zeros in p, p = q, and p certain.
TWELFTHS = {
    "apart": ([[6, 3, 3], [6, 3, 3]], [[3, 3, 6], [2, 5, 5], [6, 3, 3], [4, 4, 4]]),
    "q misses tokens": ([[12, 0, 0], [6, 6, 0]], [[3, 3, 6], [4, 4, 4], [6, 0, 6], [0, 6, 6]]),
    "p misses tokens": ([[6, 3, 3], [3, 6, 3]], [[12, 0, 0], [0, 12, 0], [6, 0, 6], [0, 0, 12]]),
    "p = q": ([[6, 3, 3], [6, 3, 3]], [[6, 3, 3], [6, 3, 3], [6, 3, 3], [6, 3, 3]]),
    "p certain": ([[4, 4, 4], [6, 6, 0]], [[0, 0, 12], [12, 0, 0], [0, 12, 0], [0, 0, 12]]),
    "q certain": ([[12, 0, 0], [0, 0, 12]], [[3, 3, 6], [4, 4, 4], [6, 3, 3], [2, 4, 6]]),
}


def is_exact(p, q):
    """Say whether every threshold of one row lies on a twelfth."""
    ratios = [min(PARTS, PARTS * a / b) for a, b in zip(p, q, strict=True) if b]
    left = [max(a - b, 0) for a, b in zip(p, q, strict=True)]
    sums = np.cumsum(left) * PARTS / max(1, sum(left))
    return all(float(value).is_integer() for value in (*ratios, *sums))


@pytest.mark.parametrize("name", TWELFTHS)
def test_the_joint_distribution_of_the_first_tokens_is_exactly_the_targets(name):
    """Two drafts, then the target's own token; p of a row depends on the token before it, q does not.

    Whatever ends a round before two tokens is continued with the target itself.
    """
    q_rows, p_after = TWELFTHS[name]
    first, after = p_after[0], p_after[1:]
    assert is_exact(first, q_rows[0])
    assert all(is_exact(row, q_rows[1]) for row in after)
    cases = list(product(range(3), range(3)))
    drafts = torch.tensor([case for case in cases for _ in range(PARTS**3)])
    uniforms = (
        torch.stack(torch.meshgrid(*[MIDPOINTS] * 3, indexing="ij"), -1).view(-1, 3).repeat(len(cases), 1)
    )
    q = torch.tensor(q_rows, dtype=torch.float64) / PARTS
    p_next = torch.tensor(after, dtype=torch.float64) / PARTS
    chance = q[0][drafts[:, 0]] * q[1][drafts[:, 1]] / PARTS**3
    drafts, uniforms, chance = (x[chance > 0] for x in (drafts, uniforms, chance))
    start = torch.tensor(first, dtype=torch.float64).expand(len(drafts), 1, 3) / PARTS
    p = torch.cat([start, p_next[drafts[:, 0], None], p_next[drafts[:, 1], None]], 1)
    outcome = decide(drafts, q.expand(len(drafts), -1, -1), p, uniforms)
    emitted = torch.cat([drafts, drafts[:, :1]], 1).scatter(
        1, outcome.accepted[:, None], outcome.own[:, None]
    )
    one, two, three = emitted.T
    joint = torch.zeros(3, 3, dtype=torch.float64)
    whole = outcome.accepted >= 1
    joint.index_put_((one[whole], two[whole]), chance[whole], accumulate=True)
    ended = torch.zeros(3, dtype=torch.float64).index_put_((one[~whole],), chance[~whole], accumulate=True)
    joint += ended[:, None] * p_next
    both_kept = outcome.accepted == 2
    third = torch.zeros(3, 3, 3, dtype=torch.float64)
    third.index_put_((one[both_kept], two[both_kept], three[both_kept]), chance[both_kept], accumulate=True)
    expected = torch.tensor(first, dtype=torch.float64)[:, None] / PARTS * p_next
    torch.testing.assert_close(joint, expected, atol=1e-12, rtol=0)
    # Given that both drafts were kept, the third token is the target's after the second.
    both = third.sum(-1, keepdim=True)
    torch.testing.assert_close(third, both * p_next[None].expand(3, -1, -1), atol=1e-12, rtol=0)


def distributions(size):
    weights = st.lists(st.integers(0, 9), min_size=size, max_size=size).filter(any)
    return weights.map(lambda row: torch.tensor(row, dtype=torch.float64) / sum(row))


@given(st.integers(2, 6).flatmap(lambda size: st.tuples(distributions(size), distributions(size))))
def test_kept_draft_or_residual_add_up_to_the_target(pair):
    p, q = pair
    kept = torch.minimum(p, q)
    left = residual(p, q)
    emitted = kept + (1 - kept.sum()) * left / left.sum()
    torch.testing.assert_close(emitted, p, atol=1e-12, rtol=0)


@given(
    st.integers(2, 5).flatmap(lambda size: st.tuples(distributions(size), distributions(size))),
    st.floats(0, 1, exclude_max=True),
)
def test_a_token_that_the_target_excludes_is_never_emitted(pair, uniform):
    p, q = pair
    numbers = torch.tensor([[uniform, 1 - uniform - 2**-54 if uniform < 1 else 0.0]], dtype=torch.float64)
    for token in torch.nonzero(q)[:, 0].tolist():
        drafts = torch.tensor([[token]])
        outcome = decide(drafts, q[None, None], p.expand(1, 2, -1), numbers.clamp(0, 1 - 2**-53))
        assert all(p[emitted] > 0 for emitted in outcome.committed(drafts)[0])


def test_drafts_are_always_kept_where_p_equals_q():
    rows = torch.softmax(torch.randn(64, 5, 11, generator=torch.Generator().manual_seed(0)).double(), -1)
    generators = [torch.Generator().manual_seed(seed) for seed in range(64)]
    drafts = draw_rows(rows[:, :4], generators)
    outcome = accept_sampled(drafts, rows[:, :4], rows, generators)
    assert outcome.accepted.tolist() == [4] * 64


def test_at_temperature_zero_the_greedy_rule_comes_out():
    drawn = torch.Generator().manual_seed(3)
    p_logits, q_logits = torch.randn(2, 40, 5, 3, generator=drawn)
    rule = SamplingRule(temperature=0)
    p, q = rule.probabilities(p_logits), rule.probabilities(q_logits[:, :4])
    generators = [torch.Generator().manual_seed(seed) for seed in range(40)]
    drafts = draw_rows(q, generators)
    assert torch.equal(drafts, q_logits[:, :4].argmax(-1))
    sampled = accept_sampled(drafts, q, p, generators)
    greedy = accept_greedy(drafts, p_logits.argmax(-1))
    assert sampled.committed(drafts) == greedy.committed(drafts)
    assert len(set(greedy.accepted.tolist())) > 1


NUM_RUNS, NUM_TOKENS, VOCAB, DRAFTS = 12_000, 3, 3, 2
FALSE_ALARM = 1e-6
"""Chance that a right rule fails one of these tests; the seeds are fixed, so it fails always or never."""


def chance_of(counts, distribution):
    """Return the chance of a chi-square at least as large if the counts were drawn from the distribution.

    Cells that expect fewer than five become one cell, so that the statistic has its distribution.
    """
    expected, counts = distribution.numpy().ravel() * counts.sum(), counts.ravel()
    if counts[expected == 0].any():
        return 0.0
    order = np.argsort(expected)
    order = order[expected[order] > 0]
    rare = max(
        int((expected < 5).sum() - (expected == 0).sum()), int((expected[order].cumsum() < 5).sum()) + 1
    )
    mine, theirs = (np.append(x[order][rare:], x[order][:rare].sum()) for x in (counts, expected))
    assert theirs.min() >= 5
    return chi2.sf(((mine - theirs) ** 2 / theirs).sum(), len(theirs) - 1)


@pytest.mark.parametrize(
    "rule",
    [SamplingRule(), SamplingRule(temperature=0.6), SamplingRule(top_k=2), SamplingRule(top_p=0.7)],
    ids=["plain", "temperature", "top-k", "top-p"],
)
def test_many_rounds_emit_the_targets_joint_distribution(rule):
    """Rounds of two drafts, drawn independently per row as a block drafter does, until three tokens are out."""
    drawn = torch.Generator().manual_seed(11)
    p_table = rule.probabilities(torch.randn(VOCAB, VOCAB, generator=drawn))
    q_table = rule.probabilities(torch.randn(VOCAB, DRAFTS, VOCAB, generator=drawn))
    generators = [torch.Generator().manual_seed(seed) for seed in range(NUM_RUNS)]
    tokens = torch.zeros(NUM_RUNS, NUM_TOKENS + DRAFTS + 1, dtype=torch.long)
    length = torch.zeros(NUM_RUNS, dtype=torch.long)
    while bool((length < NUM_TOKENS).any()):
        active = torch.nonzero(length < NUM_TOKENS)[:, 0]
        last = tokens[active, length[active]]
        q = q_table[last]
        mine = [generators[run] for run in active.tolist()]
        drafts = draw_rows(q, mine)
        p = p_table[torch.cat([last[:, None], drafts], 1)]
        outcome = accept_sampled(drafts, q, p, mine)
        new = torch.cat([drafts, drafts[:, :1]], 1)
        new.scatter_(1, outcome.accepted[:, None], outcome.own[:, None])
        for column in range(DRAFTS + 1):
            kept = column <= outcome.accepted
            tokens[active[kept], length[active[kept]] + column + 1] = new[kept, column]
        length[active] += outcome.accepted + 1
    emitted = tokens[:, 1 : NUM_TOKENS + 1]
    counts = np.zeros((VOCAB,) * NUM_TOKENS)
    np.add.at(counts, tuple(emitted.T.numpy()), 1)
    expected = p_table[0][:, None, None] * p_table[:, :, None] * p_table[None]
    assert chance_of(counts, expected) > FALSE_ALARM
    # The test can fail: had the first token followed the drafter, it would.
    assert chance_of(counts, q_table[0, 0][:, None, None] * p_table[:, :, None] * p_table[None]) < FALSE_ALARM


def test_a_sequence_gets_the_same_tokens_whatever_is_batched_with_it():
    drawn = torch.Generator().manual_seed(2)
    p = torch.softmax(torch.randn(6, 5, 9, generator=drawn).double(), -1)
    q = torch.softmax(torch.randn(6, 4, 9, generator=drawn).double(), -1)
    counts = torch.tensor([4, 2, 0, 3, 4, 1])

    def generators(seqs):
        return [torch.Generator().manual_seed(100 + seq) for seq in seqs]

    drafts = draw_rows(q, generators(range(6)))
    shared = generators(range(6))
    together = accept_sampled(drafts, q, p, shared, counts).committed(drafts)
    for seq in range(6):
        width, own = int(counts[seq]), generators([seq])
        mine = drafts[seq : seq + 1, :width]
        alone = accept_sampled(mine, q[seq : seq + 1, :width], p[seq : seq + 1, : width + 1], own)
        assert alone.committed(mine)[0] == together[seq]
        assert len(together[seq]) <= width + 1
        # The next round, too: both have drawn as many numbers.
        assert torch.rand(1, generator=shared[seq]) == torch.rand(1, generator=own[0])


def test_calls_that_do_not_fit_are_refused():
    drafts = torch.tensor([[1]])
    q, p = torch.tensor([[[0.5, 0.5]]]), torch.tensor([[[0.5, 0.5], [0.5, 0.5]]])
    one = [torch.Generator().manual_seed(0)]
    with pytest.raises(InputError, match="2 generators for 1 sequences"):
        accept_sampled(drafts, q, p, one * 2)
    with pytest.raises(InputError, match="verified 1 rows for 1 drafts"):
        accept_sampled(drafts, q, p[:, :1], one)
    with pytest.raises(InputError, match=r"q has the shape \[1, 1, 3\]"):
        accept_sampled(drafts, torch.ones(1, 1, 3) / 3, p, one)
    with pytest.raises(InputError, match="probability 0 in the q it was drawn from"):
        accept_sampled(drafts, torch.tensor([[[1.0, 0.0]]]), p, one)
