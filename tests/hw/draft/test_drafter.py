from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hideaway.hw.draft.config_file import drafter_config_from_json
from hideaway.hw.draft.drafter import DFlashDrafter
from hideaway.sim.errors import InputError
from tests.hw.draft.literal_drafter import literal_hidden
from tests.hw.draft.random_drafters import BASE, BLOCK, CONFIGS, HIDDEN, SLIDING, features, normals
from tests.hw.draft.test_reference import drafter_of

LITERAL = ("full", "sliding", "sliding-both-ways")


def arrays(drafter: DFlashDrafter) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in drafter.state_dict().items()}


def rows(seed: int, *shape: int) -> torch.Tensor:
    return torch.from_numpy(normals(seed, *shape, HIDDEN))


@pytest.mark.parametrize("name", LITERAL)
@pytest.mark.parametrize("num_tokens", [0, 1, 13])
def test_a_draft_equals_the_literal_float64_computation(name, num_tokens):
    drafter, every, block = drafter_of(name), features(20)[:num_tokens], rows(5, 1, BLOCK)
    expected = literal_hidden(drafter.config, arrays(drafter), every, block[0].numpy())
    cache = drafter.new_cache()
    drafter.extend([cache], [torch.from_numpy(every)], [0])
    drafted = drafter.draft(block, [cache])
    assert drafted.shape == (1, BLOCK - 1, HIDDEN)
    np.testing.assert_allclose(drafted[0].numpy(), expected[1:], atol=2e-5, rtol=0)
    at_once = drafter(
        block[None],
        drafter.project(torch.from_numpy(every))[None],
        anchor_positions=torch.tensor([[num_tokens]]),
        context_positions=torch.arange(num_tokens)[None],
    )
    np.testing.assert_allclose(at_once[0, 0].detach().numpy(), expected, atol=2e-5, rtol=0)


@given(
    name=st.sampled_from(sorted(CONFIGS)),
    counts=st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4), min_size=1, max_size=4),
    num_rows=st.integers(2, BLOCK),
)
def test_ragged_incremental_drafts_equal_one_forward_over_everything(name, counts, num_rows):
    drafter = drafter_of(name)
    totals = [sum(mine) for mine in counts]
    every = [torch.from_numpy(features(20 + 16, seed))[:total] for seed, total in enumerate(totals)]
    caches = [drafter.new_cache() for _ in counts]
    for step in range(max(map(len, counts))):
        firsts = [cache.num_tokens for cache in caches]
        pieces = [
            rows_of[first : first + (mine[step] if step < len(mine) else 0)]
            for rows_of, first, mine in zip(every, firsts, counts, strict=True)
        ]
        drafter.extend(caches, pieces, firsts)
    assert [cache.num_tokens for cache in caches] == totals
    blocks = rows(3, len(counts), num_rows)
    drafted = drafter.draft(blocks, caches)
    longest = max(totals)
    padded = torch.stack(
        [torch.cat([mine, torch.full((longest - len(mine), mine.shape[1]), 1e3)]) for mine in every]
    )
    at_once = drafter(
        blocks[:, None],
        drafter.project(padded),
        anchor_positions=torch.tensor(totals)[:, None],
        context_positions=torch.arange(longest).expand(len(counts), -1),
    )
    torch.testing.assert_close(drafted, at_once[:, 0, 1:].detach(), atol=2e-5, rtol=0)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_block_sees_no_features_at_its_anchor_or_later(name):
    drafter, every = drafter_of(name), torch.from_numpy(features(12))
    spoilt = every.clone()
    spoilt[7:] = 1e3
    blocks, anchors = rows(4, 1, 2, BLOCK), torch.tensor([[3, 7]])
    positions = torch.arange(12)[None]
    seen, unseen = (
        drafter(
            blocks,
            drafter.project(given)[None],
            anchor_positions=anchors,
            context_positions=positions,
            context_mask=torch.ones(1, 2, 12, dtype=torch.bool),
        )
        for given in (every, spoilt)
    )
    assert torch.equal(seen, unseen)
    spoilt[6] = 1e3
    moved = drafter(
        blocks, drafter.project(spoilt)[None], anchor_positions=anchors, context_positions=positions
    )
    assert torch.equal(seen[:, 0], moved[:, 0])
    assert (seen[:, 1] - moved[:, 1]).abs().min() > 0


