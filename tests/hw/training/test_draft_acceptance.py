"""Walking along the target's text accepts as speculative sampling does, and greedy drafting as a real loop does."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

from hideaway.hw.draft.config import DrafterConfig
from hideaway.hw.draft.drafter import DFlashDrafter
from hideaway.hw.training.corpus import MASK
from hideaway.hw.training.draft_acceptance import (
    Acceptance,
    acceptance_rates,
    measured_acceptance,
    walked,
)
from hideaway.hw.training.drafter import drafter_config
from hideaway.hw.training.generation import continuations
from hideaway.hw.training.target_model import new_target
from tests.hw.training.micro_shape import SHAPE


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def test_the_walk_has_the_distribution_of_speculative_sampling() -> None:
    """Exact enumeration: two drafts of three tokens, p depends on what came before, q does not."""
    rng = np.random.default_rng(0)
    first_p, second_p = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), size=3)
    q = rng.dirichlet(np.ones(3), size=2)
    # Drafts y, each kept with min(1, p / q): the chance that 0, 1 or 2 are kept.
    expected = np.zeros(3)
    for one, two in product(range(3), repeat=2):
        drawn = q[0, one] * q[1, two]
        keep_one = min(1, first_p[one] / q[0, one])
        keep_two = min(1, second_p[one, two] / q[1, two])
        expected += drawn * np.array([1 - keep_one, keep_one * (1 - keep_two), keep_one * keep_two])
    # Texts x of the target, each token accepted with min(1, q / p).
    found = np.zeros(3)
    for one, two in product(range(3), repeat=2):
        text = first_p[one] * second_p[one, two]
        keep_one = min(1, q[0, one] / first_p[one])
        keep_two = min(1, q[1, two] / second_p[one, two])
        found += text * np.array([1 - keep_one, keep_one * (1 - keep_two), keep_one * keep_two])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_round_commits_one_token_more_than_it_accepts() -> None:
    rates = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
    # From anchor 0 one draft is kept: the next anchor is 2, where all three are, and the walk ends.
    assert walked(rates, np.random.default_rng(0)).tolist() == [0, 1, 0, 1]


def test_figures_of_known_rounds() -> None:
    acceptance = Acceptance(np.array([4, 3, 2, 1]))
    assert acceptance.mean == pytest.approx((3 + 4 + 3) / 10)
    assert acceptance.conditional == pytest.approx((6 / 10, 3 / 6, 1 / 3))


def random_pair() -> tuple[object, DFlashDrafter]:
    model = new_target(SHAPE, 5).eval().requires_grad_(False)
    config: DrafterConfig = drafter_config(model, num_layers=1, block_size=4)
    drafter = DFlashDrafter(config, torch.Generator().manual_seed(1)).eval().requires_grad_(False)
    return model, drafter


def test_greedy_rounds_are_those_of_drafting_with_a_cache_and_comparing() -> None:
    model, drafter = random_pair()
    assert drafter.config.mask_token_id == MASK
    prompt = torch.arange(40, 56)[None]
    text = continuations(
        model,
        prompt,
        num_tokens=32,
        temperatures=torch.zeros(1),
        generator=torch.Generator().manual_seed(0),
    )
    found = measured_acceptance(
        drafter, model, text, first=16, temperature=0.0, generator=np.random.default_rng(0)
    )
    embedding = model.get_input_embeddings().weight
    counts, anchor = np.zeros(4, dtype=int), 15
    while anchor < text.shape[1] - 4:
        hidden = model.model(input_ids=text[:, : anchor + 1], output_hidden_states=True).hidden_states
        features = torch.cat([hidden[layer + 1] for layer in drafter.config.target_layer_ids], dim=-1)
        cache = drafter.new_cache()
        drafter.extend([cache], [features[0, :anchor]], [0])
        rows = drafter.draft(drafter.embed_blocks(text[:, anchor], embedding, 4), [cache])
        drafts = drafter.logits(rows, model.lm_head).argmax(-1)[0]
        same = (drafts == text[0, anchor + 1 : anchor + 4]).tolist()
        accepted = 3 if all(same) else same.index(False)
        counts[accepted] += 1
        anchor += accepted + 1
    assert found.rounds.tolist() == counts.tolist()


def test_rates_are_one_where_the_drafter_gives_the_token_at_least_the_targets_chance() -> None:
    model, drafter = random_pair()
    text = torch.arange(30, 60)[None]
    rates = acceptance_rates(drafter, model, text, first=4, temperature=1.0)
    assert rates.shape == (1, 23, 3)
    assert (rates > 0).all()
    assert (rates <= 1).all()
    hot = acceptance_rates(drafter, model, text, first=4, temperature=1e6)  # both uniform: everything is kept
    np.testing.assert_allclose(hot, 1, atol=1e-4)
