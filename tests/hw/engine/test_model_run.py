"""Real models through the engine: speculation loses nothing, whatever is offloaded, evicted, batched or preempted."""

from __future__ import annotations

import csv
import threading
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from hideaway.hw.draft.checkpoint import load_drafter
from hideaway.hw.engine.lossless import check_lossless
from hideaway.hw.engine.open_device import DeviceOptions
from hideaway.hw.engine.run_model import ModelRun, dflash_maker, run_model
from hideaway.sim.errors import HideawayError, InputError
from hideaway.sim.event_log import EventLog, first_difference
from hideaway.sim.inputs.acceptance import load_acceptance
from hideaway.sim.inputs.routing.npz import read_routing_file
from hideaway.sim.inputs.scenario import BASELINES
from hideaway.sim.timeline import Timeline
from hideaway.sim.world.make_scheduler import make_scheduler
from hideaway.sim.world.simulate import load_inputs, simulate
from tests.hw.engine.micro_runs import BLOCK, LENGTHS, MicroRun, random_drafter
from tests.hw.engine.test_faults import broken, failing
from tests.hw.engine.test_real_run import SAME_IN_BOTH
from tests.hw.target.micro_models import EXPERTS, TOP_K

OPTIONS = DeviceOptions("disk", 1)


@pytest.fixture(scope="module")
def qwen(tmp_path_factory) -> MicroRun:
    return MicroRun("qwen3_moe", tmp_path_factory.mktemp("qwen"))


@pytest.fixture(scope="module")
def gpt_oss(tmp_path_factory) -> MicroRun:
    return MicroRun("gpt_oss", tmp_path_factory.mktemp("gpt_oss"))


def wanted(micro: MicroRun) -> dict[int, list[int]]:
    """Return what plain decode says, made without the engine."""
    return {number: text[len(micro.prompts[number]) :] for number, text in enumerate(micro.texts)}


def assert_lossless(micro: MicroRun, run: ModelRun) -> None:
    assert run.outputs == wanted(micro)
    assert not run.real.failures


@pytest.mark.parametrize("baseline", ["B0", "B1", "B2", "OURS"])
def test_an_offloaded_run_emits_what_plain_decode_does(gpt_oss, baseline) -> None:
    run = gpt_oss.run(baseline=baseline)
    assert_lossless(gpt_oss, run)
    metrics = run.real.metrics
    assert metrics["moved_bytes"] > 0
    assert metrics["expert_cache_hit_rate"] < 0.9
    if baseline == "B0":
        assert metrics["acceptance_length_a"] == 1
    else:
        assert 1.5 < metrics["acceptance_length_a"] < BLOCK


@pytest.mark.parametrize("fields", [
    {"slots": 1, "staging_slots": 1, "concurrency": 3},
    {"eviction": "aged-lfu", "prefetch": "cross-round", "predictor": "previous-rows"},
    {"device": "paced-memory", "lookahead": 2, "issue": "batched"},
    {"baseline": "B3", "concurrency": 3},
    {"block_size": 3, "rate": 50.0, "predictor": "none"},
], ids=str)  # fmt: skip
def test_so_does_any_setting(qwen, fields) -> None:
    assert_lossless(qwen, qwen.run(**fields))


def logits_of_run(micro, monkeypatch, **fields) -> list[torch.Tensor]:
    from hideaway.hw.engine.model_work import ModelWork

    seen = []
    forward = ModelWork.forward

    def keep(work, rows, at_experts):
        forward(work, rows, at_experts)
        seen.append(work.logits.clone())

    monkeypatch.setattr(ModelWork, "forward", keep)
    micro.run(**fields)
    monkeypatch.undo()
    return seen


def test_offloaded_equals_resident_bit_for_bit(qwen, monkeypatch) -> None:
    resident = logits_of_run(qwen, monkeypatch, baseline="B3", invariant=False)
    offloaded = logits_of_run(qwen, monkeypatch, baseline="B1", slots=2, invariant=False)
    assert len(offloaded) == len(resident) > 10
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(offloaded, resident, strict=True))


