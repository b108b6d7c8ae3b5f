"""`hideaway matrix --real`: the same files from real runs, with repeats, intervals and simulated counterparts.

Not here: the flags and the simulated matrix (`matrix.py`).
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hideaway.campaigns.real_matrix import planned_cells, run_cells, simulated_rows
from hideaway.campaigns.repeats import mean_rows, repeated_figures
from hideaway.console import note, print_json, print_table
from hideaway.real_flags import cut_facts, device_options, open_store, without_simulated_only
from hideaway.report.defaults import defaults_in_force, settings_rows
from hideaway.report.matrix_files import write_matrix_files
from hideaway.report.matrix_table import matrix_verdict
from hideaway.report.repeat_table import plain_figures, repeat_table, separated_pairs
from hideaway.sim.errors import InputError
from hideaway.sim.files import read_json, write_json_atomically
from hideaway.sim.inputs.scenario.fields import Scenario
from hideaway.sim.number_checks import whole_number

VARIES = ("baseline", "prefetch", "admission", "router_exact_depth", "slots")


def run_real_matrix(arguments: argparse.Namespace, scenario: Scenario) -> int:
    """Run `hideaway matrix --real`."""
    repeats = whole_number("repeats", arguments.repeats, minimum=1, maximum=1000)
    options = device_options(arguments, verify_transfers=arguments.verify_transfers)
    from hideaway.hw.engine.truncation import truncate

    scenario = replace(scenario, model=arguments.shape or scenario.model)
    truncated = truncate(scenario, arguments.layers)
    cells = planned_cells(
        arguments.baselines,
        arguments.block_size,
        arguments.concurrency,
        repeats,
        np.random.default_rng([scenario.seed, 7]),
    )
    store = open_store(arguments, truncated.scenario)
    settings = _settings(arguments, truncated, store, repeats)
    folder = Path(arguments.out) if arguments.out else None
    if folder is not None:
        _begin(folder, settings, overwrite=arguments.overwrite)
    environment: dict[str, object] = {}
    rows = run_cells(
        cells,
        truncated,
        store,
        options,
        rows_path=None if folder is None else folder / "rows.json",
        on_environment=environment.update,
    )
    simulated = simulated_rows(cells, truncated)
    figures = repeated_figures(rows, simulated)
    means = mean_rows(rows)
    written = []
    if folder is not None:
        written = [str(folder / "rows.json"), str(folder / "settings.json")]
        written += write_matrix_files(means, folder, metric=arguments.plot_metric, profile=arguments.device)
        for name, content in (
            ("simulated.json", simulated),
            ("repeats.json", {"figures": plain_figures(figures), "environment": environment}),
        ):
            write_json_atomically(folder / name, content)
            written.append(str(folder / name))
    if arguments.json:
        result: dict[str, Any] = {"settings": settings, "environment": environment, "rows": rows}
        print_json({**result, "simulated": simulated, "figures": plain_figures(figures), "files": written})
        return 0
    print_table(("setting", "value"), settings_rows(settings), title="in force")
    title = f"real mean ± half the 95 % interval | simulated with profile {scenario.profile}"
    print_table(*repeat_table(figures), title=title)
    _print_ranking(figures)
    print(matrix_verdict(means))
    for name in written:
        print(f"wrote {name}")
    return 0


def _print_ranking(figures: Any) -> None:  # noqa: ANN401
    """Say which baselines differ beyond their intervals, and whether the simulation orders them alike."""
    metric = "output_tokens_per_second"
    simulated = {figure.place: figure.simulated for figure in figures if figure.metric == metric}
    pairs = separated_pairs(figures, metric)
    alike = sum((simulated[slow] or 0.0) < (simulated[fast] or 0.0) for slow, fast in pairs)
    if pairs:
        print(
            f"{len(pairs)} pairs of baselines differ in tokens/s beyond their 95 % intervals; the simulation orders "
            f"{alike} of them alike"
        )
    else:
        print("no two baselines of a cell differ in tokens/s beyond their 95 % intervals")


def _settings(arguments: argparse.Namespace, truncated: Any, store: Any, repeats: int) -> dict[str, object]:  # noqa: ANN401
    settings = defaults_in_force(truncated.scenario, truncated.inputs, None)
    for varies in (*VARIES, *(name for name in settings if "budget" in name or "deficit" in name)):
        settings.pop(varies, None)
    without_simulated_only(settings)
    settings["layers"] = truncated.inputs.model.num_layers
    settings |= cut_facts(truncated)
    settings["store"] = store.path.name
    settings["device"] = arguments.device
    settings["link_rate"], settings["link_latency"] = arguments.link_rate, arguments.link_latency
    settings["threads"] = arguments.threads
    settings["verify_transfers"] = arguments.verify_transfers
    settings["baselines"] = list(dict.fromkeys(arguments.baselines))
    settings["block_size"] = list(arguments.block_size)
    settings["concurrency"] = list(arguments.concurrency)
    settings["repeats"] = repeats
    return settings


def _begin(folder: Path, settings: dict[str, object], *, overwrite: bool) -> None:
    """Keep the settings in the folder, or go on with an earlier campaign of the same settings. Changes files.

    Raises
    ------
    InputError
        The folder holds another campaign.
    """
    path, rows = folder / "settings.json", folder / "rows.json"
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}
    if overwrite:
        rows.unlink(missing_ok=True)
    elif rows.exists():
        earlier = read_json(path, "settings") if path.exists() else None
        if earlier != {**plain, "repeats": (earlier or {}).get("repeats")}:
            raise InputError(
                f"{folder} holds the rows of other settings; name another folder, or give --overwrite"
            )
        note(f"going on with the rows in {folder}")
    write_json_atomically(path, plain)
