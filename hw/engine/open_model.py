"""From a folder or the name of a shipped pair to a `ModelSetup`, with its prompts and the store of its experts."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hideaway.hw.acceptance.sampling import SamplingRule
from hideaway.hw.draft.checkpoint import load_drafter
from hideaway.hw.draft.drafter import DFlashDrafter
from hideaway.hw.engine.run_model import ModelSetup, dflash_maker
from hideaway.hw.engine.store_cache import cached_store, checkpoint_store_path
from hideaway.hw.engine.truncation import truncate
from hideaway.hw.pairs import DRAFTER, PAIR_NAMES, TARGET, pair_folder
from hideaway.hw.store.hf_experts import CheckpointExperts
from hideaway.hw.store.reader import ExpertStore
from hideaway.hw.target.load import config_of, load_target
from hideaway.hw.target.prompts import (
    DEFAULT_INPUT_TOKENS,
    DEFAULT_OUTPUT_TOKENS,
    HELD_OUT_NAME,
    Codec,
    Prompt,
    cut,
    read_prompts,
    text_prompts,
)
from hideaway.sim.errors import InputError
from hideaway.sim.files import read_text
from hideaway.sim.inputs.arrivals import RequestSpec
from hideaway.sim.inputs.scenario.baselines import BASELINES
from hideaway.sim.inputs.scenario.fields import Scenario


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """Where a model is.

    Parameters
    ----------
    drafter : path or None
        None where none was named and none lies beside the target.
    text : path or None
        Text to prompt with where no prompts are given.
    """

    target: Path
    drafter: Path | None
    text: Path | None


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What a run of a model needs besides its scenario.

    Parameters
    ----------
    prompts : str or None
        A prompts file; the pair's held-out text by default.
    own_lengths : bool
        Prompts have their own lengths, and 128 tokens are wanted after each that does not say; otherwise lengths are
        those of the scenario's trace, and prompts are cut or repeated to them.
    """

    prompts: str | None = None
    own_lengths: bool = True
    temperature: float = 0.0
    predictor: str = "stale-gate"
    device: str = "cpu"


def find_model(name: str, drafter: str | None = None) -> ModelFiles:
    """Return the files of a shipped pair (by name), a pair's folder, or a checkpoint's folder.

    Raises
    ------
    InputError
        There is nothing of that name.
    """
    folder = pair_folder(name) if name in PAIR_NAMES and not os.path.isdir(name) else Path(name)
    if not folder.is_dir():
        raise InputError(
            f"model {name!r} is neither a folder nor a shipped pair ({', '.join(PAIR_NAMES)}); give the folder of a "
            "Hugging Face checkpoint"
        )
    is_pair = (folder / TARGET).is_dir()
    target = folder / TARGET if is_pair else folder
    beside = folder / DRAFTER if is_pair and (folder / DRAFTER).is_dir() else None
    text = folder / HELD_OUT_NAME
    return ModelFiles(target, beside if drafter is None else Path(drafter), text if text.is_file() else None)


def open_model(files: ModelFiles, scenario: Scenario, options: RunOptions) -> tuple[ModelSetup, Codec]:
    """Return a loaded model under a scenario, and its tokenizer.

    Raises
    ------
    InputError
        A file is missing, malformed or does not fit the others.
    """
    codec = Codec(files.target)
    speculative = BASELINES[scenario.baseline].speculative
    loaded = load_drafter(files.drafter, device=options.device) if speculative and files.drafter else None
    features = () if loaded is None else loaded.config.target_layer_ids
    target = load_target(files.target, feature_layers=features, device=options.device)
    if loaded is not None:
        scenario = replace(scenario, drafter_parameters=float(_count_parameters(loaded)))
    truncated = truncate(replace(scenario, model=str(files.target)), None)
    prompts = _prompts(files, options, codec, scenario.requests, target.vocab_size)
    specs, token_ids = _requests(truncated.inputs.requests, prompts, options)
    truncated = replace(truncated, inputs=replace(truncated.inputs, requests=specs))
    maker = None if loaded is None else dflash_maker(loaded, target, scenario.block_size)
    longest = config_of(files.target).get("max_position_embeddings")
    setup = ModelSetup(
        truncated,
        target,
        token_ids,
        maker,
        SamplingRule(temperature=options.temperature),
        options.predictor,
        longest if isinstance(longest, int) else None,
    )
    return setup, codec


def open_store(
    files: ModelFiles,
    expert_format: str | None,
    announce: Callable[[Path, int, bool], None],
    progress: Callable[[], None] | None = None,
) -> ExpertStore:
    """Return the packed experts of a checkpoint, from the cache or packed into it.

    Parameters
    ----------
    announce : callable
        Told the place, the bytes and whether it is there already, before anything is packed.
    """
    source = CheckpointExperts(files.target, expert_format=expert_format)
    path = checkpoint_store_path(files.target, source)
    announce(path, source.description.total_bytes, path.exists())
    return cached_store(source, progress, path)


def _count_parameters(drafter: DFlashDrafter) -> int:
    return sum(parameter.numel() for parameter in drafter.parameters())


def _prompts(
    files: ModelFiles, options: RunOptions, codec: Codec, count: int, vocab_size: int
) -> tuple[Prompt, ...]:
    if options.prompts is not None:
        return read_prompts(options.prompts, codec, vocab_size)
    if files.text is None:
        raise InputError(
            f"there is no text to prompt {files.target} with; give --prompts FILE of JSON lines with text or token_ids"
        )
    whole = text_prompts(read_text(files.text, "held-out text"), count, codec)
    if not options.own_lengths:
        return whole
    return tuple(Prompt(cut(prompt, DEFAULT_INPUT_TOKENS)) for prompt in whole)


def _requests(
    traced: Sequence[RequestSpec], prompts: Sequence[Prompt], options: RunOptions
) -> tuple[tuple[RequestSpec, ...], tuple[tuple[int, ...], ...]]:
    """Return what the requests ask for and their prompts; request r has the r-th prompt, in a circle."""
    specs, token_ids = [], []
    for number, spec in enumerate(traced):
        prompt = prompts[number % len(prompts)]
        if options.own_lengths:
            outputs = prompt.output_tokens or DEFAULT_OUTPUT_TOKENS
            spec = RequestSpec(spec.arrival_seconds, len(prompt.token_ids), outputs)
        specs.append(spec)
        token_ids.append(cut(prompt, spec.input_tokens))
    return tuple(specs), tuple(token_ids)