def test_a_preempted_request_is_computed_again_and_loses_nothing(qwen) -> None:
    run = qwen.run(concurrency=3, kv_tokens=50)
    assert run.real.metrics["preemptions"] > 0
    assert_lossless(qwen, run)
    with pytest.raises(InputError, match="needs KV memory for 44 tokens"):
        qwen.run(kv_tokens=40)


def test_the_log_of_a_run_replays_and_its_timeline_is_whole(qwen) -> None:
    log, timeline = EventLog(), Timeline()
    run = qwen.run(invariant=False, log=log, timeline=timeline)
    truncated = run.real.truncated
    fresh = make_scheduler(truncated.scenario, truncated.inputs, BASELINES["OURS"], run.real.memory)
    assert first_difference(log, fresh) is None
    kinds = {record.kind for record in timeline}
    assert {"draft", "route", "attention", "experts", "head", "copy", "verify", "prefill"} <= kinds


def test_what_was_recorded_can_be_simulated(qwen, tmp_path) -> None:
    run = qwen.run(baseline="B1", invariant=False)
    run.recorder.write_routing(tmp_path / "routing.npz")
    run.recorder.write_acceptance(tmp_path / "acceptance.csv")
    layers = len(qwen.target.moe_layers)
    decoded = read_routing_file(tmp_path / "routing.npz")
    assert (decoded.num_layers, decoded.num_experts, decoded.top_k) == (layers, EXPERTS, TOP_K)
    assert decoded.seq_lengths.tolist() == [outputs - 1 for _, outputs in LENGTHS]
    with np.load(tmp_path / "routing.npz") as arrays:
        assert arrays["seq_lengths"].tolist() == [inputs + outputs - 1 for inputs, outputs in LENGTHS]
        rejected = arrays["rejected_expert_ids"]
        assert rejected.shape[1:] == (layers, TOP_K)
        assert rejected.shape[0] == arrays["rejected_distances"].size > 0
        assert (arrays["rejected_rows"] >= 1).all()
    rows = list(csv.DictReader((tmp_path / "acceptance.csv").read_text().splitlines()))
    assert len(rows) == run.real.metrics["rounds"]
    replayed = load_acceptance(f"replay:{tmp_path / 'acceptance.csv'}")
    assert replayed.mean_length(BLOCK) >= run.real.metrics["acceptance_length_a"]


@pytest.mark.parametrize("fields", [
    {"baseline": "B0", "concurrency": 3},
    {"baseline": "OURS", "concurrency": 2},
    {"baseline": "B1", "concurrency": 3, "kv_tokens": 50},
], ids=str)  # fmt: skip
def test_a_recorded_run_is_simulated_row_by_row(qwen, tmp_path, fields) -> None:
    """The simulator reads, in as many forwards and rounds, exactly the experts that the real run read."""
    run = qwen.run(**fields)
    run.recorder.write_routing(tmp_path / "routing.npz")
    scenario = replace(
        run.real.truncated.scenario, routing=str(tmp_path / "routing.npz"), rejected_routing="recorded"
    )
    inputs = replace(load_inputs(scenario), costs=run.real.truncated.inputs.costs)
    assert inputs.requests == run.real.truncated.inputs.requests
    simulated = simulate(scenario, inputs=inputs).metrics
    for name in (*SAME_IN_BOTH, "preemptions"):
        assert simulated[name] == pytest.approx(run.real.metrics[name], rel=1e-12), name
    with pytest.raises(InputError, match="lower --requests"):
        load_inputs(replace(scenario, requests=4))
    if fields["baseline"] != "B0":
        other = replace(scenario, block_size=3)
        with pytest.raises(InputError, match="simulate the block size and baseline that were recorded"):
            simulate(other, inputs=inputs)


def test_recorded_routing_is_that_of_the_plain_model(qwen, tmp_path) -> None:
    """Row by row what transformers' own routers choose on the text that came out."""
    run = qwen.run(baseline="OURS")
    run.recorder.write_routing(tmp_path / "routing.npz")
    with np.load(tmp_path / "routing.npz") as arrays:
        ids, lengths = arrays["expert_ids"], arrays["seq_lengths"]
    first = 0
    for text, length in zip(qwen.texts, lengths, strict=True):
        with torch.inference_mode():
            tokens = torch.tensor([text[:length]])
            logits = qwen.plain(input_ids=tokens, use_cache=False, output_router_logits=True).router_logits
        for layer, scores in enumerate(logits):
            expected = scores.topk(TOP_K, dim=1).indices.sort(dim=1).values.numpy()
            np.testing.assert_array_equal(ids[first : first + length, layer], expected)
        first += length


