"""The baseline matrix run for real, repeated and interleaved, and the same cells simulated.

Each repeat runs every cell once, in an order drawn anew, so that a machine that slows down slows all cells alike. A row
is kept as soon as its run has ended, and a campaign that was stopped goes on where it was: the rows in the file are its
memory. Next: `hideaway.campaigns.repeats` for what the repeats say together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hideaway.campaigns.matrix import DRAFT_NAME, row_of_figures
from hideaway.console import note, progress
from hideaway.sim.contract import append_observation, load_observations
from hideaway.sim.contract.rows import ObservationKey, Row, observation_key
from hideaway.sim.inputs.scenario.baselines import BASELINES
from hideaway.sim.world.simulate import simulate

if TYPE_CHECKING:
    from hideaway.hw.engine.open_device import DeviceOptions
    from hideaway.hw.engine.truncation import Truncated
    from hideaway.hw.store.reader import ExpertStore

REAL_DRAFT_NAME = f"{DRAFT_NAME}, random weights, replayed acceptance"


@dataclass(frozen=True, slots=True)
class RealCell:
    """One run of a real matrix."""

    baseline: str
    block_size: int
    concurrency: int
    repeat: int

    def of(self, truncated: Truncated) -> Truncated:
        """Return the scenario of this cell."""
        scenario = replace(
            truncated.scenario,
            baseline=self.baseline,
            block_size=self.block_size,
            concurrency=self.concurrency,
        )
        return replace(truncated, scenario=scenario)

    def key(self, model: str) -> ObservationKey:
        """Return what identifies the row of this run."""
        draft = REAL_DRAFT_NAME if BASELINES[self.baseline].speculative else ""
        return model, draft, self.baseline, self.block_size, self.concurrency, self.repeat


def planned_cells(
    baselines: Sequence[str],
    block_sizes: Sequence[int],
    concurrencies: Sequence[int],
    repeats: int,
    rng: np.random.Generator,
) -> list[RealCell]:
    """Return every run in the order in which it is made; baselines that do not draft run at the first block size."""
    places = [
        (name, block, count)
        for block in block_sizes
        for count in concurrencies
        for name in dict.fromkeys(baselines)
        if BASELINES[name].speculative or block == block_sizes[0]
    ]
    cells = []
    for repeat in range(repeats):
        for index in rng.permutation(len(places)).tolist():
            name, block, count = places[index]
            cells.append(RealCell(name, block, count, repeat))
    return cells


def run_cells(
    cells: Sequence[RealCell],
    truncated: Truncated,
    store: ExpertStore,
    options: DeviceOptions,
    *,
    rows_path: Path | None,
    on_environment: Callable[[dict[str, object]], None],
) -> list[Row]:
    """Run what has no row yet and return the rows of all cells, in the order of `cells`.

    Parameters
    ----------
    rows_path : Path, optional
        Rows are kept here one by one; those that it holds are not run again.
    on_environment : callable
        Told of the machine after each run.
    """
    from hideaway.hw.engine.run import check_runnable, run_real

    for cell in cells:  # what cannot run is refused before anything has run
        check_runnable(cell.of(truncated))
    model = truncated.inputs.model.name
    rows = {observation_key(row): row for row in load_observations(rows_path)} if rows_path else {}
    left = [cell for cell in cells if cell.key(model) not in rows]
    if len(left) < len(cells):
        note(f"{len(cells) - len(left)} of {len(cells)} runs are there already; going on with the rest")
    began, done = time.monotonic(), 0
    with progress(len(left), "real runs") as step:
        for cell in left:
            finished = run_real(cell.of(truncated), store, options)
            row = row_of_figures(
                cell.of(truncated).scenario,
                truncated.inputs,
                finished.metrics,
                finished.warnings,
                draft=REAL_DRAFT_NAME,
                repeat=cell.repeat,
                h2d_bytes_per_second=_moved_per_second(finished.metrics),
            )
            if rows_path is not None:
                append_observation(rows_path, row)
            rows[observation_key(row)] = row
            on_environment(finished.environment)
            done += 1
            if done == 1 and len(left) > 1:
                note(f"about {(time.monotonic() - began) * (len(left) - 1) / 60:.0f} minutes to go")
            step()
    return [rows[cell.key(model)] for cell in cells]


def _moved_per_second(metrics: Mapping[str, float]) -> float | None:
    """Return the bytes that the link moved over the time in which it moved; None when nothing moved."""
    busy_seconds = metrics["link_busy_share"] * metrics["makespan_seconds"]
    return metrics["moved_bytes"] / busy_seconds if busy_seconds > 0 else None


def simulated_rows(cells: Sequence[RealCell], truncated: Truncated) -> list[Row]:
    """Return one simulated row for each place of the matrix, from the same requests, routing and acceptance."""
    rows = []
    for cell in dict.fromkeys(replace(cell, repeat=0) for cell in cells):
        scenario = cell.of(truncated).scenario
        run = simulate(scenario, inputs=truncated.inputs)
        rows.append(
            row_of_figures(scenario, truncated.inputs, run.metrics, run.warnings, draft=REAL_DRAFT_NAME)
        )
    return rows
