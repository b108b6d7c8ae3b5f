r"""Simulate the baselines B0 to B3 over block sizes and concurrencies, and write contract-valid results.

Writes rows.json, matrix.json, matrix.csv, matrix.md, settings.json, money.png and exposed.png to the folder of --out.
With --real every cell is run on this machine instead, --repeats times and interleaved, beside its simulated counterpart
(repeats.json, simulated.json); the same command goes on where an interrupted one stopped.

Example:
  hideaway matrix --model gpt-oss-20b --profile rtx-pro-6000 --slot-fraction 0.5 \
      --block-size 8 16 --concurrency 1 2 4 8 16 32 --requests 64 --out results
  hideaway matrix --real --shape Qwen3-30B-A3B --layers 6 --device disk --baselines B0 B1 OURS \
      --block-size 8 --concurrency 1 4 --requests 8 --repeats 5 --out real-results
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hideaway.campaigns.matrix import DEFAULT_BASELINES, Matrix, run_matrix
from hideaway.console import note, print_json, print_table
from hideaway.options import add_json_option, add_out_option
from hideaway.real_flags import add_real_flags
from hideaway.report.defaults import BASELINE_COLUMNS, baseline_rows, defaults_in_force, settings_rows
from hideaway.report.matrix_files import write_matrix_files
from hideaway.report.matrix_table import matrix_table, matrix_verdict
from hideaway.scenario_flags import add_scenario_flags, scenario_from_flags
from hideaway.sim.contract import aggregate_result_matrices, evaluate_matrix
from hideaway.sim.contract.writers import write_rows_json
from hideaway.sim.errors import InputError
from hideaway.sim.files import write_json_atomically
from hideaway.sim.inputs.scenario.baselines import BASELINES
from hideaway.sim.inputs.scenario.fields import Scenario
from hideaway.sim.inputs.scenario.toml_file import read_scenario_mapping
from hideaway.subcommands.matrix_real import run_real_matrix

BUDGETS = ("token_budget", "token_deficit_cap", "byte_budget", "byte_deficit_cap")
"""They depend on the cell."""
DEFAULT_BLOCK_SIZES = (8, 16)
DEFAULT_CONCURRENCIES = (1, 2, 4, 8, 16, 32)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `hideaway matrix`."""
    parser.add_argument(
        "--block-size",
        type=int,
        nargs="+",
        metavar="B",
        help=f"rows verified per round (default {' '.join(map(str, DEFAULT_BLOCK_SIZES))})",
    )
    parser.add_argument(
        "--concurrency",
        type=int,
        nargs="+",
        metavar="C",
        help=f"requests in the system at once (default {' '.join(map(str, DEFAULT_CONCURRENCIES))})",
    )
    parser.add_argument(
        "--baselines",
        nargs="+",
        choices=list(BASELINES),
        metavar="NAME",
        help=f"rows of each cell, of {', '.join(BASELINES)} (default: the first seven)",
    )
    parser.add_argument("--workers", type=int, metavar="N", help="processes (default: one a core)")
    parser.add_argument(
        "--plot-metric",
        default="output_tokens_per_second",
        choices=["output_tokens_per_second", "goodput_at_slo"],
        help="what the money plot shows (default %(default)s)",
    )
    parser.add_argument("--real", action="store_true", help="run every cell on this machine (needs torch)")
    parser.add_argument(
        "--repeats", type=int, default=5, metavar="N", help="--real: runs of each cell (default %(default)s)"
    )
    add_real_flags(parser, "real runs (with --real)")
    without = ("block_size", "concurrency", "baseline", "rate", "open_loop", "max_sequences")
    add_scenario_flags(parser, without=without)
    add_json_option(parser)
    parser.add_argument("--overwrite", action="store_true", help="replace the results that the folder holds")
    add_out_option(parser, "folder for the result files (default: print only)", folder=True)


