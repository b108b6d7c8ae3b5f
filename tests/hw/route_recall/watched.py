"""Micro models with random weights, watched while they decode; some with a router or layers planted."""

from __future__ import annotations

import numpy as np
import torch

from hideaway.hw.acceptance.sampling import SamplingRule
from hideaway.hw.fp4.cpu_expert import CpuExpert
from hideaway.hw.route_recall.drafting import DrafterDrafts, SpoiltText
from hideaway.hw.route_recall.measure import PlayOptions, play_both
from hideaway.hw.route_recall.served import WatchedModel
from hideaway.hw.target.load import load_target
from tests.hw.engine.micro_pair import micro_drafter
from tests.hw.target.micro_models import (
    VOCABULARY,
    packed,
    random_model,
    save_checkpoint,
    with_stored_experts,
)

SEQUENCES, PROMPT, ROUNDS, BLOCK = 3, 12, 6, 4
FEATURES = (0, 2)


class Watched:
    """A saved model, opened to be watched, and the same as transformers runs it."""

    def __init__(self, family, folder, plant=None, features=(), **changes):
        model = random_model(family, **changes)
        if plant is not None:
            plant(model)
        path = save_checkpoint(folder / "model", model)
        store = packed(path, folder / "store")
        self.plain = with_stored_experts(model, store)
        self.target = load_target(path, feature_layers=features)
        expert = CpuExpert(store.description.layout, threads=1, invariant=True)
        self.model = WatchedModel(self.target, store, expert.forward, farthest=8)


def texts_of(seed, count=SEQUENCES, length=PROMPT + (ROUNDS + 1) * BLOCK):
    drawn = np.random.default_rng(seed).integers(VOCABULARY, size=(count, length))
    return [tuple(row) for row in drawn.tolist()]


def play_spoilt(watched, seed=5, share=0.3):
    """Return (calibration, judged) rounds over random texts."""
    return play_both(
        watched.model,
        lambda texts, number: SpoiltText(texts, share, np.random.default_rng([number, 2])),
        texts_of(1),
        texts_of(2),
        PlayOptions(prompt_tokens=PROMPT, rounds_each=ROUNDS, block_size=BLOCK, seed=seed),
    )


def play_drafted(watched, seed=5, temperature=0.0):
    drafter = micro_drafter(vocab_size=VOCABULARY, mask_token_id=VOCABULARY - 1, target_layer_ids=FEATURES)
    drafter.requires_grad_(False)
    return play_both(
        watched.model,
        lambda texts, _: DrafterDrafts(drafter, watched.target, SamplingRule(temperature=temperature)),
        texts_of(1),
        texts_of(2),
        PlayOptions(prompt_tokens=PROMPT, rounds_each=ROUNDS, block_size=BLOCK, seed=seed),
    )


@torch.inference_mode()
def plain_routing(model, tokens):
    """Return what transformers' own model chooses, (tokens, layers, k), by hooks on its routers."""
    chosen = []
    hooks = [
        router.register_forward_hook(lambda _, __, output: chosen.append(output[2].numpy()))
        for layer in model.model.layers
        for router in (getattr(layer.mlp, "gate", None), getattr(layer.mlp, "router", None))
        if router is not None and hasattr(layer.mlp, "experts")
    ]
    model(input_ids=torch.tensor([tokens]), use_cache=False)
    for hook in hooks:
        hook.remove()
    return np.stack(chosen, axis=1)
