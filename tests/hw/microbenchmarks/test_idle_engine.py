"""What the idle work notes of the calls around it, and that nothing of a prompt is among it."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from hideaway.hw.devices.base import Transfer
from hideaway.hw.engine.work import ForwardWork, Seat
from hideaway.hw.microbenchmarks.idle_engine import IdleWork, InstantDevice
from hideaway.sim.commands import Band
from hideaway.sim.world.forward_rows import Rows


def forward(*, prompt: bool) -> ForwardWork:
    seat = Seat(0, 1, 1, 0)
    rows = Rows([(0, 1)], (1, 1), [], (), [(1, 1)], 1, 1)
    return ForwardWork(() if prompt else (seat,), seat if prompt else None, rows)


def visit(work: IdleWork) -> list[int]:
    """Return a callback that does what the visitor does, and the layers that it was called for."""

    def at_experts(layer: int) -> None:
        layers.append(layer)
        work.learn_routing(layer)
        work.hits(layer, {0: 0})
        work.arrival(layer, 1, 1)
        work.finish_layer(layer)

    layers: list[int] = []
    work.at_experts = at_experts
    return layers


def test_each_visit_has_one_answer_and_layers_and_forwards_one_pause_between_them() -> None:
    swept = []
    work = IdleWork(2, lambda: swept.append(1))
    layers = visit(work)
    for _ in range(3):
        work.forward(forward(prompt=False), work.at_experts)
    assert layers == [0, 1] * 3
    assert len(swept) == 6
    assert len(work.answers) == 6
    assert len(work.between_visits) == 3
    assert len(work.between_forwards) == 2
    assert min(work.answers + work.between_visits + work.between_forwards) > 0


def test_forwards_with_a_prompt_are_left_out() -> None:
    work = IdleWork(2, lambda: None)
    visit(work)
    work.forward(forward(prompt=True), work.at_experts)
    work.forward(forward(prompt=True), work.at_experts)
    assert not work.answers
    assert not work.between_visits
    assert not work.between_forwards


def test_transfers_arrive_at_once() -> None:
    device = InstantDevice()
    device.submit([Transfer(0, 1, 2), Transfer(0, 3, 4)], Band.ON_DEMAND)
    assert [arrival.expert for arrival in device.wait()] == [1, 3]
    assert device.poll() == []
    assert device.outstanding() == 0
