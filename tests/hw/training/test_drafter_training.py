"""A micro drafter learns from a micro target and is read back from its files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from transformers import Qwen3MoeForCausalLM

from hideaway.hw.draft.checkpoint import load_drafter, save_drafter
from hideaway.hw.training.draft_loss import GAMMA, draft_logits, draft_loss, target_view
from hideaway.hw.training.drafter import DrafterRecipe, drafter_config, generated_text, train_drafter
from hideaway.hw.training.loop import Schedule
from hideaway.hw.training.target_model import new_target
from tests.hw.training.micro_shape import SHAPE

RECIPE = DrafterRecipe(
    texts=2,
    window=48,
    anchors=12,
    long_texts=1,
    long_window=64,
    long_anchors=12,
    generated_texts=3,
    prompt_tokens=8,
    generated_tokens=40,
)
TEXT = np.frombuffer(b"a = [1, 2, 3]\nb = [4, 5, 6]\n" * 40, np.uint8).astype(np.int16)


def decided_target() -> Qwen3MoeForCausalLM:
    """A random target whose distributions are far from even, so that there is something to learn."""
    model = new_target(SHAPE, 1).eval().requires_grad_(False)
    model.lm_head.weight.mul_(10)
    return model


def test_loss_falls_and_the_files_hold_the_drafter(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    model = decided_target()
    schedule = Schedule(
        steps=24, warmup_steps=3, decay_steps=8, peak_learning_rate=1e-2, report_steps=4, checkpoint_steps=24
    )
    config = drafter_config(model, num_layers=1, block_size=4)
    drafter = train_drafter(model, config, RECIPE, schedule, TEXT, tmp_path)
    losses = [json.loads(line)["loss"] for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert losses[-1] < losses[0] - 0.5
    save_drafter(tmp_path / "drafter", drafter)
    loaded = load_drafter(tmp_path / "drafter")
    text = torch.from_numpy(TEXT[:40].astype(np.int64))[None]
    anchors = torch.tensor([[5, 20, 33]])
    features = target_view(model, text, config.target_layer_ids).features
    with torch.no_grad():
        kept, read = (draft_logits(one, model, text, features, anchors) for one in (drafter, loaded))
    assert torch.equal(kept, read)


def test_the_targets_text_is_written_once_and_begins_with_the_corpus(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    model = new_target(SHAPE, 1).eval().requires_grad_(False)
    written = generated_text(model, RECIPE, TEXT, tmp_path).reshape(3, 48)
    assert all(text[:8].astype(np.uint8).tobytes() in TEXT.astype(np.uint8).tobytes() for text in written)
    assert np.array_equal(generated_text(model, RECIPE, TEXT, tmp_path), written.flatten())


def test_the_loss_is_the_weighted_cross_entropy_to_the_targets_next_token() -> None:
    torch.set_num_threads(1)
    model = new_target(SHAPE, 1).eval().requires_grad_(False)
    from hideaway.hw.draft.drafter import DFlashDrafter

    config = drafter_config(model, num_layers=1, block_size=4)
    drafter = DFlashDrafter(config, torch.Generator().manual_seed(4))
    text = torch.from_numpy(TEXT[:30].astype(np.int64))[None]
    with torch.no_grad():
        found = draft_loss(drafter, model, text, torch.tensor([[7, 11]]))
        view = target_view(model, text, config.target_layer_ids)
        expected = total = 0.0
        for anchor in (7, 11):
            logits = draft_logits(drafter, model, text, view.features, torch.tensor([[anchor]]))[
                0, 0
            ].double()
            for row in range(
                3
            ):  # row k drafts position anchor + k + 1, which the target sees from anchor + k
                truth = view.logits[0, anchor + row].double().softmax(-1)
                weight = np.exp(-row / GAMMA)
                expected -= weight * float((truth * logits[row].log_softmax(-1)).sum())
                total += weight
    assert abs(float(found) - expected / total) < 1e-5
