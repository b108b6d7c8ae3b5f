"""A recorded event log, read back from its file, gives the same commands from a fresh scheduler."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hideaway.sim.errors import InputError
from hideaway.sim.event_log import EventLog, Exchange, first_difference
from hideaway.sim.events import LayerRouted
from hideaway.sim.inputs.scenario import BASELINES, Scenario
from hideaway.sim.scheduler import Scheduler
from hideaway.sim.world.make_scheduler import make_scheduler
from hideaway.sim.world.simulate import Run, simulate

SCENARIO = Scenario(requests=3, concurrency=2, block_size=4)


def recorded(baseline: str) -> tuple[Run, EventLog]:
    log = EventLog({"baseline": baseline})
    return simulate(replace(SCENARIO, baseline=baseline), log=log), log


def fresh(run: Run) -> Scheduler:
    return make_scheduler(run.scenario, run.inputs, BASELINES[run.scenario.baseline], run.memory)


@pytest.mark.parametrize("baseline", BASELINES)
def test_a_recorded_log_replays_to_the_same_commands(baseline: str, tmp_path: Path) -> None:
    run, log = recorded(baseline)
    log.write_jsonl(tmp_path / "log.jsonl")
    read = EventLog.read_jsonl(tmp_path / "log.jsonl")
    assert list(read) == list(log)
    assert read.header == {"baseline": baseline}
    assert first_difference(read, fresh(run)) is None


def test_a_changed_event_is_found() -> None:
    run, log = recorded("B1")
    place = next(index for index, exchange in enumerate(log) if isinstance(exchange.event, LayerRouted))
    event = log[place].event
    assert isinstance(event, LayerRouted)
    log[place] = Exchange(replace(event, needed=event.needed ^ 1 or 2), log[place].commands)
    difference = first_difference(log, fresh(run))
    assert difference is not None
    assert difference[0] >= place


def test_recording_changes_nothing() -> None:
    run, _ = recorded("OURS")
    assert run.metrics == simulate(run.scenario).metrics


@pytest.mark.parametrize(
    "text", ["", "{}", '{"format": "hideaway-event-log", "version": 1}\n{"event": {"kind": "Nonsense"}}']
)
def test_a_malformed_log_is_refused_with_its_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match="event log"):
        EventLog.read_jsonl(path)
