"""The flags that both trainings take, and the schedule they say."""

from __future__ import annotations

import argparse
from pathlib import Path

from hideaway.hw.training.loop import Schedule


def add_training_flags(
    parser: argparse.ArgumentParser, *, seed: int, steps: int, decay_steps: int, warmup_steps: int
) -> None:
    """Add folder, corpus, seed, threads and schedule, with these defaults."""
    parser.add_argument(
        "--out", type=Path, required=True, help="folder of checkpoint and log; an old one goes on"
    )
    parser.add_argument(
        "--corpus", type=Path, help="folder of Python sources (default: the standard library)"
    )
    parser.add_argument("--seed", type=int, default=seed)
    parser.add_argument(
        "--threads", type=int, default=1, help="of torch; figures are the same only for equal threads"
    )
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--decay-steps", type=int, default=decay_steps)
    parser.add_argument("--warmup-steps", type=int, default=warmup_steps)
    parser.add_argument("--learning-rate", type=float, default=2e-3)


def given_schedule(given: argparse.Namespace) -> Schedule:
    """Return the schedule of parsed flags.

    Raises
    ------
    InputError
        The steps do not fit together.
    """
    return Schedule(
        steps=given.steps,
        warmup_steps=given.warmup_steps,
        decay_steps=given.decay_steps,
        peak_learning_rate=given.learning_rate,
    )
