"""Run one scenario for real: FP4 experts of a model's shape, really moved, really computed, under the same scheduler.

Weights are random; routing and acceptance are replayed as `hideaway simulate` replays them. --layers N keeps the first
N layers in full size and scales what a forward does once (head, drafter) by kept layers / all layers. Experts are made
once and kept in a cache folder (~2 GB for the example); --store takes packed ones. --device disk reads them from disk
into slots past the page cache, paced-memory emulates a link of --link-rate, cuda copies from pinned host memory.

Example:
  hideaway run --shape Qwen3-30B-A3B --layers 6 --device disk --slot-fraction 0.5 --concurrency 1 --requests 8
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hideaway.console import note, print_json, print_table, progress
from hideaway.hw.devices.choose import DEVICE_KINDS
from hideaway.hw.engine.torch_ready import make_torch_ready
from hideaway.options import add_json_option, add_out_option, output_file, refuse_same_file
from hideaway.report.defaults import defaults_in_force, settings_rows
from hideaway.report.metric_units import metric_rows
from hideaway.report.perfetto import write_perfetto
from hideaway.scenario_flags import add_scenario_flags, scenario_from_flags
from hideaway.sim.event_log import EventLog
from hideaway.sim.files import write_json_atomically
from hideaway.sim.number_checks import finite_number, whole_number
from hideaway.sim.timeline import Timeline
from hideaway.sim.units import GB

if TYPE_CHECKING:
    from hideaway.hw.engine.run import RealRun
    from hideaway.hw.engine.truncation import Truncated
    from hideaway.hw.store.reader import ExpertStore

_SIMULATED_ONLY = ("model", "pageable", "page_cache_bytes", "launch")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `hideaway run`."""
    group = parser.add_argument_group("real run")
    group.add_argument(
        "--shape", metavar="NAME", help="model whose shape is run: name, config.json or its folder"
    )
    group.add_argument(
        "--layers", type=int, metavar="N", help="keep the first N layers with experts (default all)"
    )
    group.add_argument(
        "--device", choices=DEVICE_KINDS, default="disk", help="where experts come from (default disk)"
    )
    group.add_argument(
        "--store", metavar="DIR", help="experts packed by `hideaway pack` instead of the cache's"
    )
    group.add_argument(
        "--link-rate",
        type=float,
        metavar="BYTES_PER_SECOND",
        help="paced-memory: set rate (default the profile's)",
    )
    group.add_argument(
        "--link-latency",
        type=float,
        metavar="SECONDS",
        help="paced-memory: set latency (default the profile's)",
    )
    group.add_argument("--threads", type=int, metavar="N", help="threads that compute (default all cores)")
    group.add_argument(
        "--verify-transfers",
        action="store_true",
        help="check the checksum of every expert moved (takes compute)",
    )
    add_scenario_flags(parser, without=_SIMULATED_ONLY)
    add_json_option(parser)
    add_out_option(parser, "write the scenario, its metrics and the environment to this JSON file")
    for flag, text in (
        ("--timeline", "write every piece of work as JSON lines"),
        ("--perfetto", "write a trace that ui.perfetto.dev opens"),
        ("--event-log", "write every event and the commands that answered it, as JSON lines for replay"),
    ):
        parser.add_argument(flag, type=output_file, metavar="FILE", help=text)


def run(arguments: argparse.Namespace) -> int:
    """Run `hideaway run`."""
    refuse_same_file(arguments, "out", "timeline", "perfetto", "event_log")
    truncated, options = _inputs(arguments)
    store = _store(arguments, truncated)
    timeline = Timeline() if arguments.timeline or arguments.perfetto else None
    log = EventLog() if arguments.event_log else None
    from hideaway.hw.engine.run import run_real

    with progress(truncated.scenario.requests, "requests") as step:
        finished = run_real(truncated, store, options, timeline=timeline, log=log, on_progress=_steps(step))
    settings = _settings(finished, store)
    result = {
        "scenario": settings,
        "metrics": finished.metrics,
        "warnings": list(finished.warnings),
        "environment": finished.environment,
        "failures": list(finished.failures),
    }
    facts: dict[str, Any] = {"scenario": settings, "seed": truncated.scenario.seed}
    facts["environment"] = finished.environment
    if timeline is not None:
        timeline.header.update(facts)
        _write_timeline(arguments, timeline)
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
    return 0


def _inputs(arguments: argparse.Namespace) -> tuple[Truncated, Any]:
    """Return the cut scenario and the device's options; refuses what cannot run before anything large is made."""
    make_torch_ready()
    from hideaway.hw.engine.open_device import DeviceOptions
    from hideaway.hw.engine.run import check_runnable
    from hideaway.hw.engine.truncation import truncate

    if arguments.link_rate is not None:
        finite_number("link_rate", arguments.link_rate, above_minimum=True)
    if arguments.link_latency is not None:
        finite_number("link_latency", arguments.link_latency)
    cores = len(os.sched_getaffinity(0))
    threads = whole_number("threads", arguments.threads or cores, minimum=1, maximum=1024)
    options = DeviceOptions(
        arguments.device, threads, arguments.link_rate, arguments.link_latency, arguments.verify_transfers
    )
    arguments.model = arguments.shape
    truncated = truncate(scenario_from_flags(arguments), arguments.layers)
    check_runnable(truncated)
    return truncated, options


def _store(arguments: argparse.Namespace, truncated: Truncated) -> ExpertStore:
    from hideaway.hw.engine.store_cache import cached_store, store_path, synthetic_source
    from hideaway.hw.store.reader import ExpertStore

    if arguments.store is not None:
        return ExpertStore(arguments.store)
    scenario = truncated.scenario
    source = synthetic_source(scenario.model, arguments.layers, scenario.expert_format)
    description, path = source.description, store_path(source)
    verb = "reusing" if path.exists() else "making"
    note(f"{verb} {description.total_bytes / GB:.2f} GB of random experts in {path}")
    with progress(description.num_layers * description.num_experts, "making experts") as step:
        return cached_store(source, step)


def _steps(step: Callable[[], None]) -> Callable[[int], None]:
    def advance(ended: int) -> None:
        for _ in range(ended):
            step()

    return advance


def _settings(finished: RealRun, store: ExpertStore) -> dict[str, object]:
    truncated = finished.truncated
    settings = defaults_in_force(truncated.scenario, truncated.inputs, finished.memory)
    for name in _SIMULATED_ONLY:
        if name != "model":
            del settings[name]
    settings["layers"] = truncated.inputs.model.num_layers
    settings["share_of_layers"] = round(truncated.share, 6)
    settings["scaled_by_share_of_layers"] = "drafter, head and embedding"
    settings["store"] = str(store.path)
    return settings


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
