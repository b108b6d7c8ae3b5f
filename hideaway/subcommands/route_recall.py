"""Can experts be guessed ahead? Recall and precision of every predictor on a real model, and what guesses cost.

Plays rounds of speculative decoding (a drafter's blocks, or the text with spoilt tokens where there is no drafter) with
the model's own routers, and compares what each row truly chose with what every predictor would have said: the stale
gate and co-occurrence some layers ahead; embeddings, the drafter's features, the previous token and others before
verify. Also: coverage, bytes wasted for each rejected row, how much of it comes in time over a link, and how rejected
rows are routed against what truly comes. Maps and counts are fitted on the first half of the text, figures are of the
second; intervals are 95 %, by bootstrap over texts.

Example:
  hideaway route-recall --model tiny --rounds 480 --plot recall.svg --preset tiny-stale-gate.json
"""

from __future__ import annotations

import argparse
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hideaway.console import note, print_json, print_table, progress
from hideaway.hw.engine.torch_ready import make_torch_ready
from hideaway.report.route_recall_plot import route_recall_plot
from hideaway.report.route_recall_table import (
    MOST_LAYERS_SHOWN,
    REPLAY_COLUMNS,
    SCORE_COLUMNS,
    by_layer_columns,
    by_layer_rows,
    by_row_columns,
    by_row_rows,
    findings,
    rejected_columns,
    rejected_rows,
    replay_rows,
    score_rows,
    waste_columns,
    waste_rows,
)
from hideaway.sim.costs import CostModel
from hideaway.sim.errors import InputError
from hideaway.sim.files import write_json_atomically
from hideaway.sim.inputs.predictor_file import write_predictor
from hideaway.sim.inputs.profiles import load_profile
from hideaway.sim.units import GB
from hideaway.subcommands.route_recall_flags import add_flags, check_flags
from hideaway.version import __version__

if TYPE_CHECKING:
    from hideaway.hw.engine.open_model import ModelFiles
    from hideaway.hw.route_recall.measure import RouteRecall
    from hideaway.hw.route_recall.open_subject import Subject
    from hideaway.hw.route_recall.replay import ReplayCosts


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `hideaway route-recall`."""
    add_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run `hideaway route-recall`."""
    check_flags(arguments)
    make_torch_ready()
    found, settings = _measure(arguments)
    value = {"settings": settings, "findings": findings(found), **asdict(found)}
    if arguments.preset:
        from hideaway.hw.route_recall.preset import predictor_of

        predictor = predictor_of(found, arguments.preset_predictor, _subject_text(settings))
        write_predictor(arguments.preset, predictor)
    if arguments.out:
        write_json_atomically(arguments.out, {"format": "hideaway-route-recall", "version": 1, **value})
    if arguments.plot:
        route_recall_plot(found, arguments.plot, title=_subject_text(settings))
    if arguments.json:
        print_json(value)
    else:
        _print(found, settings)
    for name in filter(None, (arguments.out, arguments.preset, arguments.plot)):
        note(f"wrote {name}")
    return 0


