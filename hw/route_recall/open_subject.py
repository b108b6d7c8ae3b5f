"""From a model's folder and a text to what is played: a watched model, drafts, and prompts of two disjoint parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from hideaway.hw.acceptance.sampling import SamplingRule
from hideaway.hw.draft.checkpoint import load_drafter
from hideaway.hw.draft.drafter import DFlashDrafter
from hideaway.hw.engine.open_model import ModelFiles, open_store
from hideaway.hw.fp4.cpu_expert import CpuExpert
from hideaway.hw.route_recall.drafting import DrafterDrafts, Drafts, SpoiltText
from hideaway.hw.route_recall.measure import Prompts
from hideaway.hw.route_recall.served import WatchedModel
from hideaway.hw.target.load import config_of, load_target
from hideaway.hw.target.prompts import Codec
from hideaway.sim.errors import InputError
from hideaway.sim.files import read_text
from hideaway.sim.inputs.models import ModelSpec, load_model

DEFAULT_BLOCK_SIZE = 8
"""Where there is no drafter that says otherwise."""


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """What is measured.

    Parameters
    ----------
    drafter : DFlashDrafter or None
        None where the drafts are the spoilt text.
    block_size : int
        Rows of a block.
    """

    model: WatchedModel
    spec: ModelSpec
    drafter: DFlashDrafter | None
    block_size: int

    def make_drafts(self, temperature: float, spoilt_share: float) -> Callable[[Prompts, int], Drafts]:
        """Return what makes drafts for texts with a seed."""
        drafter, target = self.drafter, self.model.target

        def make(texts: Prompts, seed: int) -> Drafts:
            if drafter is None:
                return SpoiltText(texts, spoilt_share, np.random.default_rng([seed, 2]))
            return DrafterDrafts(drafter, target, SamplingRule(temperature=temperature))

        return make


def open_subject(
    files: ModelFiles,
    *,
    block_size: int | None,
    farthest: int,
    threads: int,
    announce: Callable[[Path, int, bool], None],
    progress: Callable[[], None] | None = None,
) -> Subject:
    """Return a loaded model, its experts packed where they are not yet.

    Experts are computed in the way whose bits do not depend on the number of rows or on timings, so that the same
    files and seed give the same result.

    Raises
    ------
    InputError
        A file is missing, malformed or does not fit the others.
    """
    torch.set_num_threads(threads)
    drafter = load_drafter(files.drafter) if files.drafter is not None else None
    features = () if drafter is None else drafter.config.target_layer_ids
    rows = block_size or (DEFAULT_BLOCK_SIZE if drafter is None else drafter.config.block_size)
    if drafter is not None and rows > drafter.config.block_size:
        raise InputError(
            f"--block-size is {rows} but the drafter drafts at most {drafter.config.block_size} rows; lower it"
        )
    target = load_target(files.target, feature_layers=features)
    store = open_store(files, None, announce, progress)
    expert = CpuExpert(store.description.layout, threads=threads, invariant=True)
    model = WatchedModel(target, store, expert.forward, farthest)
    return Subject(model, load_model(str(files.target)), drafter, rows)


def check_length(files: ModelFiles, num_tokens: int) -> None:
    """Refuse texts that grow longer than the model's positions.

    Raises
    ------
    InputError
        Naming both lengths.
    """
    longest = config_of(files.target).get("max_position_embeddings")
    if isinstance(longest, int) and num_tokens > longest:
        raise InputError(
            f"a text grows to up to {num_tokens} tokens but {files.target} has {longest} positions; give fewer "
            "--prompt-tokens or --rounds, or more --sequences"
        )


def text_tokens(path: Path | None, files: ModelFiles, vocab_size: int) -> tuple[int, ...]:
    """Return the tokens of a text file, by the target's own tokenizer.

    Raises
    ------
    InputError
        There is no text or no tokenizer, or a token is not one of the model's.
    """
    path = path or files.text
    if path is None:
        raise InputError(f"there is no text beside {files.target}; give --text FILE")
    tokens = Codec(files.target).encode(read_text(path, "text"))
    if tokens and max(tokens) >= vocab_size:
        raise InputError(
            f"the tokenizer of {files.target} gives token {max(tokens)} but the model has {vocab_size}; take the "
            "tokenizer that belongs to it"
        )
    return tokens


def split_text(tokens: Sequence[int], count: int, length: int) -> tuple[Prompts, Prompts]:
    """Return `count` calibration texts and as many judged ones, `length` tokens each, none of which overlap.

    The first half of the tokens calibrates; texts begin at even distances.

    Raises
    ------
    InputError
        There are too few tokens.
    """
    half = len(tokens) // 2
    if half < count * length:
        raise InputError(
            f"the text has {len(tokens)} tokens but twice {count} texts of {length} tokens are cut from it without "
            "overlap; give a longer --text, or fewer --sequences, --rounds or --prompt-tokens"
        )
    step = half // count
    starts = [number * step for number in range(count)]
    return tuple(
        [tuple(tokens[first + start : first + start + length]) for start in starts]
        for first in (0, len(tokens) - half)
    )  # type: ignore[return-value]
