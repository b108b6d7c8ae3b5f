"""Simulate one scenario and print its metrics.

Example:
  hideaway simulate --model gpt-oss-20b --profile rtx-pro-6000 --slot-fraction 0.5 --block-size 8 --concurrency 4
"""

from __future__ import annotations

import argparse

from hideaway.console import note, print_json, print_table
from hideaway.options import add_json_option, add_out_option, output_file, refuse_same_file
from hideaway.report.defaults import defaults_in_force, settings_rows
from hideaway.report.metric_units import metric_rows
from hideaway.report.perfetto import write_perfetto
from hideaway.scenario_flags import add_scenario_flags, scenario_from_flags
from hideaway.sim.event_log import EventLog
from hideaway.sim.files import write_json_atomically
from hideaway.sim.timeline import Timeline
from hideaway.sim.world.simulate import Run, simulate


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `hideaway simulate`."""
    add_scenario_flags(parser)
    add_json_option(parser)
    add_out_option(parser, "write the scenario and its metrics to this JSON file")
    for flag, text in (
        ("--timeline", "write every piece of work as JSON lines"),
        ("--perfetto", "write a trace that ui.perfetto.dev opens"),
        ("--event-log", "write every event and the commands that answered it, as JSON lines for replay"),
    ):
        parser.add_argument(flag, type=output_file, metavar="FILE", help=text)


def run(arguments: argparse.Namespace) -> int:
    """Run `hideaway simulate`."""
    refuse_same_file(arguments, "out", "timeline", "perfetto", "event_log")
    scenario = scenario_from_flags(arguments)
    timeline = Timeline() if arguments.timeline or arguments.perfetto else None
    log = EventLog() if arguments.event_log else None
    finished = simulate(scenario, timeline=timeline, log=log)
    defaults = defaults_in_force(finished.scenario, finished.inputs, finished.memory)
    result = {"scenario": defaults, "metrics": finished.metrics, "warnings": list(finished.warnings)}
    if timeline is not None:
        timeline.header.update(scenario=defaults, seed=scenario.seed)
        _write_timeline(arguments, timeline)
    if log is not None:
        log.header.update(scenario=defaults, seed=scenario.seed)
        log.write_jsonl(arguments.event_log)
        note(f"event log: {arguments.event_log}")
    if arguments.out:
        write_json_atomically(arguments.out, {"format": "hideaway-run", "version": 1, **result})
    if arguments.json:
        print_json(result)
    else:
        _print(finished, defaults)
    return 0


def _write_timeline(arguments: argparse.Namespace, timeline: Timeline) -> None:
    if arguments.timeline:
        timeline.write_jsonl(arguments.timeline)
        note(f"timeline: {arguments.timeline}")
    if arguments.perfetto:
        write_perfetto(timeline, arguments.perfetto)
        note(f"trace for ui.perfetto.dev: {arguments.perfetto}")


def _print(finished: Run, defaults: dict[str, object]) -> None:
    print_table(("setting", "value"), settings_rows(defaults), title="in force")
    print_table(("metric", "value", "unit"), metric_rows(finished.metrics), title="metrics")
    for warning in finished.warnings:
        note(f"note: {warning}")
