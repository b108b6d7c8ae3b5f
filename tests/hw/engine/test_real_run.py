"""A real run serves what the simulator serves, whatever the device, and its log replays."""

from __future__ import annotations

from itertools import pairwise

import pytest

pytest.importorskip("torch")

import torch

from hideaway.hw.engine.torch_work import TorchWork
from hideaway.sim.errors import InputError
from hideaway.sim.event_log import EventLog, first_difference
from hideaway.sim.inputs.scenario import BASELINES
from hideaway.sim.timeline import Timeline
from hideaway.sim.world.make_scheduler import make_scheduler
from hideaway.sim.world.simulate import simulate
from tests.hw.engine.small_shape import LATENT, REQUESTS, run_in

SAME_IN_BOTH = ("acceptance_length_a", "rounds", "forwards", "layer_visits", "experts_per_visit")


@pytest.mark.parametrize("baseline", ["B0", "B1", "B2", "OURS", "OURS-oracle", "B3", "B3-AR"])
def test_a_real_run_does_the_rounds_of_the_simulated_one(tmp_path, baseline) -> None:
    real = run_in(tmp_path, baseline=baseline)
    simulated = simulate(real.truncated.scenario, inputs=real.truncated.inputs)
    assert real.metrics.keys() == simulated.metrics.keys()
    for name in SAME_IN_BOTH:
        assert real.metrics[name] == simulated.metrics[name], name
    assert real.metrics["makespan_seconds"] > 0
    assert [request.output_tokens for request in real.meter.requests.values()] == [9, 7, 11]
    assert not real.failures


@pytest.mark.parametrize("baseline", ["B0", "OURS"])
@pytest.mark.parametrize("concurrency", [1, 3])
def test_the_log_of_a_real_run_replays_to_the_same_commands(tmp_path, baseline, concurrency) -> None:
    log = EventLog()
    run = run_in(tmp_path, baseline=baseline, concurrency=concurrency, log=log)
    inputs, scenario = run.truncated.inputs, run.truncated.scenario
    fresh = make_scheduler(scenario, inputs, BASELINES[baseline], run.memory)
    log.write_jsonl(tmp_path / "log.jsonl")
    assert first_difference(EventLog.read_jsonl(tmp_path / "log.jsonl"), fresh) is None


@pytest.mark.parametrize("fields", [
    {"slots": 2, "staging_slots": 1},
    {"slots": 1},
    {"device": "paced-memory"},
    {"eviction": "static"},
    {"eviction": "aged-lfu", "prefetch": "cross-round"},
    {"issue": "batched", "concurrency": 3},
    {"open_loop": True},
    {"rate": 200.0},
    {"architecture": LATENT},
    {"num_layers": 2},
    {"rejected_routing": "true", "lookahead": 3},
], ids=str)  # fmt: skip
def test_every_request_gets_its_tokens(tmp_path, fields) -> None:
    run = run_in(tmp_path, **fields)
    assert run.meter.requests.keys() == set(range(len(REQUESTS)))
    assert all(request.finish_seconds > 0 for request in run.meter.requests.values())
    assert run.metrics["moved_bytes"] > 0


def rows_of_run(tmp_path, monkeypatch, **fields) -> list[torch.Tensor]:
    """Return the rows that every forward of a run ends with."""
    seen = []
    finish = TorchWork.finish_forward

    def keep(work):
        seen.append(work.rows.clone())
        finish(work)

    monkeypatch.setattr(TorchWork, "finish_forward", keep)
    run_in(tmp_path, **fields)
    monkeypatch.undo()
    return seen


def test_offloaded_equals_resident_bit_for_bit(tmp_path, monkeypatch) -> None:
    resident = rows_of_run(tmp_path, monkeypatch, baseline="B3")
    for fields in ({"baseline": "B1", "slots": 3}, {"baseline": "OURS", "slots": 2, "staging_slots": 1}):
        offloaded = rows_of_run(tmp_path, monkeypatch, **fields)
        assert len(offloaded) == len(resident)
        for mine, theirs in zip(offloaded, resident, strict=True):
            assert torch.isfinite(mine).all()
            assert torch.equal(mine, theirs)


def test_the_timeline_accounts_for_the_run(tmp_path) -> None:
    timeline = Timeline()
    run = run_in(tmp_path, baseline="OURS", slots=3, timeline=timeline)
    compute = sorted(record[:2] for record in timeline.on_track("compute") if record.kind != "wait")
    assert all(later[0] >= earlier[1] for earlier, later in pairwise(compute))
    copies = timeline.on_track("link")
    stride = copies[0].bytes
    assert sum(record.bytes for record in copies) == stride * len(copies)
    assert len(copies) * run.truncated.inputs.model.expert_bytes == run.metrics["moved_bytes"]
    waits = sum(record.end_seconds - record.start_seconds for record in timeline if record.kind == "wait")
    idle = run.metrics["exposed_seconds"] + run.metrics["issue_idle_seconds"]
    assert waits == pytest.approx(idle, rel=1e-6, abs=1e-9)
    timeline.write_jsonl(tmp_path / "timeline.jsonl")
    assert list(Timeline.read_jsonl(tmp_path / "timeline.jsonl")) == list(timeline)


@pytest.mark.parametrize(("fields", "words"), [
    ({"eviction": "belady"}, "belady looks into the future"),
    ({"page_cache_bytes": 10}, "describe a simulated host"),
    ({"slots": 8}, "nothing is offloaded"),
    ({"num_layers": 9}, "has 4 layers with routed experts"),
])  # fmt: skip
def test_what_no_real_run_can_do_is_refused(tmp_path, fields, words) -> None:
    with pytest.raises(InputError, match=words):
        run_in(tmp_path, **fields)