def test_blocks_do_not_see_one_another():
    drafter, context = drafter_of("full"), drafter_of("full").project(torch.from_numpy(features(9)))[None]
    positions, anchors = torch.arange(9)[None], torch.tensor([[4, 4, 9]])
    blocks = rows(4, 1, 3, BLOCK)
    seen = drafter(blocks, context, anchor_positions=anchors, context_positions=positions)
    blocks[:, 1] += 1
    moved = drafter(blocks, context, anchor_positions=anchors, context_positions=positions)
    assert torch.equal(seen[:, 0], moved[:, 0])
    assert torch.equal(seen[:, 2], moved[:, 2])
    assert not torch.allclose(seen[:, 1], moved[:, 1])


def test_the_mask_hides_context_as_if_it_were_not_there():
    drafter, every = drafter_of("full"), torch.from_numpy(features(10))
    blocks, anchors = rows(4, 1, 1, BLOCK), torch.tensor([[10]])
    mask = torch.arange(10) >= 4
    hidden = drafter(
        blocks,
        drafter.project(every)[None],
        anchor_positions=anchors,
        context_positions=torch.arange(10)[None],
        context_mask=mask[None, None],
    )
    without = drafter(
        blocks,
        drafter.project(every[4:])[None],
        anchor_positions=anchors,
        context_positions=torch.arange(4, 10)[None],
    )
    torch.testing.assert_close(hidden, without, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_truncated_cache_drafts_as_if_the_rest_had_never_come(name):
    drafter, every = drafter_of(name), torch.from_numpy(features(150))
    short, long = drafter.new_cache(), drafter.new_cache()
    drafter.extend([short], [every[:70]], [0])
    drafter.extend([long], [every], [0])
    block = rows(6, 2, BLOCK)
    drafter.draft(block[:1], [long])
    long.truncate(40)
    drafter.extend([long], [every[40:70]], [40])
    one, other = drafter.draft(torch.cat([block[:1], block[:1]]), [short, long])
    torch.testing.assert_close(one, other, atol=1e-5, rtol=0)


def test_drafting_leaves_the_cache_as_it_was():
    drafter = drafter_of("full")
    cache = drafter.new_cache()
    drafter.extend([cache], [torch.from_numpy(features(5))], [0])
    blocks = rows(6, 1, BLOCK)
    first = drafter.draft(blocks, [cache])
    drafter.draft(blocks + 1, [cache])
    assert cache.num_tokens == 5
    assert torch.equal(first, drafter.draft(blocks, [cache]))
    assert cache.num_bytes == 3 * 2 * 2 * 64 * 8 * 4


def test_a_cache_may_be_filled_in_inference_mode_and_used_outside():
    drafter, every = drafter_of("full"), torch.from_numpy(features(70))
    with torch.inference_mode():
        cache = drafter.new_cache()
        drafter.extend([cache], [every[:69]], [0])
    drafter.extend([cache], [every[69:]], [69])
    with torch.inference_mode():
        inside = drafter.draft(rows(6, 1, BLOCK), [cache])
    assert torch.equal(drafter.draft(rows(6, 1, BLOCK), [cache]), inside)


def test_no_sequences_give_no_drafts():
    drafter = drafter_of("full")
    drafter.extend([], [], [])
    assert drafter.draft(rows(6, 0, BLOCK), []).shape == (0, BLOCK - 1, HIDDEN)


def test_blocks_are_the_anchor_and_mask_tokens_through_the_targets_embedding():
    embedding = torch.from_numpy(normals(8, 50, HIDDEN))
    scaled = drafter_config_from_json(
        BASE | {"dflash_config": BASE["dflash_config"] | {"input_embedding_scale": 2.0}}, "test"
    )
    blocks = DFlashDrafter(scaled).embed_blocks(torch.tensor([3, 17]), embedding, 4)
    assert torch.equal(blocks[1], 2 * embedding[[17, 49, 49, 49]])
    assert blocks.shape == (2, 4, HIDDEN)


def test_logits_are_scaled_then_capped():
    config = drafter_config_from_json(
        BASE | {"output_multiplier": 0.5, "final_logit_softcapping": 3.0}, "test"
    )
    head = torch.nn.Linear(HIDDEN, 50, bias=False)
    hidden = rows(1, 2)
    expected = 3 * torch.tanh(head(hidden) * 0.5 / 3)
    torch.testing.assert_close(DFlashDrafter(config).logits(hidden, head), expected)


def test_weights_drawn_from_a_generator_are_the_same_and_leave_the_global_one_alone():
    config = drafter_config_from_json(BASE | {"attention_bias": True}, "test")
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    one, other = (DFlashDrafter(config, torch.Generator().manual_seed(9)).state_dict() for _ in range(2))
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert torch.equal(before, torch.random.get_rng_state())
    assert 0.015 < one["fc.weight"].std() < 0.025
    assert not one["layers.0.self_attn.q_proj.bias"].any()


def test_every_weight_gets_a_gradient_from_the_drafted_rows():
    drafter = DFlashDrafter(
        drafter_config_from_json(BASE | {"layer_types": SLIDING, "sliding_window": 4}, "test"),
        torch.Generator().manual_seed(9),
    )
    hidden = drafter(
        rows(4, 2, 3, BLOCK),
        drafter.project(torch.from_numpy(features(22)).view(2, 11, -1)),
        anchor_positions=torch.tensor([[0, 5, 11], [2, 2, 9]]),
        context_positions=torch.arange(11).expand(2, -1),
    )
    hidden[:, :, 1:].square().sum().backward()
    assert all(weight.grad is not None and weight.grad.abs().max() > 0 for weight in drafter.parameters())


def test_bfloat16_drafts_are_near_those_in_float32():
    every, block = torch.from_numpy(features(30)), rows(5, 1, BLOCK)
    drafted = []
    for dtype in (torch.float32, torch.bfloat16):
        drafter = drafter_of("bias-and-yarn", dtype)
        cache = drafter.new_cache()
        drafter.extend([cache], [every], [0])
        drafted.append(drafter.draft(block.to(dtype), [cache]))
    assert drafted[1].dtype == torch.bfloat16
    # Three layers of a few roundings of 2^-9 each, on values near 1.
    assert (drafted[0] - drafted[1].float()).abs().mean() < 0.03


def test_wrong_calls_are_refused_in_a_sentence():
    drafter = drafter_of("full")
    cache = drafter.new_cache()
    every = torch.from_numpy(features(4))
    drafter.extend([cache], [every], [0])
    with pytest.raises(InputError, match="begin at position 0 but the drafter's cache holds 4 tokens"):
        drafter.extend([cache], [every], [0])
    with pytest.raises(InputError, match=r"features have 71 channels but the drafter reads 72: 24 of each"):
        drafter.extend([cache], [every[:, :-1]], [4])
    with pytest.raises(InputError, match="features has 2 members but there are 1 sequences"):
        drafter.extend([cache], [every, every], [4])
    with pytest.raises(InputError, match="a block of 6 rows was to be drafted but the drafter takes 2 to 5"):
        drafter.draft(rows(1, 1, 6), [cache])
    with pytest.raises(InputError, match="a block of 1 rows"):
        drafter.draft(rows(1, 1, 1), [cache])
    with pytest.raises(InputError, match="truncated to 5; give a count from 0 to 4"):
        cache.truncate(5)