def _measure(arguments: argparse.Namespace) -> tuple[RouteRecall, dict[str, object]]:
    """Return what was found, and every setting in force."""
    import numpy as np

    from hideaway.hw.route_recall.measure import PlayOptions, judge, mean_union, play_both
    from hideaway.hw.route_recall.open_subject import check_length, split_text, text_tokens

    files = _files(arguments)
    profile = load_profile(arguments.profile)
    subject = _open(arguments, files)
    text = Path(arguments.text) if arguments.text is not None else files.text
    tokens = text_tokens(text, files, subject.model.target.vocab_size)
    rounds_each = -(-arguments.rounds // arguments.sequences)
    grown = arguments.prompt_tokens + (rounds_each + 1) * subject.block_size
    check_length(files, grown)
    length = grown if subject.drafter is None else arguments.prompt_tokens
    calibration, judged = split_text(tokens, arguments.sequences, length)
    options = PlayOptions(
        prompt_tokens=arguments.prompt_tokens,
        rounds_each=rounds_each,
        block_size=subject.block_size,
        seed=arguments.seed,
    )
    make_drafts = subject.make_drafts(arguments.temperature, arguments.spoilt_share)
    with progress(2 * arguments.sequences * rounds_each, "playing rounds") as step:
        calibrated, played = play_both(subject.model, make_drafts, calibration, judged, options, step)
    costs = _costs(arguments, subject, CostModel(subject.spec, profile), mean_union(played))
    rng = np.random.default_rng([arguments.seed, 1])
    with progress(len(played.rounds), "judging guesses") as step:
        found = judge(calibrated, played, costs, subject.spec.expert_bytes, rng, step)
    return found, _settings(arguments, files, subject, profile.name, costs, found) | {
        "text": str(text),
        "text_tokens": len(tokens),
    }


def _files(arguments: argparse.Namespace) -> ModelFiles:
    from hideaway.hw.engine.open_model import find_model

    files = find_model(arguments.model, arguments.drafter)
    if arguments.drafts == "replay":
        files = replace(files, drafter=None)
    elif arguments.drafts == "drafter" and files.drafter is None:
        raise InputError(f"there is no drafter beside {files.target}; give --drafter DIR or --drafts replay")
    if files.drafter is None and arguments.temperature != 0:
        raise InputError(
            "--temperature was given but there is no drafter, and a replayed text draws nothing; leave it out"
        )
    return files


def _open(arguments: argparse.Namespace, files: ModelFiles) -> Subject:
    from hideaway.hw.route_recall.open_subject import open_subject

    def announce(path: Path, num_bytes: int, there: bool) -> None:
        note(f"{'reusing' if there else 'packing'} {num_bytes / GB:.3f} GB of experts in {path}")

    note(f"loading {files.target}")
    return open_subject(
        files,
        block_size=arguments.block_size,
        farthest=arguments.distances,
        threads=arguments.threads or len(os.sched_getaffinity(0)),
        announce=announce,
    )


def _costs(arguments: argparse.Namespace, subject: Subject, costs: CostModel, experts: float) -> ReplayCosts:
    """Return the costs of the flags, or the profile's; `--layer-seconds` is divided as the profile divides a layer."""
    from hideaway.hw.route_recall.replay import ReplayCosts

    spec, rows = subject.spec, subject.block_size
    dense = costs.dense_seconds(rows) + costs.router_seconds(rows)
    grouped = costs.experts_seconds(round(experts), rows * spec.top_k)
    scale = 1.0 if arguments.layer_seconds is None else arguments.layer_seconds / (dense + grouped)
    return ReplayCosts(
        slots=arguments.slots or max(1, spec.num_experts // 2),
        expert_seconds=arguments.expert_seconds or costs.transfer_seconds(spec.expert_bytes),
        dense_seconds=dense * scale,
        experts_seconds=grouped * scale,
    )


def _settings(
    arguments: argparse.Namespace,
    files: ModelFiles,
    subject: Subject,
    profile: str,
    costs: ReplayCosts,
    found: RouteRecall,
) -> dict[str, object]:
    return {
        "hideaway": __version__,
        "target": str(files.target),
        "drafter": None if files.drafter is None else str(files.drafter),
        "drafts": "replay" if subject.drafter is None else "drafter",
        "spoilt_share": arguments.spoilt_share if subject.drafter is None else None,
        "rounds": found.rounds,
        "calibration_rounds": found.calibration_rounds,
        "sequences": arguments.sequences,
        "prompt_tokens": arguments.prompt_tokens,
        "block_size": subject.block_size,
        "temperature": arguments.temperature,
        "distances": subject.model.farthest,
        "profile": profile,
        **asdict(costs),
        "preset_predictor": arguments.preset_predictor,
        "seed": arguments.seed,
    }


def _subject_text(settings: dict[str, object]) -> str:
    drafts = settings["drafter"] or f"the text with {settings['spoilt_share']} of its tokens spoilt"
    return (
        f"{settings['target']}, drafts of {drafts}, blocks of {settings['block_size']}, temperature "
        f"{settings['temperature']}, text {settings['text']}, seed {settings['seed']}"
    )


def _print(found: RouteRecall, settings: dict[str, object]) -> None:
    shown = [(name, "-" if value is None else value) for name, value in settings.items()]
    print_table(("setting", "value"), shown, title="in force")
    print_table(SCORE_COLUMNS, score_rows(found), title="recall and precision, [95 % interval]")
    print_table(
        [str(name) for name in by_row_columns(found)], by_row_rows(found), title="recall by row of the block"
    )
    if found.num_layers <= MOST_LAYERS_SHOWN:
        print_table(
            [str(name) for name in by_layer_columns(found)], by_layer_rows(found), title="recall by layer"
        )
    print_table(
        [str(name) for name in waste_columns(found)],
        waste_rows(found),
        title="coverage and waste (KiB); of row j (rejections): moved for it alone, given that it was rejected",
    )
    print_table(REPLAY_COLUMNS, replay_rows(found), title="replayed over slots and a link")
    print_table(
        [str(name) for name in rejected_columns(found)],
        rejected_rows(found),
        title=f"rejected rows of {found.rejected.rounds} rounds: share of the true rows' experts, by place",
    )
    for sentence in findings(found):
        print(sentence)
