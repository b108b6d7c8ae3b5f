"""Do expert transfers hide behind draft, router and verify; what is hiding worth.

Evaluates (1-r)·s·M/BW <= t_draft + t_router + overlap and the forms that know more: real transfers with
their full costs, arrivals one by one while verify computes, depth 1 without prediction, and how likely.
Beside every verdict stand seconds per committed token and the acceptance length that breaks even with B0.

Terms are given one by one, or follow from a model on a card, or are those of a published case.

example, a model on a card (see also --plot FILE.png):
  hideaway hide --model gpt-oss-20b --profile rtx-pro-6000 --routing replay:gpt-oss-20b --block-size 8

example, the terms themselves:
  hideaway hide --resident-fraction 0.5 --saturation 1 --total-expert-bytes 14e9 --draft-seconds 0.06
    --router-seconds 0.02 --overlap-seconds 0.03 --measured-h2d-bytes-per-second 50e9

example, a published case:
  hideaway hide --published bm4
"""

from __future__ import annotations

import argparse
from typing import Any

from hideaway.console import note, print_json
from hideaway.options import (
    add_json_option,
    add_out_option,
    add_seed_option,
    output_file,
    refuse_same_file,
)
from hideaway.report.hide_plots import hide_plot, published_plot
from hideaway.report.hide_tables import print_hide_answer
from hideaway.report.style import picture_kind
from hideaway.sim.errors import InputError
from hideaway.sim.files import write_json_atomically
from hideaway.sim.hide import load_published_case, published_case_names, read_published_case
from hideaway.sim.number_checks import whole_number
from hideaway.subcommands.hide_flags import (
    ALL_TERM_FLAGS,
    DEFAULT_ACCEPTANCE,
    SCENARIO_FLAGS,
    SHAPE_FLAGS,
    add_scenario_flags,
    add_term_flags,
    apply_scenario_file,
    check_given,
    given,
)
from hideaway.subcommands.hide_published import print_published_answer, published_answer
from hideaway.subcommands.hide_rounds import ask_scenario, ask_terms


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `hideaway hide`."""
    add_scenario_flags(parser)
    add_term_flags(parser)
    parser.add_argument(
        "--published", metavar="CASE", help=f"restate a case: {', '.join(published_case_names())}"
    )
    parser.add_argument(
        "--plot",
        type=output_file,
        metavar="FILE",
        help="draw the frontier over r and BW and the verdict over B (.png or .svg)",
    )
    add_out_option(parser, "also write the answer to this JSON file")
    add_json_option(parser)
    add_seed_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the answer; draw and write what was asked for."""
    whole_number("seed", arguments.seed)
    unused = apply_scenario_file(arguments)
    if unused:
        note(f"not used by this question: {', '.join(unused)}")
    check_given(arguments)
    refuse_same_file(arguments, "out", "plot")
    if arguments.plot is not None:
        picture_kind(arguments.plot)
    if arguments.published is not None:
        result = _published(arguments)
    else:
        result = _asked(arguments)
    if arguments.out is not None:
        write_json_atomically(arguments.out, result)
        note(f"wrote {arguments.out}")
    if arguments.json:
        print_json(result)
    elif arguments.published is not None:
        print_published_answer(result)
    else:
        print_hide_answer(result)
    return 0


def _asked(arguments: argparse.Namespace) -> dict[str, Any]:
    scenario = arguments.model is not None or arguments.profile is not None
    if not scenario and given(arguments, SCENARIO_FLAGS):
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in given(arguments, SCENARIO_FLAGS))
        raise InputError(f"{flags} needs a scenario; give --model and --profile as well")
    if scenario and arguments.acceptance is None and arguments.acceptance_length is None:
        arguments.acceptance = DEFAULT_ACCEPTANCE
    asked = ask_scenario(arguments) if scenario else ask_terms(arguments)
    if arguments.plot is not None:
        block = None if asked.terms.block is None else asked.terms.block.block_size
        hide_plot(
            arguments.plot,
            nominal=asked.terms.nominal.as_arguments(),
            blocks=asked.blocks,
            block_size=block,
            title=_title(arguments),
        )
        note(f"wrote {arguments.plot}")
    return asked.result


def _published(arguments: argparse.Namespace) -> dict[str, Any]:
    scenario = ("model", "profile", "block_size", "concurrency", *SCENARIO_FLAGS)
    others = given(arguments, [*ALL_TERM_FLAGS, *SHAPE_FLAGS, *scenario])
    if others:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in others)
        raise InputError(f"--published brings its own terms; leave out {flags}")
    case = load_published_case(arguments.published)
    readings = read_published_case(case)
    if arguments.plot is not None:
        published_plot(arguments.plot, readings, title=case.title)
        note(f"wrote {arguments.plot}")
    return published_answer(case, readings)


def _title(arguments: argparse.Namespace) -> str:
    if arguments.model is None:
        return "Do expert transfers hide? Terms as given"
    return f"Do expert transfers hide? {arguments.model} on {arguments.profile}"