def test_a_dflash_drafter_drafts_for_the_target(qwen, tmp_path) -> None:
    folder = random_drafter(tmp_path, layers=(0, 2))
    loaded = load_drafter(folder)
    features = qwen.with_features(loaded.config.target_layer_ids)
    maker = dflash_maker(loaded, features.target, BLOCK)
    run = features.run(make_drafter=maker, concurrency=3)
    assert run.outputs == wanted(qwen)
    assert run.real.metrics["draft_seconds"] > 0
    with pytest.raises(InputError, match="block_size is 9 but the drafter drafts blocks of 2 to 8 rows"):
        dflash_maker(loaded, features.target, 9)


def test_drafts_are_those_of_the_drafter_on_the_plain_models_states(qwen, tmp_path, monkeypatch) -> None:
    """Every draft of a run equals the drafter's parallel forward over transformers' own hidden states of the text."""
    from hideaway.hw.engine.token_book import TokenBook

    loaded = load_drafter(random_drafter(tmp_path, layers=(0, 2)))
    features = qwen.with_features(loaded.config.target_layer_ids)
    drafted = []
    propose = TokenBook.propose

    def keep(book, seq_id, drafts):
        drafted.append((seq_id, len(book._tokens[seq_id]) - 1, list(drafts)))
        propose(book, seq_id, drafts)

    monkeypatch.setattr(TokenBook, "propose", keep)
    maker = dflash_maker(loaded, features.target, BLOCK)
    features.run(make_drafter=maker, concurrency=2, count=2, block_size=BLOCK)
    assert len(drafted) > 10
    for seq_id, anchor, drafts in drafted:
        tokens = torch.tensor([qwen.texts[seq_id]])
        with torch.inference_mode():
            states = qwen.plain(input_ids=tokens, use_cache=False, output_hidden_states=True).hidden_states
            context = loaded.project(torch.cat([states[1], states[3]], dim=2))
            blocks = loaded.embed_blocks(tokens[:, anchor : anchor + 1], qwen.target.embedding, BLOCK)
            hidden = loaded(
                blocks,
                context,
                anchor_positions=torch.tensor([[anchor]]),
                context_positions=torch.arange(tokens.shape[1])[None],
            )
            expected = loaded.logits(hidden[0, 0, 1:], qwen.target.logits).argmax(dim=-1)
        assert drafts == expected.tolist()


def test_sampling_depends_on_the_seed_and_on_nothing_else(qwen, tmp_path) -> None:
    loaded = load_drafter(random_drafter(tmp_path, layers=(0, 2)))
    features = qwen.with_features(loaded.config.target_layer_ids)
    maker = dflash_maker(loaded, features.target, BLOCK)
    sampled = [
        features.run(
            make_drafter=maker, temperature=1.0, block_size=2, count=2, concurrency=concurrency, seed=seed
        ).outputs
        for concurrency, seed in ((1, 1), (2, 1), (2, 2))
    ]
    assert sampled[0] == sampled[1] != sampled[2]
    assert sampled[0][0] != wanted(qwen)[0]


def test_a_transfer_that_fails_takes_down_only_those_who_wait_for_it(qwen) -> None:
    outage = failing(fails=lambda number, layer, expert: 10 <= number < 16)
    run = qwen.run(baseline="B1", concurrency=1, make_device=outage)
    assert len(run.real.failures) == 1
    assert "failed: layer " in run.real.failures[0]
    (failed,) = set(range(len(LENGTHS))) - set(run.outputs)
    assert run.outputs == {seq: text for seq, text in wanted(qwen).items() if seq != failed}
    with pytest.raises(HideawayError, match="every request failed; the first: request"):
        qwen.run(make_device=failing(fails=lambda number, layer, expert: True))


