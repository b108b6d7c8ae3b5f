"""Trains the target: `python -m hideaway.hw.training.target --out FOLDER`.

Next-token cross-entropy on random windows of the corpus and a small balance loss. While the learning rate falls, the
experts are rounded to MXFP4 in the forward pass and some steps have longer windows, as many tokens in all. The folder
then holds `checkpoint.safetensors`; `export.py` makes the shipped files of it.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional
from transformers import Qwen3MoeForCausalLM

from hideaway.hw.training.arguments import add_training_flags, given_schedule
from hideaway.hw.training.corpus import Tokens, read_corpus, windows
from hideaway.hw.training.loop import Schedule, train
from hideaway.hw.training.target_model import (
    TargetShape,
    balance_loss,
    new_target,
    quantise_experts_in_forward,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRecipe:
    """What a run depends on besides shape, schedule and corpus.

    While the learning rate falls, every `long_every`-th step has windows of `long_window` tokens.
    """

    seed: int = 1
    tokens_per_step: int = 2048
    window: int = 256
    long_window: int = 1024
    long_every: int = 4
    balance_weight: float = 0.001

    def window_of(self, step: int, schedule: Schedule) -> int:
        """Return the tokens of each window at a step."""
        long = schedule.decaying(step) and step % self.long_every == 0
        return self.long_window if long else self.window


def train_target(
    shape: TargetShape, recipe: TargetRecipe, schedule: Schedule, training: Tokens, folder: Path
) -> Qwen3MoeForCausalLM:
    """Return the trained target, its experts rounded in the forward pass; the folder keeps checkpoint and log."""
    folder.mkdir(parents=True, exist_ok=True)
    model = new_target(shape, recipe.seed)

    def loss_of_step(step: int) -> torch.Tensor:
        quantise_experts_in_forward(model, schedule.decaying(step))
        length = recipe.window_of(step, schedule)
        text = windows(
            training,
            count=recipe.tokens_per_step // length,
            length=length + 1,
            generator=np.random.default_rng([recipe.seed, step]),
        )
        return target_loss(model, torch.from_numpy(text), shape.top_k, recipe.balance_weight)

    train(model, loss_of_step, schedule, folder)
    quantise_experts_in_forward(model, True)
    return model


def target_loss(
    model: Qwen3MoeForCausalLM, text: torch.Tensor, top_k: int, balance_weight: float
) -> torch.Tensor:
    """Return nats per token of windows (count, length + 1), the balance loss times its weight added."""
    out = model.model(input_ids=text[:, :-1], use_cache=False, output_router_logits=True)
    logits = model.lm_head(out.last_hidden_state)
    entropy = functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
    return entropy + balance_weight * balance_loss(out.router_logits, top_k)


def main() -> None:
    """Train from the command line."""
    parser = argparse.ArgumentParser(
        description="Train the byte-level mixture-of-experts target.",
        epilog="example: python -m hideaway.hw.training.target --out build/target --seed 1 --threads 2",
    )
    add_training_flags(parser, seed=TargetRecipe().seed, steps=2000, decay_steps=600, warmup_steps=100)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    corpus = read_corpus(given.corpus)
    recipe = TargetRecipe(seed=given.seed)
    train_target(TargetShape(), recipe, given_schedule(given), corpus.training, given.out)


if __name__ == "__main__":
    main()
