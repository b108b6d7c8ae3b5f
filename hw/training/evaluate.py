"""Measures a pair as loaded from its files: `python -m hideaway.hw.training.evaluate --pair FOLDER`.

Writes beside `target/` and `drafter/`: `figures.json`; `acceptance-greedy.json`, `acceptance-0.6.json` and
`acceptance-1.0.json`, conditional rates by position that `--acceptance vector:PATH` reads; `routing.npz`, the experts
of held-out text; `held-out.txt`, a slice of held-out text whose loss is among the figures.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import Qwen3MoeForCausalLM

from hideaway.hw.draft.checkpoint import load_drafter
from hideaway.hw.draft.drafter import DFlashDrafter
from hideaway.hw.pairs import DRAFTER, TARGET
from hideaway.hw.pairs.reference import load_reference_model
from hideaway.hw.training.corpus import Corpus, read_corpus
from hideaway.hw.training.draft_acceptance import Acceptance, measured_acceptance
from hideaway.hw.training.experts import IMPLEMENTATION
from hideaway.hw.training.generation import continuations
from hideaway.hw.training.measures import mean_loss, repeated_share, routing, routing_figures, spread_windows
from hideaway.sim.files import write_bytes_atomically, write_json_atomically
from hideaway.sim.inputs.routing.npz import write_routing_file

PROMPTS, PROMPT_TOKENS, NEW_TOKENS = 64, 128, 192
LOSS_WINDOWS, LOSS_TOKENS = 128, 1024
ROUTING_TEXTS, ROUTING_TOKENS = 32, 512
RECORDED_TEXTS = 8
HELD_OUT_NAME, HELD_OUT_BYTES = "held-out.txt", 4096
TEMPERATURES = {"greedy": 0.0, "0.6": 0.6, "1.0": 1.0}


def evaluate(
    model: Qwen3MoeForCausalLM, drafter: DFlashDrafter, corpus: Corpus, seed: int
) -> tuple[dict[str, Any], dict[str, Acceptance]]:
    """Return the figures, and the acceptance of the target's own text by temperature."""
    prompts = spread_windows(corpus.validation, count=PROMPTS, length=PROMPT_TOKENS + NEW_TOKENS)
    acceptances, repeated = {}, {"held-out text": repeated_share(prompts[:, PROMPT_TOKENS:])}
    for index, (name, temperature) in enumerate(TEMPERATURES.items()):
        texts = continuations(
            model,
            prompts[:, :PROMPT_TOKENS],
            num_tokens=NEW_TOKENS,
            temperatures=torch.full((PROMPTS,), temperature),
            generator=torch.Generator().manual_seed(seed + index),
        )
        repeated[name] = repeated_share(texts[:, PROMPT_TOKENS:])
        acceptances[name] = _acceptance(drafter, model, texts, temperature, seed)
    teacher = _acceptance(drafter, model, prompts, 0.0, seed)
    loss = spread_windows(corpus.validation, count=LOSS_WINDOWS, length=LOSS_TOKENS + 1)
    traced = routing(model, spread_windows(corpus.validation, count=ROUTING_TEXTS, length=ROUTING_TOKENS))
    figures = {
        "seed": seed,
        "python": corpus.python,
        "corpus_sha256": corpus.sha256,
        "training_tokens": len(corpus.training),
        "validation_tokens": len(corpus.validation),
        "validation_nats_per_byte": mean_loss(model, loss),
        "prompts": PROMPTS,
        "drafts": drafter.config.block_size - 1,
        "drafts_accepted": {name: found.mean for name, found in acceptances.items()},
        "rounds": {name: int(found.rounds.sum()) for name, found in acceptances.items()},
        "drafts_accepted_held_out_text": teacher.mean,
        "conditional_acceptance": {name: found.conditional for name, found in acceptances.items()},
        "repeated_8_grams": repeated,
        "routing": routing_figures(traced),
    }
    return figures, acceptances


def _acceptance(
    drafter: DFlashDrafter, model: Qwen3MoeForCausalLM, texts: torch.Tensor, temperature: float, seed: int
) -> Acceptance:
    return measured_acceptance(
        drafter,
        model,
        texts,
        first=PROMPT_TOKENS,
        temperature=temperature,
        generator=np.random.default_rng(seed),
    )


def held_out_loss(model: Qwen3MoeForCausalLM, text: bytes) -> float:
    """Return nats per byte of a text, in windows of 1024 bytes."""
    tokens = torch.from_numpy(np.frombuffer(text, np.uint8).astype(np.int64))
    return mean_loss(model, tokens[: len(tokens) // 1024 * 1024].view(-1, 1024))


def held_out_text(corpus: Corpus) -> bytes:
    """Return the shipped slice: plain bytes from the middle of the validation text."""
    middle = corpus.validation[len(corpus.validation) // 2 :]
    return middle[middle < 256][:HELD_OUT_BYTES].astype(np.uint8).tobytes()


def main() -> None:
    """Evaluate from the command line."""
    parser = argparse.ArgumentParser(
        description="Measure a trained pair: loss, acceptance by temperature, repetition, routing.",
        epilog="example: python -m hideaway.hw.training.evaluate --pair build/pair --seed 3",
    )
    parser.add_argument(
        "--pair", type=Path, required=True, help="folder with target/ and drafter/; figures go there"
    )
    parser.add_argument(
        "--corpus", type=Path, help="folder of Python sources (default: the standard library)"
    )
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    corpus = read_corpus(given.corpus)
    model = load_reference_model(given.pair / TARGET, experts=IMPLEMENTATION)
    drafter = load_drafter(given.pair / DRAFTER)
    figures, acceptances = evaluate(model, drafter, corpus, given.seed)
    text = held_out_text(corpus)
    figures |= {"held_out_slice_nats_per_byte": held_out_loss(model, text)}
    write_bytes_atomically(given.pair / HELD_OUT_NAME, text)
    write_json_atomically(given.pair / "figures.json", figures)
    for name, found in acceptances.items():
        write_json_atomically(given.pair / f"acceptance-{name}.json", {"conditional": found.conditional})
    recorded = spread_windows(corpus.validation, count=RECORDED_TEXTS, length=ROUTING_TOKENS)
    traced = routing(model, recorded)
    write_routing_file(given.pair / "routing.npz", traced)


if __name__ == "__main__":
    main()
