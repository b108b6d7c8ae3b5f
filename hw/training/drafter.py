"""Trains the drafter of an exported target: `python -m hideaway.hw.training.drafter --target FOLDER --out FOLDER`.

The target first writes text, a third each greedily, at temperature 0.6 and at 1, after prompts from the corpus; half of
the windows come from it, half from the corpus, and all from it while the learning rate falls. The drafter goes to
`OUT/drafter`, in the published layout, bfloat16.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save
from transformers import Qwen3MoeForCausalLM

from hideaway.hw.draft.checkpoint import save_drafter
from hideaway.hw.draft.config import DrafterConfig
from hideaway.hw.draft.drafter import DFlashDrafter
from hideaway.hw.draft.rope import RopeParameters
from hideaway.hw.pairs.reference import load_reference_model
from hideaway.hw.training.arguments import add_training_flags, given_schedule
from hideaway.hw.training.corpus import MASK, VOCABULARY, Tokens, read_corpus, windows
from hideaway.hw.training.draft_loss import draft_loss
from hideaway.hw.training.experts import IMPLEMENTATION
from hideaway.hw.training.generation import continuations
from hideaway.hw.training.loop import Schedule, train
from hideaway.hw.training.target_model import ROPE_THETA
from hideaway.sim.files import write_bytes_atomically

GENERATED_NAME = "generated.safetensors"
TEMPERATURES = (0.0, 0.6, 1.0)
_TEXTS_AT_ONCE = 192


@dataclass(frozen=True, slots=True, kw_only=True)
class DrafterRecipe:
    """What a run depends on besides shapes, schedule and corpus; `anchors` are of each text.

    While the learning rate falls, every `long_every`-th step has the long texts.
    """

    seed: int = 2
    texts: int = 4
    window: int = 256
    anchors: int = 48
    long_texts: int = 2
    long_window: int = 1024
    long_anchors: int = 32
    long_every: int = 4
    generated_texts: int = 768
    prompt_tokens: int = 128
    generated_tokens: int = 512

    def batch_of(self, step: int, schedule: Schedule) -> tuple[int, int, int]:
        """Return texts, tokens of each and anchors of each at a step."""
        if schedule.decaying(step) and step % self.long_every == 0:
            return self.long_texts, self.long_window, self.long_anchors
        return self.texts, self.window, self.anchors


def drafter_config(model: Qwen3MoeForCausalLM, num_layers: int = 3, block_size: int = 8) -> DrafterConfig:
    """Return the shapes of a drafter for a target: all its layers but the first give features."""
    config = model.config
    return DrafterConfig(
        hidden_size=config.hidden_size,
        intermediate_size=2 * config.hidden_size,
        num_hidden_layers=num_layers,
        num_attention_heads=config.num_attention_heads,
        num_key_value_heads=config.num_key_value_heads,
        head_dim=config.head_dim,
        vocab_size=VOCABULARY,
        block_size=block_size,
        mask_token_id=MASK,
        target_layer_ids=tuple(range(1, config.num_hidden_layers)),
        num_target_layers=config.num_hidden_layers,
        rope=RopeParameters(rope_theta=ROPE_THETA),
    )


def train_drafter(
    model: Qwen3MoeForCausalLM,
    config: DrafterConfig,
    recipe: DrafterRecipe,
    schedule: Schedule,
    training: Tokens,
    folder: Path,
) -> DFlashDrafter:
    """Return the trained drafter; the folder keeps the target's text, checkpoint and log."""
    folder.mkdir(parents=True, exist_ok=True)
    written = generated_text(model, recipe, training, folder)
    drafter = DFlashDrafter(config, torch.Generator().manual_seed(recipe.seed))

    def loss_of_step(step: int) -> torch.Tensor:
        count, length, anchors = recipe.batch_of(step, schedule)
        own = count if schedule.decaying(step) else count // 2
        generator = np.random.default_rng([recipe.seed, step])
        parts = [
            windows(tokens, count=part, length=length, generator=generator)
            for tokens, part in ((training, count - own), (written, own))
        ]
        text = torch.from_numpy(np.concatenate(parts))
        last = length - config.block_size + 1
        places = torch.from_numpy(generator.integers(1, last, size=(count, anchors)))
        return draft_loss(drafter, model, text, places)

    train(drafter, loss_of_step, schedule, folder)
    return drafter


def generated_text(
    model: Qwen3MoeForCausalLM, recipe: DrafterRecipe, training: Tokens, folder: Path
) -> Tokens:
    """Return text that the target wrote, (tokens,), prompts included; kept in the folder once made."""
    path = folder / GENERATED_NAME
    if path.is_file():
        return load_file(path)["tokens"].numpy()
    generator = torch.Generator().manual_seed(recipe.seed)
    prompts = windows(
        training,
        count=recipe.generated_texts,
        length=recipe.prompt_tokens,
        generator=np.random.default_rng([recipe.seed]),
    )
    temperatures = torch.tensor(TEMPERATURES).repeat(-(-recipe.generated_texts // len(TEMPERATURES)))
    texts = []
    for first in range(0, recipe.generated_texts, _TEXTS_AT_ONCE):
        batch = slice(first, first + _TEXTS_AT_ONCE)
        chosen = torch.from_numpy(prompts[batch])
        texts.append(
            continuations(
                model,
                chosen,
                num_tokens=recipe.generated_tokens,
                temperatures=temperatures[batch][: len(chosen)],
                generator=generator,
            )
        )
        print(f"target's text {first + len(chosen)}/{recipe.generated_texts}", file=sys.stderr, flush=True)
    tokens = torch.cat(texts).flatten().to(torch.int16)
    write_bytes_atomically(path, save({"tokens": tokens}))
    return tokens.numpy()


def main() -> None:
    """Train from the command line."""
    parser = argparse.ArgumentParser(
        description="Train a DFlash drafter for an exported target.",
        epilog="example: python -m hideaway.hw.training.drafter --target build/pair/target --out build/drafter",
    )
    parser.add_argument("--target", type=Path, required=True, help="folder that export.py wrote")
    add_training_flags(parser, seed=DrafterRecipe().seed, steps=1900, decay_steps=900, warmup_steps=50)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    model = load_reference_model(given.target, experts=IMPLEMENTATION)
    schedule = given_schedule(given)
    corpus = read_corpus(given.corpus)
    recipe = DrafterRecipe(seed=given.seed)
    drafter = train_drafter(model, drafter_config(model), recipe, schedule, corpus.training, given.out)
    save_drafter(given.out / "drafter", drafter.to(torch.bfloat16))


if __name__ == "__main__":
    main()
