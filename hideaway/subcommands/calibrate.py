"""Fit a hardware profile to measurements of this machine, with errors, checks and a report.

Measurement files come from `hideaway measure`; several of one machine are pooled, those of different devices, drivers
or clocks are refused. What the device never exercises keeps the value of a base profile and is marked so. The profile
can be given to --profile wherever a built-in name can.

Example:
  hideaway calibrate M.json -o profile.json --report report.html
"""

from __future__ import annotations

import argparse
import re

from hideaway.console import note, print_json, print_table, progress
from hideaway.options import add_json_option, add_out_option, add_seed_option, output_file, refuse_same_file
from hideaway.report.calibration_table import CHOICE_COLUMNS, PARAMETER_COLUMNS, choice_rows, parameter_rows
from hideaway.report.calibration_value import calibration_value
from hideaway.sim.inputs.measurement_merge import merge_measurements
from hideaway.sim.inputs.measurements import read_measurements
from hideaway.sim.inputs.profiles import load_profile


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `hideaway calibrate`."""
    parser.add_argument("files", nargs="+", metavar="M.json", help="measurement files of one machine")
    parser.add_argument(
        "--report",
        type=output_file,
        metavar="FILE",
        help="write one self-contained HTML page with every curve, parameter and check",
    )
    parser.add_argument("--name", metavar="NAME", help="name of the profile (default: made from the device)")
    parser.add_argument(
        "--base",
        default="rtx-pro-6000",
        metavar="NAME",
        help="profile whose values stay where nothing was measured (default %(default)s)",
    )
    add_seed_option(parser)
    add_json_option(parser)
    add_out_option(parser, "write the profile to this JSON file")


def run(arguments: argparse.Namespace) -> int:
    """Run `hideaway calibrate`."""
    refuse_same_file(arguments, "out", "report")
    from hideaway.calibrate.calibration import calibrate, num_steps

    base = load_profile(arguments.base)
    file = merge_measurements(read_measurements(path) for path in arguments.files)
    name = arguments.name or _name_of(str(file.environment["device"]))
    with progress(num_steps(file), "fitting") as step:
        made = calibrate(file, base, name=name, seed=arguments.seed, on_step=step)
    if arguments.out:
        made.profile.save(arguments.out)
        note(f"profile: {arguments.out}")
    if arguments.report:
        from hideaway.report.calibration_page import write_calibration_page

        write_calibration_page(made, arguments.report)
        note(f"report: {arguments.report}")
    if arguments.json:
        print_json(calibration_value(made))
        return 0
    print_table(PARAMETER_COLUMNS, parameter_rows(made), title=f"{name}: {file.environment['device']}")
    print()
    print_table(CHOICE_COLUMNS, choice_rows(made), title="forms of the curves, by error on points left out")
    for flag in made.flags:
        note(f"note: {flag}")
    return 0


def _name_of(device: str) -> str:
    """Return a short name in small letters."""
    return re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")[:60] or "measured"
