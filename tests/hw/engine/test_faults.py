"""A transfer that fails takes down the requests that need it, with one sentence each, and nobody else."""

from __future__ import annotations

import threading

import pytest

pytest.importorskip("torch")

from hideaway.hw.devices.direct_reader import DirectReader
from hideaway.hw.devices.disk import DiskDevice
from hideaway.hw.engine.replayed import Replayed
from hideaway.sim.errors import HideawayError
from hideaway.sim.event_log import EventLog, first_difference
from hideaway.sim.inputs.scenario import BASELINES
from hideaway.sim.world.copies import link_options
from hideaway.sim.world.make_scheduler import make_scheduler
from tests.hw.engine.small_shape import run_in
from tests.hw.small_stores import WrappedReader


def failing(*, fails):
    """Return a maker of disk devices whose reads fail where `fails(read number, layer, expert)` says so."""

    def make(options, store, scenario, num_slots, link):
        places = {
            store.offset_bytes(layer, expert): (layer, expert)
            for layer in range(store.description.num_layers)
            for expert in range(store.description.num_experts)
        }
        reads = []

        def before(offset, size):
            reads.append(offset)
            if fails(len(reads), *places[offset]):
                raise OSError(5, "Input/output error")

        reader = WrappedReader(DirectReader(store.data_path), before)
        return DiskDevice(store, num_slots, options=link_options(scenario), reader=reader)

    return make


def broken(layer, expert):
    return failing(fails=lambda number, at, which: (at, which) == (layer, expert))


@pytest.mark.parametrize("baseline", ["B0", "OURS"])
@pytest.mark.parametrize("slots", [2, 4])
def test_a_broken_expert_fails_only_requests_that_read_it(tmp_path, monkeypatch, baseline, slots) -> None:
    """Two of the three requests read it in their prompts; the trace is bent so that the third never does."""
    layer, expert, spared = 2, 5, 1
    monkeypatch.setattr(Replayed, "_rows", rows_that_spare(spared, Replayed._rows))
    log = EventLog()
    run = run_in(
        tmp_path, baseline=baseline, slots=slots, concurrency=2, make_device=broken(layer, expert), log=log
    )
    assert sorted(run.meter.requests) == [spared]
    assert run.meter.requests[spared].finish_seconds > 0
    assert len(run.failures) == 2
    for sentence in run.failures:
        assert f"failed: layer {layer} expert {expert} from " in sentence
        assert sentence.endswith("Input/output error")
    fresh = make_scheduler(run.truncated.scenario, run.truncated.inputs, BASELINES[baseline], run.memory)
    assert first_difference(log, fresh) is None


def rows_that_spare(seq_id, rows):
    """Return `rows` without those of one sequence, as if it read other experts."""

    def others(content):
        seats = content._forward.every_seat
        return [
            found[:0] if seat.seq_id == seq_id else found
            for seat, found in zip(seats, rows(content), strict=True)
        ]

    return others


def test_one_request_fails_and_the_others_finish(tmp_path) -> None:
    """Reads fail for a while in the middle: who waits then fails, who comes later does not."""
    outage = failing(fails=lambda number, layer, expert: 8 <= number < 30)
    run = run_in(tmp_path, baseline="B1", slots=4, concurrency=1, make_device=outage)
    assert len(run.failures) == 1
    assert run.failures[0].startswith("request 0 failed: layer ")
    assert sorted(run.meter.requests) == [1, 2]
    assert any("1 requests failed" in warning for warning in run.warnings)
    assert run.metrics["output_tokens_per_second"] > 0


def test_a_transient_error_is_retried_and_seen_by_nobody(tmp_path) -> None:
    run = run_in(tmp_path, make_device=failing(fails=lambda number, layer, expert: number % 4 == 0))
    assert not run.failures
    assert len(run.meter.requests) == 3


def test_when_every_request_fails_the_run_says_so_in_one_sentence(tmp_path) -> None:
    with pytest.raises(
        HideawayError, match="every request failed; the first: request 0 failed: layer 0 expert"
    ):
        run_in(tmp_path, make_device=failing(fails=lambda number, layer, expert: True))


def test_what_cannot_be_loaded_at_the_start_ends_the_run(tmp_path) -> None:
    with pytest.raises(HideawayError, match="the run cannot start: layer 2 expert 3"):
        run_in(tmp_path, baseline="B3", make_device=broken(2, 3))


def test_an_interrupted_run_leaves_no_thread(tmp_path, monkeypatch) -> None:
    from hideaway.hw.engine.torch_work import TorchWork

    calls = []

    def interrupt(work, layer, expert, slot):
        calls.append(expert)
        if len(calls) == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(TorchWork, "arrival", interrupt)
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        run_in(tmp_path, baseline="OURS", slots=4)
    assert threading.active_count() == before
