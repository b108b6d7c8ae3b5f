"""The few figures of a run that headroom compares: small enough to come back from a worker."""

from __future__ import annotations

from typing import NamedTuple

from hideaway.campaigns.shared_inputs import inputs_of
from hideaway.sim.inputs.scenario.fields import Scenario
from hideaway.sim.world.simulate import simulate


class Figures(NamedTuple):
    """One run: service figures, peak KV memory in bytes, and what a reader should know."""

    tokens_per_second: float
    round_p99_seconds: float
    ttft_p99_seconds: float
    tpot_seconds: float
    round_seconds: float
    acceptance_length: float
    kv_peak_bytes: float
    warnings: tuple[str, ...]


def run_figures(scenario: Scenario) -> Figures:
    """Simulate a scenario and return its figures.

    Raises
    ------
    InputError
        The scenario is wrong.
    """
    run = simulate(scenario, inputs=inputs_of(scenario))
    metrics = run.metrics
    return Figures(
        tokens_per_second=metrics["output_tokens_per_second"],
        round_p99_seconds=metrics["per_round_latency_seconds_p99"],
        ttft_p99_seconds=metrics["ttft_seconds_p99"],
        tpot_seconds=metrics["tpot_seconds"],
        round_seconds=metrics["per_round_latency_seconds"],
        acceptance_length=metrics["acceptance_length_a"],
        kv_peak_bytes=metrics["kv_occupancy_bytes_peak"],
        warnings=run.warnings,
    )
