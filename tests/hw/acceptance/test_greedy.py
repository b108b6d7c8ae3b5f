from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hideaway.hw.acceptance.greedy import accept_greedy
from hideaway.sim.errors import InputError


@st.composite
def rounds(draw):
    seqs, count = draw(st.integers(1, 5)), draw(st.integers(0, 7))
    token = st.integers(0, 2)
    drafts = draw(st.lists(st.lists(token, min_size=count, max_size=count), min_size=seqs, max_size=seqs))
    choices = draw(
        st.lists(st.lists(token, min_size=count + 1, max_size=count + 1), min_size=seqs, max_size=seqs)
    )
    num_drafts = draw(st.lists(st.integers(0, count), min_size=seqs, max_size=seqs))
    return drafts, choices, num_drafts


def one_by_one(drafts, choices):
    committed = []
    for draft, choice in zip(drafts, choices, strict=False):
        if draft != choice:
            break
        committed.append(draft)
    return [*committed, choices[len(committed)]]


@given(rounds())
def test_kept_drafts_are_those_a_loop_keeps(given_round):
    drafts, choices, num_drafts = given_round
    shaped = torch.tensor(drafts, dtype=torch.long).view(len(choices), -1)
    outcome = accept_greedy(shaped, torch.tensor(choices), torch.tensor(num_drafts))
    expected = [
        one_by_one(mine[:count], own[: count + 1])
        for mine, own, count in zip(drafts, choices, num_drafts, strict=True)
    ]
    assert outcome.committed(shaped) == expected
    assert outcome.acceptance_lengths() == [len(tokens) for tokens in expected]


@given(rounds())
def test_without_counts_all_columns_are_drafts(given_round):
    drafts, choices, _ = given_round
    shaped = torch.tensor(drafts, dtype=torch.long).view(len(choices), -1)
    outcome = accept_greedy(shaped, torch.tensor(choices))
    assert outcome.committed(shaped) == [
        one_by_one(mine, own) for mine, own in zip(drafts, choices, strict=True)
    ]


@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
def test_any_drafts_give_the_tokens_of_plain_greedy_decoding(seed, count):
    """The target is a table: the next token is a function of the last two."""
    drawn = torch.Generator().manual_seed(seed)
    table = torch.randint(3, (3, 3), generator=drawn)

    def following(tokens):
        return int(table[tokens[-2], tokens[-1]])

    plain, speculative = [0, 1], [0, 1]
    while len(plain) < 40:
        plain.append(following(plain))
    while len(speculative) < 40:
        drafts = torch.randint(3, (1, count), generator=drawn)
        verified = speculative + drafts[0].tolist()
        first = len(speculative)
        choices = torch.tensor([[following(verified[: first + row]) for row in range(count + 1)]])
        speculative += accept_greedy(drafts, choices).committed(drafts)[0]
    assert speculative[:40] == plain


def test_a_wrong_number_of_rows_is_refused():
    with pytest.raises(InputError, match="verified 3 rows for 3 drafts"):
        accept_greedy(torch.zeros(1, 3, dtype=torch.long), torch.zeros(1, 3, dtype=torch.long))