def run(arguments: argparse.Namespace) -> int:
    """Run `hideaway matrix`."""
    arguments, scenario = _axes_and_scenario(arguments)
    if arguments.real:
        return run_real_matrix(arguments, scenario)
    _refuse_overwriting(arguments)
    if arguments.workers is not None and arguments.workers < 1:
        raise InputError(f"--workers is {arguments.workers}; give at least 1")
    matrix = run_matrix(
        scenario,
        baselines=list(dict.fromkeys(arguments.baselines)),
        block_sizes=arguments.block_size,
        concurrencies=arguments.concurrency,
        workers=arguments.workers,
    )
    cells = aggregate_result_matrices(matrix.rows)
    complete = {
        f"{model}|B{block}|c{count}": evaluate_matrix(cell, allow_blocked=["B3"])[0]
        for (model, block, count), cell in cells.items()
    }
    settings = _settings(matrix, arguments)
    written = _write(matrix, settings, arguments) if arguments.out else []
    if arguments.json:
        print_json({"settings": settings, "complete": complete, "rows": matrix.rows, "files": written})
        return 0
    print_table(("setting", "value"), settings_rows(settings), title="in force")
    names = list(dict.fromkeys(arguments.baselines))
    print_table(BASELINE_COLUMNS, baseline_rows(scenario, matrix.inputs, names), title="baselines")
    columns, rows = matrix_table(matrix.rows)
    print_table(columns, rows, title="output tokens/s (exposed share of time)")
    print(matrix_verdict(matrix.rows))
    for name in written:
        print(f"wrote {name}")
    return 0


def _axes_and_scenario(arguments: argparse.Namespace) -> tuple[argparse.Namespace, Scenario]:
    """Return the flags with their axes settled, and what is common to all cells.

    A scenario file may name one block size, concurrency and baseline; flags win over them.
    """
    given = read_scenario_mapping(arguments.scenario) if arguments.scenario else {}
    opened = [name for name in ("rate", "open_loop") if given.get(name)]
    if opened:
        raise InputError(
            f"scenario file {arguments.scenario!r} has {' and '.join(opened)}; a matrix closes its loops, take it out"
        )
    axes = {
        "block_size": arguments.block_size or _one(given, "block_size") or list(DEFAULT_BLOCK_SIZES),
        "concurrency": arguments.concurrency or _one(given, "concurrency") or list(DEFAULT_CONCURRENCIES),
        "baselines": arguments.baselines or _one(given, "baseline") or list(DEFAULT_BASELINES),
    }
    _check_counts("--block-size", axes["block_size"])
    _check_counts("--concurrency", axes["concurrency"])
    common = argparse.Namespace(**{**vars(arguments), "block_size": None, "concurrency": 1})
    return argparse.Namespace(**{**vars(arguments), **axes}), scenario_from_flags(common)


def _one(given: Mapping[str, Any], key: str) -> list[Any]:
    return [given[key]] if key in given else []


def _refuse_overwriting(arguments: argparse.Namespace) -> None:
    if arguments.out and not arguments.overwrite and (Path(arguments.out) / "rows.json").exists():
        raise InputError(
            f"{arguments.out} holds the rows of an earlier run; name another folder, or give --overwrite"
        )


def _check_counts(flag: str, values: list[int]) -> None:
    if len(set(values)) != len(values) or any(not 1 <= value <= 4096 for value in values):
        raise InputError(
            f"{flag} is {' '.join(map(str, values))}; give different whole numbers from 1 to 4096"
        )


def _settings(matrix: Matrix, arguments: argparse.Namespace) -> dict[str, object]:
    settings = defaults_in_force(matrix.scenario, matrix.inputs, None)
    for varies in ("baseline", "prefetch", "admission", "router_exact_depth", *BUDGETS, "slots"):
        settings.pop(varies, None)
    settings["block_size"] = list(arguments.block_size)
    settings["concurrency"] = list(arguments.concurrency)
    return settings


def _write(matrix: Matrix, settings: dict[str, object], arguments: argparse.Namespace) -> list[str]:
    folder = Path(arguments.out)
    write_rows_json(folder / "rows.json", matrix.rows)
    write_json_atomically(folder / "settings.json", settings)
    written = write_matrix_files(
        matrix.rows, folder, metric=arguments.plot_metric, profile=matrix.scenario.profile
    )
    note(f"results in {folder}")
    return [str(folder / "rows.json"), str(folder / "settings.json"), *written]
