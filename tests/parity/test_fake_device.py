"""The real engine over a fake clock and device, whose work lasts what the cost model says, is the simulator.

Same events and commands in the same order, and every record of the timeline at the same time to 1e-9 s. The device
issues from the queue that real devices use.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hideaway.hw.engine.machine import Machine
from hideaway.sim.event_log import EventLog, first_difference
from hideaway.sim.inputs.scenario import BASELINES, Scenario
from hideaway.sim.timeline import Timeline
from hideaway.sim.world.copies import link_options
from hideaway.sim.world.make_scheduler import make_scheduler
from hideaway.sim.world.simulate import Run, simulate
from hideaway.sim.world.summary import summarise
from tests.fake_device import FakeClock, FakeDevice, FakeWork

EXACT = 1e-9
QUIET = {"contention.compute_slowdown": 0.0, "contention.link_slowdown": 0.0}
"""The simulator works contention out in closed form; a fake device has nobody to disturb."""

SCENARIO = Scenario(
    requests=4, concurrency=2, block_size=4, parameters=QUIET, slot_fraction=0.6, staging_slots=32
)
"""With a staging slot for each streamed expert: while one waits for its slot, the simulated link holds prefetches back,
which a device has no reason to do."""


def on_fake_device(run: Run) -> tuple[Machine, Timeline, EventLog]:
    """Run the scenario of a simulated run on the real engine."""
    scenario, inputs, memory = run.scenario, run.inputs, run.memory
    baseline = BASELINES[scenario.baseline]
    clock, timeline, log = FakeClock(), Timeline(), EventLog()
    lookahead = make_scheduler(scenario, inputs, baseline, memory).cache.prefetch.lookahead
    device = FakeDevice(clock, inputs.costs.link, inputs.model.expert_bytes, link_options(scenario))
    work = FakeWork(clock, inputs, scenario, lookahead, block_size=scenario.block_size)

    def from_zero() -> FakeClock:
        device.restart()
        return clock

    machine = Machine(
        scenario,
        inputs,
        baseline,
        memory,
        device=device,
        work=work,
        make_clock=from_zero,
        timeline=timeline,
        log=log,
    )
    machine.run()
    return machine, timeline, log


def both(scenario: Scenario):
    timeline, log = Timeline(), EventLog()
    run = simulate(scenario, timeline=timeline, log=log)
    return run, timeline, log, *on_fake_device(run)


def untimed(value):
    """Return an event without its time."""
    return replace(value, at_seconds=0.0)


def assert_same_events(simulated: EventLog, real: EventLog) -> None:
    for index, (expected, found) in enumerate(zip(simulated, real, strict=False)):
        assert untimed(found.event) == untimed(expected.event), index
        assert found.commands == expected.commands, index
        assert found.event.at_seconds == pytest.approx(expected.event.at_seconds, rel=0, abs=EXACT), index
    assert len(simulated) == len(real)


def records(timeline: Timeline) -> dict[tuple, np.ndarray]:
    """Return the times of all records by everything else that they say, in order of time."""
    found: dict[tuple, list] = {}
    for record in sorted(timeline, key=lambda record: (record.start_seconds, record.end_seconds)):
        if record.track == "issue" or record.kind == "queue_depth":
            continue
        if record.track == "link":
            record = record._replace(
                band=-1
            )  # a chunk that moved before its transfer was promoted keeps its old one
        found.setdefault(record[2:], []).append(record[:2])
    return {key: np.array(times) for key, times in found.items()}


def assert_same_timeline(simulated: Timeline, real: Timeline) -> None:
    expected, found = records(simulated), records(real)
    assert found.keys() == expected.keys()
    for key, times in expected.items():
        assert found[key].shape == times.shape, key
        assert np.abs(found[key] - times).max() < EXACT, key


@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize("baseline", ["B0", "B1", "B2", "OURS", "OURS-oracle", "B3", "B3-AR"])
def test_the_engine_over_a_fake_device_is_the_simulator(baseline: str, concurrency: int) -> None:
    scenario = replace(SCENARIO, baseline=baseline, concurrency=concurrency)
    run, timeline, log, machine, real_timeline, real_log = both(scenario)
    assert_same_events(log, real_log)
    assert_same_timeline(timeline, real_timeline)
    metrics, _ = summarise(scenario, machine, run.inputs.model.expert_bytes)
    assert metrics.keys() <= run.metrics.keys()
    for name, value in metrics.items():
        assert value == pytest.approx(run.metrics[name], rel=1e-9, abs=EXACT), name
    fresh = make_scheduler(scenario, run.inputs, BASELINES[baseline], run.memory)
    assert first_difference(real_log, fresh) is None


@pytest.mark.parametrize("fields", [
    {"rate": 3.0},
    {"issue": "batched"},
    {"submitted_depth": 1},
    {"copy_streams": 1, "submitted_depth": 4, "eviction": "aged-lfu"},
    {"chunk_bytes": 2**21},
    {"lookahead": 3, "prefetch": "cross-round"},
    {"slot_fraction": 0.1, "prefetch": "none", "staging_slots": 2},
], ids=str)  # fmt: skip
def test_so_it_is_with_other_settings(fields: dict[str, object]) -> None:
    if "rate" in fields:
        fields = {**fields, "concurrency": None}
    scenario = replace(SCENARIO, requests=2, baseline="OURS", **fields)
    _, timeline, log, _, real_timeline, real_log = both(scenario)
    assert_same_events(log, real_log)
    assert_same_timeline(timeline, real_timeline)
