"""Run one scenario for real: FP4 experts, really moved and computed, under the same scheduler as the simulator's.

--model DIR runs a checkpoint: its own tokens, routing and acceptance, with a DFlash drafter (--model tiny is a trained
pair that comes with the program). --check-lossless compares it with plain decode, token for token.

--shape NAME runs a model's shape without a checkpoint: weights are random, routing and acceptance are replayed as
`hideaway simulate` replays them. --layers N keeps the first N layers in full size and scales what a forward does once
(head, drafter) by kept layers / all layers. Experts are made once and kept in a cache folder (~2 GB for the example).

--store takes experts packed by `hideaway pack`. --device disk reads them from disk into slots past the page cache,
paced-memory emulates a link of --link-rate, cuda copies from pinned host memory.

Example:
  hideaway run --shape Qwen3-30B-A3B --layers 6 --device disk --slot-fraction 0.5 --concurrency 1 --requests 8
  hideaway run --model tiny --baseline OURS --check-lossless --json
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hideaway.console import note, print_json, print_table, progress
from hideaway.options import add_json_option, add_out_option, output_file, refuse_same_file
from hideaway.real_flags import (
    SIMULATED_ONLY,
    add_real_flags,
    cut_facts,
    device_options,
    open_store,
    without_simulated_only,
)
from hideaway.report.defaults import defaults_in_force, settings_rows
from hideaway.report.metric_units import metric_rows
from hideaway.report.perfetto import write_perfetto
from hideaway.scenario_flags import add_scenario_flags, scenario_from_flags
from hideaway.sim.event_log import EventLog
from hideaway.sim.files import write_json_atomically
from hideaway.sim.timeline import Timeline
from hideaway.subcommands.run_model import (
    REPLAYED_ONLY,
    ModelCommand,
    add_model_flags,
    refuse_without_model,
)

if TYPE_CHECKING:
    from hideaway.hw.engine.lossless import Lossless
    from hideaway.hw.engine.open_device import DeviceOptions
    from hideaway.hw.engine.run import Observers, RealRun
    from hideaway.hw.engine.truncation import Truncated
    from hideaway.hw.store.reader import ExpertStore


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `hideaway run`."""
    add_real_flags(parser)
    add_model_flags(parser)
    add_scenario_flags(parser, without=SIMULATED_ONLY)
    add_json_option(parser)
    add_out_option(parser, "write scenario, metrics, environment and a model's texts to this JSON file")
    for flag, text in (
        ("--timeline", "write every piece of work as JSON lines"),
        ("--perfetto", "write a trace that ui.perfetto.dev opens"),
        ("--event-log", "write every event and the commands that answered it, as JSON lines for replay"),
    ):
        parser.add_argument(flag, type=output_file, metavar="FILE", help=text)


def run(arguments: argparse.Namespace) -> int:
    """Run `hideaway run`."""
    refuse_same_file(arguments, "out", "timeline", "perfetto", "event_log")
    options = device_options(arguments, verify_transfers=arguments.verify_transfers)
    timeline = Timeline() if arguments.timeline or arguments.perfetto else None
    log = EventLog() if arguments.event_log else None
    if arguments.model is not None:
        return _run_model(arguments, options, timeline, log)
    refuse_without_model(arguments)
    truncated = _truncated(arguments)
    store = open_store(arguments, truncated.scenario)
    from hideaway.hw.engine.run import run_real

    with progress(truncated.scenario.requests, "requests") as step:
        finished = run_real(truncated, store, options, timeline=timeline, log=log, on_progress=_steps(step))
    settings = _settings(finished, store)
    settings |= cut_facts(truncated)
    _report(arguments, finished, settings, log, {})
    return 0


