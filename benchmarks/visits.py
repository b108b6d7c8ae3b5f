"""Layer visits a second on one core, beside SimPy's own event rate, in alternating runs.

Each round times the same amount of bare SimPy timeouts and one simulation; the ratio of the two does not depend on
how fast or busy the machine is at that moment.
"""

from __future__ import annotations

import statistics
import time

import simpy

from hideaway.console import print_table
from hideaway.sim.inputs.scenario import Scenario
from hideaway.sim.world.simulate import Inputs, load_inputs, simulate

BARE_EVENTS = 200_000
ROUNDS = 5

CASES = {
    "B = 16, concurrency 8, on demand": Scenario(
        block_size=16, concurrency=8, baseline="B1", prefetch="none", acceptance="constant:6"
    ),
    "B = 16, concurrency 8, route-ahead": Scenario(
        block_size=16, concurrency=8, baseline="B2", acceptance="constant:6"
    ),
    "autoregressive, concurrency 1": Scenario(concurrency=1, baseline="B0"),
    "128 experts, B = 8, concurrency 8": Scenario(
        model="Qwen3-30B-A3B", profile="rtx-5090", concurrency=8, baseline="B2", requests=16
    ),
}


def report() -> None:
    """Print visits a second (processor time) and the ratio to bare timeouts, medians of the rounds."""
    lines = []
    for name, scenario in CASES.items():
        inputs = load_inputs(scenario)
        rounds = [(_bare_timeouts_per_second(), *_visits_per_second(scenario, inputs)) for _ in range(ROUNDS)]
        rate = statistics.median(visits for _, visits, _ in rounds)
        ratio = statistics.median(bare / visits for bare, visits, _ in rounds)
        lines.append((name, f"{rounds[0][2]:.1f}", f"{rate:,.0f}", f"{ratio:.1f}"))
    print_table(
        ("case", "misses a visit", "visits/s", "bare timeouts a visit"),
        lines,
        title="layer visits on one core",
    )


def _visits_per_second(scenario: Scenario, inputs: Inputs) -> tuple[float, float]:
    start = time.process_time()
    metrics = simulate(scenario, inputs=inputs).metrics
    seconds = time.process_time() - start
    return metrics["layer_visits"] / seconds, metrics["misses_per_visit"]


def _bare_timeouts_per_second() -> float:
    env = simpy.Environment()

    def tick() -> object:
        for _ in range(BARE_EVENTS):
            yield env.timeout(1.0)

    env.process(tick())  # type: ignore[arg-type]
    start = time.process_time()
    env.run()
    return BARE_EVENTS / (time.process_time() - start)