def test_the_others_of_a_batch_are_not_touched_by_a_failure(qwen, tmp_path) -> None:
    """An expert cannot be read; whoever shares forwards with its readers and never reads it gets all its tokens."""
    qwen.run(baseline="B0").recorder.write_routing(tmp_path / "routing.npz")
    with np.load(tmp_path / "routing.npz") as arrays:
        texts = np.split(arrays["expert_ids"], np.cumsum(arrays["seq_lengths"])[:-1])
    places = [(layer, expert) for layer in range(texts[0].shape[1]) for expert in range(EXPERTS)]
    readers = {
        (layer, expert): {seq for seq, ids in enumerate(texts) if (ids[:, layer] == expert).any()}
        for layer, expert in places
    }
    place = next(place for place, found in readers.items() if 0 < len(found) < len(texts))
    run = qwen.run(baseline="B0", concurrency=3, make_device=broken(*place))
    assert set(run.outputs) == set(range(len(texts))) - readers[place]
    assert all(run.outputs[seq] == wanted(qwen)[seq] for seq in run.outputs)
    assert len(run.real.failures) == len(readers[place])


def test_the_check_finds_the_truth_either_way(qwen, monkeypatch) -> None:
    setup = qwen.setup(baseline="OURS", count=2)
    fast = run_model(setup, qwen.store, OPTIONS)
    verdict = check_lossless(setup, qwen.store, OPTIONS, fast)
    assert verdict.passed
    assert verdict.equal
    assert verdict.tokens == sum(outputs for _, outputs in LENGTHS[:2]) == verdict.fast.rows
    assert 0 < verdict.gap_error < 0.1
    assert verdict.as_dict()["first_difference"] is None
    wrong = {seq: list(tokens) for seq, tokens in fast.outputs.items()}
    wrong[1][4] = (wrong[1][4] + 1) % 96
    lost = check_lossless(setup, qwen.store, OPTIONS, ModelRun(fast.real, wrong, fast.recorder))
    assert lost.equal
    assert not lost.passed
    assert lost.fast.differences >= 1
    from hideaway.hw.engine import generated

    accept = generated.accept_greedy

    def lenient(drafts, choices, num_drafts=None):
        """Keep a draft that the target did not choose."""
        outcome = accept(drafts, choices, num_drafts)
        return generated.Accepted((outcome.accepted + 1).clamp(max=drafts.shape[1]), outcome.own)

    monkeypatch.setattr(generated, "accept_greedy", lenient)
    broken_check = check_lossless(setup, qwen.store, OPTIONS, fast)
    assert not broken_check.equal
    assert broken_check.first_difference is not None
    assert broken_check.as_dict()["first_difference"]["request"] == broken_check.first_difference.seq_id


def test_an_interrupted_run_leaves_no_thread_and_the_model_as_it_was(qwen, monkeypatch) -> None:
    from hideaway.hw.engine.model_work import ModelWork

    calls = []

    def interrupt(work, layer, expert, slot):
        calls.append(expert)
        if len(calls) == 5:
            raise KeyboardInterrupt
        arrival(work, layer, expert, slot)

    arrival = ModelWork.arrival
    monkeypatch.setattr(ModelWork, "arrival", interrupt)
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        qwen.run()
    assert threading.active_count() == before
    assert not qwen.target.invariant
    monkeypatch.undo()
    assert_lossless(qwen, qwen.run(baseline="B0"))


@pytest.mark.parametrize(("fields", "words"), [
    ({"baseline": "OURS-oracle"}, "only knows after computing the layers before"),
    ({"router_exact_depth": 2}, "only knows after computing the layers before"),
    ({"slots": 8}, "nothing is offloaded"),
    ({"max_tokens": 40}, "request 2 needs 44 tokens with its block, but the model's positions reach 40"),
    ({"make_drafter": None, "baseline": "B1"}, "B1 drafts but there is no drafter"),
])  # fmt: skip
def test_what_no_real_model_can_do_is_one_sentence(qwen, fields, words) -> None:
    with pytest.raises(InputError, match=words):
        qwen.run(**fields)
