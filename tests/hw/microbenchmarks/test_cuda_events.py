"""The device's time beside the host's, with events that a test keeps: what runs on CUDA, without one."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from hideaway.hw.microbenchmarks.benchmark import Operation
from hideaway.hw.microbenchmarks.cuda_events import with_events


@pytest.fixture
def log(monkeypatch):
    calls: list[str] = []

    class Event:
        made = 0

        def __init__(self, enable_timing):
            assert enable_timing
            self.name = ("start", "end")[Event.made % 2]
            Event.made += 1

        def record(self):
            calls.append(self.name)

        def synchronize(self):
            calls.append("synchronize")

        def elapsed_time(self, other):
            assert (self.name, other.name) == ("start", "end")
            return 2.5

    monkeypatch.setattr(torch.cuda, "Event", Event)
    return calls


def test_events_enclose_the_operation_and_are_read_in_seconds(log) -> None:
    operation = with_events(Operation(lambda: log.append("run"), activity="computes"))
    operation.run()
    assert log == ["start", "run", "end"]
    assert operation.readings() == {"device": (0.0025,)}
    assert log[-1] == "synchronize"
    assert operation.activity == "waits"


def test_a_reading_that_the_operation_makes_itself_wins(log) -> None:
    operation = with_events(Operation(lambda: None, readings=lambda: {"device": (1.0,), "copy": (2.0,)}))
    operation.run()
    assert operation.readings() == {"device": (1.0,), "copy": (2.0,)}
