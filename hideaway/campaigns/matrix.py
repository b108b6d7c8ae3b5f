"""The baseline matrix: every baseline of every (block size, concurrency) cell, as rows of the contract.

B0 and B3-AR do not draft, so their figures do not depend on the block size: they are simulated once a concurrency
and reported in each cell. Every baseline of a cell replays the same requests, rows and acceptance (common random
numbers).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypedDict

from hideaway.campaigns.workers import run_all
from hideaway.sim.contract import UNAVAILABLE_CAPACITY, make_observation_row
from hideaway.sim.contract.rows import Row
from hideaway.sim.inputs.scenario.baselines import BASELINES
from hideaway.sim.inputs.scenario.fields import Scenario
from hideaway.sim.world.inputs import Inputs
from hideaway.sim.world.memory import CapacityError
from hideaway.sim.world.simulate import Run, load_inputs, simulate

DEFAULT_BASELINES = ("B0", "B1", "B2", "OURS", "OURS-oracle", "B3", "B3-AR")
DRAFT_NAME = "block-diffusion drafter"


@dataclass(frozen=True, slots=True)
class Matrix:
    """The rows of a matrix and one scenario's inputs, for the settings in force."""

    rows: list[Row]
    scenario: Scenario
    inputs: Inputs


def run_matrix(
    scenario: Scenario,
    *,
    baselines: Sequence[str],
    block_sizes: Sequence[int],
    concurrencies: Sequence[int],
    workers: int | None = None,
) -> Matrix:
    """Simulate every cell and return its rows, ordered by block size, concurrency and baseline.

    Raises
    ------
    InputError
        The scenario is wrong; a baseline that does not fit the device becomes UNAVAILABLE_CAPACITY instead.
    """
    inputs = _inputs(scenario)
    tasks: list[Scenario] = []
    places: list[tuple[int, int, str]] = []
    for block_size in block_sizes:
        for concurrency in concurrencies:
            for name in baselines:
                places.append((block_size, concurrency, name))
    for place in dict.fromkeys(_simulated_as(place, block_sizes[0]) for place in places):
        tasks.append(_cell(scenario, *place))
    results = dict(
        zip(map(_place, tasks), run_all(_run_cell, tasks, "cells", workers=workers, cost=_cost), strict=True)
    )
    rows = [{**results[_simulated_as(place, block_sizes[0])], "block_size": place[0]} for place in places]
    return Matrix(rows, scenario, inputs)


def _simulated_as(place: tuple[int, int, str], first_block_size: int) -> tuple[int, int, str]:
    block_size, concurrency, name = place
    return (block_size if BASELINES[name].speculative else first_block_size), concurrency, name


def _cell(scenario: Scenario, block_size: int, concurrency: int, name: str) -> Scenario:
    return replace(scenario, block_size=block_size, concurrency=concurrency, baseline=name)


def _place(scenario: Scenario) -> tuple[int, int, str]:
    return scenario.block_size, scenario.concurrency or 1, scenario.baseline


def _cost(scenario: Scenario) -> float:
    """Guess: layer visits go with the tokens of a sequence over what runs together; the byte deficit seats few."""
    baseline = BASELINES[scenario.baseline]
    if baseline.resident:
        return 0.0
    together = 2 if baseline.admission == "deficit-2d" else scenario.concurrency or 1
    return (2.0 if baseline.speculative else 4.0) / together


@lru_cache(maxsize=1)
def _inputs(scenario: Scenario) -> Inputs:
    return load_inputs(scenario)


def _run_cell(scenario: Scenario) -> Row:
    common = replace(scenario, baseline="OURS", block_size=8, concurrency=1)
    try:
        return row_of(simulate(scenario, inputs=_inputs(common)))
    except CapacityError as error:
        return make_observation_row(
            **_identity(scenario, _inputs(common).model.name),
            metrics={},
            status=UNAVAILABLE_CAPACITY,
            warnings=[str(error)],
        )


def row_of(run: Run) -> Row:
    """Return the contract row of a finished simulated run."""
    return row_of_figures(run.scenario, run.inputs, run.metrics, run.warnings)


def row_of_figures(
    scenario: Scenario,
    inputs: Inputs,
    metrics: Mapping[str, float],
    warnings: Sequence[str],
    *,
    draft: str = DRAFT_NAME,
    repeat: int = 0,
    h2d_bytes_per_second: float | None = None,
) -> Row:
    """Return the contract row of a run, simulated or real.

    `h2d_bytes_per_second` is what was measured, if it was; else the cost model's.

    Its cost terms are means per forward, prefill chunks included; the verify is its compute without the waits.
    """
    forwards = metrics["forwards"] or 1.0
    waits = metrics["exposed_seconds"] + metrics["issue_idle_seconds"] + metrics["sync_seconds"]
    terms = {
        "measured_h2d_bytes_per_second": h2d_bytes_per_second or inputs.costs.link.bytes_per_second,
        "route_ahead_coverage": metrics["route_ahead_prefetch_coverage"],
        "wasted_prefetch_bytes": metrics["wasted_prefetch_bytes"],
    }
    if not BASELINES[scenario.baseline].oracle:  # no engine can run the oracle's route pass
        terms["t_draft_seconds"] = metrics["draft_seconds"] / forwards
        terms["t_router_seconds"] = metrics["route_seconds"] / forwards
        terms["t_verify_seconds"] = (metrics["forward_seconds"] - waits) / forwards
    return make_observation_row(
        **_identity(scenario, inputs.model.name, draft, repeat),
        metrics=metrics,
        cost_terms=terms,
        warnings=list(warnings),
    )


class _Identity(TypedDict):
    model: str
    draft: str
    baseline: str
    block_size: int
    concurrency: int
    repeat: int


def _identity(scenario: Scenario, model_name: str, draft: str = DRAFT_NAME, repeat: int = 0) -> _Identity:
    return {
        "model": model_name,
        "draft": draft if BASELINES[scenario.baseline].speculative else "",
        "baseline": scenario.baseline,
        "block_size": scenario.block_size,
        "concurrency": scenario.concurrency or 1,
        "repeat": repeat,
    }
