"""What a round leaves is what the model really routes: against transformers' own forward over the whole text."""

from __future__ import annotations

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

from hideaway.hw.route_recall.rounds import chosen
from tests.hw.route_recall.watched import (
    BLOCK,
    FEATURES,
    PROMPT,
    ROUNDS,
    Watched,
    plain_routing,
    play_drafted,
    play_spoilt,
    texts_of,
)
from tests.hw.target.micro_models import HIDDEN, VOCABULARY


@pytest.fixture(scope="module", params=["qwen3_moe", "gpt_oss"])
def watched(request, tmp_path_factory):
    return Watched(request.param, tmp_path_factory.mktemp(request.param), features=FEATURES)


@pytest.fixture(scope="module")
def qwen(tmp_path_factory):
    return Watched("qwen3_moe", tmp_path_factory.mktemp("qwen"), features=FEATURES)


def sorted_ids(ids):
    return np.sort(ids, axis=-1)


def test_kept_rows_are_routed_as_transformers_routes_the_text(watched) -> None:
    _, played = play_spoilt(watched)
    for text, truth in zip(texts_of(2), played.truth, strict=True):
        routed = plain_routing(watched.plain, text)
        assert len(truth) >= PROMPT + ROUNDS
        for position, ids in truth.items():
            assert np.array_equal(sorted_ids(ids), sorted_ids(routed[position]))


def test_rejected_rows_are_routed_as_transformers_routes_the_drafts(qwen) -> None:
    """The row after the anchor in a round that spoilt it: the text up to the anchor, then another token."""
    _, played = play_spoilt(qwen, share=1.0)
    texts = texts_of(2)
    one = next(one for one in played.rounds if one.kept == 1)
    found = False
    kept = plain_routing(qwen.plain, texts[one.sequence][: one.position + BLOCK])
    assert np.array_equal(sorted_ids(one.ids[:, 0]), sorted_ids(kept[one.position]))
    for token in range(VOCABULARY):
        tried = plain_routing(qwen.plain, (*texts[one.sequence][: one.position + 1], token))
        found |= np.array_equal(sorted_ids(one.ids[:, 1]), sorted_ids(tried[one.position + 1]))
    assert found


def test_a_text_goes_on_where_its_round_ended(qwen) -> None:
    _, played = play_spoilt(qwen)
    assert len(played.rounds) == 3 * ROUNDS
    for before, after in zip(played.rounds, played.rounds[1:], strict=False):
        if before.sequence == after.sequence:
            assert after.position == before.position + before.kept
            assert np.array_equal(after.last, before.ids[:, before.kept - 1])
            assert np.array_equal(after.last_kept, before.ids[:, : before.kept])
        else:
            assert after.position == PROMPT
    assert {one.kept for one in played.rounds} >= {1, 2}


def test_greedy_rounds_leave_the_text_that_plain_greedy_decoding_writes(qwen) -> None:
    _, played = play_drafted(qwen)
    text = list(texts_of(2)[0][:PROMPT])
    truth = played.truth[0]
    with torch.inference_mode():
        while len(text) < len(truth):
            text.append(
                int(qwen.plain(input_ids=torch.tensor([text]), use_cache=False).logits[0, -1].argmax())
            )
    routed = plain_routing(qwen.plain, text)
    for position, ids in truth.items():
        assert np.array_equal(sorted_ids(ids), sorted_ids(routed[position]))


def test_what_a_drafter_knows_is_kept_beside_the_round(qwen) -> None:
    one = play_drafted(qwen)[1].rounds[0]
    assert one.inputs.drafts.shape == (BLOCK - 1, 2 * HIDDEN)
    assert one.inputs.anchor.shape == ((len(FEATURES) + 1) * HIDDEN,)
    assert np.array_equal(one.inputs.drafts[:, HIDDEN:], one.embeddings[1:])
    assert np.array_equal(one.inputs.anchor[-HIDDEN:], one.embeddings[0])
    assert np.abs(one.inputs.drafts[:, :HIDDEN]).max() > 0


def test_a_seed_fixes_sampled_rounds_and_another_changes_them(qwen) -> None:
    first, again, other = (play_drafted(qwen, seed=seed, temperature=1.0)[1] for seed in (5, 5, 6))
    assert all(np.array_equal(one.ids, two.ids) for one, two in zip(first.rounds, again.rounds, strict=True))
    assert any(
        not np.array_equal(one.ids, two.ids) for one, two in zip(first.rounds, other.rounds, strict=True)
    )


def test_ids_that_do_not_exist_choose_nothing() -> None:
    marks = chosen(np.array([[0, 3], [-1, -1]], dtype=np.int16), 4)
    assert marks.tolist() == [[True, False, False, True], [False] * 4]