def _run_model(
    arguments: argparse.Namespace, options: DeviceOptions, timeline: Timeline | None, log: EventLog | None
) -> int:
    """Run a real model; return 1 if it was checked and lost something."""
    from hideaway.hw.engine.run import Observers

    command = ModelCommand(arguments, options)

    def observers(step: Callable[[], None]) -> Observers:
        return Observers(on_progress=_steps(step))

    with progress(len(command.setup.prompts), "requests") as step:
        run = command.run(Observers(timeline, log, _steps(step)))
    verdict: Lossless | None = command.check(run, observers) if arguments.check_lossless else None
    settings = _settings(run.real, command.store)
    for name in (
        *REPLAYED_ONLY,
        "acceptance_origin",
        "predictor_origin",
        "trace" if command.own_lengths else "",
    ):
        settings.pop(name, None)
    if run.real.truncated.scenario.eviction != "static":  # only a static hot set looks into a trace
        del settings["routing"], settings["routing_origin"]
    settings |= command.settings()
    command.record(run)
    found: dict[str, Any] = {"outputs": command.outputs(run)}
    if verdict is not None:
        found["lossless"] = verdict.as_dict()
    _report(arguments, run.real, settings, log, found)
    if verdict is not None and not arguments.json:
        _print_verdict(verdict)
    return 0 if verdict is None or verdict.passed else 1


def _report(
    arguments: argparse.Namespace,
    finished: RealRun,
    settings: dict[str, object],
    log: EventLog | None,
    found: dict[str, Any],
) -> None:
    """Write and print what a run led to; the outputs of a model go into the file, and into what --json prints."""
    result = {
        "scenario": settings,
        "metrics": finished.metrics,
        "warnings": list(finished.warnings),
        "environment": finished.environment,
        "failures": list(finished.failures),
        **found,
    }
    facts: dict[str, Any] = {"scenario": settings, "seed": finished.truncated.scenario.seed}
    facts["environment"] = finished.environment
    if finished.timeline is not None:
        finished.timeline.header.update(facts)
        _write_timeline(arguments, finished.timeline)
    if log is not None:
        log.header.update(facts)
        log.write_jsonl(arguments.event_log)
        note(f"event log: {arguments.event_log}")
    if arguments.out:
        write_json_atomically(arguments.out, {"format": "hideaway-run", "version": 1, **result})
    if arguments.json:
        print_json(result)
    else:
        _print(finished, settings)


def _truncated(arguments: argparse.Namespace) -> Truncated:
    """Return the cut scenario; refuses what cannot run before anything large is made."""
    from hideaway.hw.engine.run import check_runnable
    from hideaway.hw.engine.truncation import truncate

    arguments.model = arguments.shape
    truncated = truncate(scenario_from_flags(arguments), arguments.layers)
    check_runnable(truncated)
    return truncated


def _steps(step: Callable[[], None]) -> Callable[[int], None]:
    def advance(ended: int) -> None:
        for _ in range(ended):
            step()

    return advance


def _settings(finished: RealRun, store: ExpertStore) -> dict[str, object]:
    truncated = finished.truncated
    settings = defaults_in_force(truncated.scenario, truncated.inputs, finished.memory)
    without_simulated_only(settings)
    settings["layers"] = truncated.inputs.model.num_layers
    settings["store"] = str(store.path)
    return settings


def _print_verdict(verdict: Lossless) -> None:
    first = verdict.first_difference
    place = "" if first is None else f"; request {first.seq_id} differs at its token {first.index}"
    words = "equal to plain decode" if verdict.equal else f"NOT equal to plain decode{place}"
    note(f"lossless: {verdict.tokens} tokens {words}")
    note(f"as it ran: {verdict.fast.describe()}; rounding moves a gap by up to {verdict.gap_error:.3g}")


def _flat(facts: dict[str, object]) -> dict[str, object]:
    """Return facts of facts under dotted names."""
    flat: dict[str, object] = {}
    for name, value in facts.items():
        if isinstance(value, dict):
            flat |= {f"{name}.{inner}": fact for inner, fact in value.items()}
        else:
            flat[name] = value
    return flat


def _write_timeline(arguments: argparse.Namespace, timeline: Timeline) -> None:
    if arguments.timeline:
        timeline.write_jsonl(arguments.timeline)
        note(f"timeline: {arguments.timeline}")
    if arguments.perfetto:
        write_perfetto(timeline, arguments.perfetto)
        note(f"trace for ui.perfetto.dev: {arguments.perfetto}")


def _print(finished: RealRun, settings: dict[str, object]) -> None:
    print_table(("setting", "value"), settings_rows(settings), title="in force")
    print_table(("fact", "value"), settings_rows(_flat(finished.environment)), title="environment")
    print_table(("metric", "value", "unit"), metric_rows(finished.metrics), title="metrics (measured)")
    for warning in finished.warnings:
        note(f"note: {warning}")
