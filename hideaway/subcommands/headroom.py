"""What is holding me back? Remove one limit of a scenario at a time, buy memory, add users.

Printed in order of worth: output tokens/s and p99 latencies gained without the link's, the issue thread's, the host's
cost, without contention, with Belady's eviction, with exact routes in every layer, with perfect prediction, with every
draft accepted ("rejected drafts"), with everybody seated ("queueing"); every expert resident is the upper bound.
Then tokens/s per extra GB of device memory given to expert slots, to KV memory or to the drafter, and the largest
number of users (closed loop, no time to think) of whose requests enough meet both service limits.

Intervals are Student's 95 % over paired replications (same seed with and without the limit). They cover the draws of
routing, acceptance, prediction and Poisson arrivals; request lengths are the same in every replication, and errors of
the hardware profile are not in them.

Example:
  hideaway headroom --model gpt-oss-20b --profile rtx-pro-6000 --slot-fraction 0.5 --block-size 8 --concurrency 8
"""

from __future__ import annotations

import argparse

from hideaway.campaigns.headroom import USERS_REPLICATIONS, Headroom, run_headroom
from hideaway.campaigns.users_served import JUDGED_AT_LEAST
from hideaway.console import note, print_json, print_table
from hideaway.options import add_json_option, add_out_option, output_file, refuse_same_file
from hideaway.report.defaults import defaults_in_force
from hideaway.report.headroom_plot import headroom_plot
from hideaway.report.headroom_table import (
    MEMORY_COLUMNS,
    base_sentence,
    gain_table,
    headroom_value,
    memory_rows,
    users_sentence,
    verdict,
)
from hideaway.report.style import picture_kind
from hideaway.scenario_flags import add_scenario_flags, scenario_from_flags
from hideaway.sim.errors import InputError
from hideaway.sim.files import write_json_atomically
from hideaway.sim.inputs.scenario.fields import DEFAULT_CONCURRENCY
from hideaway.sim.inputs.scenario.toml_file import read_scenario_mapping

LEAST_REQUESTS = 20
REQUESTS_PER_USER = 2.5
"""Default number of requests: after the first wave, one and a half waves of admissions to measure."""
MOST_REPLICATIONS = 1000
MOST_USERS = 4096


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `hideaway headroom`."""
    parser.add_argument(
        "--replications", type=int, default=5, metavar="N", help="runs of each variant (default %(default)s)"
    )
    parser.add_argument(
        "--share",
        type=float,
        default=0.99,
        metavar="P",
        help="users are served when this share of requests meets both limits (default %(default)s)",
    )
    parser.add_argument(
        "--most-users",
        type=int,
        default=256,
        metavar="N",
        help="most users that are tried (default %(default)s)",
    )
    parser.add_argument(
        "--requests",
        type=int,
        metavar="N",
        help=f"requests of a run (default {REQUESTS_PER_USER:g} per user, at least {LEAST_REQUESTS})",
    )
    parser.add_argument("--workers", type=int, metavar="N", help="processes (default: one a core)")
    parser.add_argument(
        "--plot", type=output_file, metavar="FILE", help="draw the gains to this .png or .svg file"
    )
    add_scenario_flags(parser, without=("requests",))
    add_json_option(parser)
    add_out_option(parser, "write the whole answer to this JSON file")


def run(arguments: argparse.Namespace) -> int:
    """Run `hideaway headroom`."""
    _check(arguments)
    _choose_requests(arguments)
    headroom = run_headroom(
        scenario_from_flags(arguments),
        replications=arguments.replications,
        share=arguments.share,
        most_users=arguments.most_users,
        workers=arguments.workers,
    )
    settings = _settings(headroom)
    value = headroom_value(headroom, settings)
    if arguments.out:
        write_json_atomically(arguments.out, {"format": "hideaway-headroom", "version": 1, **value})
    if arguments.plot:
        headroom_plot(headroom, arguments.plot)
    if arguments.json:
        print_json(value)
    else:
        _print(headroom, settings)
    for name in filter(None, (arguments.out, arguments.plot)):
        note(f"wrote {name}")
    return 0


def _check(arguments: argparse.Namespace) -> None:
    if not 2 <= arguments.replications <= MOST_REPLICATIONS:
        raise InputError(
            f"--replications is {arguments.replications}; an interval needs 2 to {MOST_REPLICATIONS} of them"
        )
    if not 0.0 < arguments.share <= 1.0:
        raise InputError(f"--share is {arguments.share}; give a share of requests above 0 and at most 1")
    if not 1 <= arguments.most_users <= MOST_USERS:
        raise InputError(f"--most-users is {arguments.most_users}; give 1 to {MOST_USERS}")
    if arguments.workers is not None and arguments.workers < 1:
        raise InputError(f"--workers is {arguments.workers}; give at least 1")
    if arguments.plot:
        picture_kind(arguments.plot)
    refuse_same_file(arguments, "out", "plot")


def _choose_requests(arguments: argparse.Namespace) -> None:
    """Give `requests` this command's default unless a flag or the scenario file names it. Changes `arguments`."""
    named = read_scenario_mapping(arguments.scenario) if arguments.scenario else {}
    if arguments.requests is None and "requests" not in named:
        users = arguments.concurrency or named.get("concurrency") or DEFAULT_CONCURRENCY
        arguments.requests = max(LEAST_REQUESTS, round(REQUESTS_PER_USER * min(users, MOST_USERS)))


def _settings(headroom: Headroom) -> dict[str, object]:
    setup = headroom.setup
    settings = defaults_in_force(setup.scenario, setup.inputs, setup.memory)
    settings["replications"] = len(headroom.seeds)
    settings["seeds"] = f"{headroom.seeds[0]} to {headroom.seeds[-1]}"
    settings["share"] = headroom.share
    settings["most_users"] = headroom.users.cap
    settings["users_judged_by"] = (
        f"{USERS_REPLICATIONS} replications of {JUDGED_AT_LEAST} requests or one a user, after two waves of users "
        "and before the last"
    )
    return settings


def _print(headroom: Headroom, settings: dict[str, object]) -> None:
    print_table(("setting", "value"), list(settings.items()), title="in force")
    print(base_sentence(headroom.base))
    print()
    order = "tokens/s gained" if headroom.closed else "time per output token saved"
    columns, rows = gain_table(headroom)
    print_table(
        columns, rows, title=f"one limit removed at a time, in order of {order}; mean [95 % interval]"
    )
    print(verdict(headroom))
    print()
    print_table(MEMORY_COLUMNS, memory_rows(headroom), title="worth of extra device memory")
    print(users_sentence(headroom))
    for warning in headroom.warnings:
        note(f"note: {warning}")
