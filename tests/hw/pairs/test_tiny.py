"""The shipped pair: loads everywhere it should and is as good as its README says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from transformers import Qwen3MoeForCausalLM

from hideaway.hw.draft.checkpoint import load_drafter
from hideaway.hw.fp4.expert_weights import unpack_expert
from hideaway.hw.fp4.layouts import ExpertLayout
from hideaway.hw.pairs import DRAFTER, TARGET, pair_folder
from hideaway.hw.pairs.reference import load_reference_model, reference_state
from hideaway.hw.store.hf_experts import CheckpointExperts
from hideaway.hw.training.corpus import MASK
from hideaway.hw.training.draft_acceptance import acceptance_rates, measured_acceptance
from hideaway.hw.training.evaluate import held_out_loss
from hideaway.hw.training.generation import continuations
from hideaway.hw.training.measures import routing
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.acceptance.load import load_acceptance
from hideaway.sim.inputs.models.load import load_model
from hideaway.sim.inputs.routing.npz import read_routing_file

MAX_BYTES = 12_000_000
FOLDER = pair_folder("tiny")


@pytest.fixture(scope="module")
def model() -> Qwen3MoeForCausalLM:
    torch.set_num_threads(1)
    return load_reference_model(FOLDER / TARGET)


@pytest.fixture(scope="module")
def figures() -> dict[str, object]:
    return json.loads((FOLDER / "figures.json").read_text())


def test_the_pair_is_small_and_holds_what_it_should() -> None:
    files = {
        path.relative_to(FOLDER).as_posix(): path.stat().st_size
        for path in FOLDER.rglob("*")
        if path.is_file()
    }
    assert {"README.md", "figures.json", "target/config.json", "target/model.safetensors"} <= files.keys()
    assert {"drafter/config.json", "drafter/model.safetensors"} <= files.keys()
    assert sum(files.values()) <= MAX_BYTES


def test_an_unknown_pair_is_refused() -> None:
    with pytest.raises(InputError, match="there is no shipped pair 'large'; there is tiny"):
        pair_folder("large")


def test_loss_of_the_held_out_slice_is_the_published_one(
    model: Qwen3MoeForCausalLM, figures: dict[str, float]
) -> None:
    loss = held_out_loss(model, (FOLDER / "held-out.txt").read_bytes())
    assert loss == pytest.approx(figures["held_out_slice_nats_per_byte"], abs=1e-3)
    assert f"{figures['held_out_slice_nats_per_byte']:.3f}" in (FOLDER / "README.md").read_text()


def test_the_readme_has_the_measured_figures(figures: dict[str, dict[str, float]]) -> None:
    readme = (FOLDER / "README.md").read_text()
    assert f"{figures['validation_nats_per_byte']:.3f}" in readme
    for name, mean in figures["drafts_accepted"].items():
        assert re.search(rf"^\| {re.escape(name)} \| {mean:.2f} \|", readme, re.MULTILINE), name


def test_packed_experts_are_the_reference_models_to_the_bit() -> None:
    source = CheckpointExperts(FOLDER / TARGET)
    spec = load_model(str(FOLDER / TARGET))
    assert (spec.name, spec.expert_format) == ("hideaway/tiny", "mxfp4")
    layout = ExpertLayout.of(spec)
    state = reference_state(FOLDER / TARGET)
    for layer in range(source.description.num_layers):
        gate_up = state[f"model.layers.{layer}.mlp.experts.gate_up_proj"].numpy()
        down = state[f"model.layers.{layer}.mlp.experts.down_proj"].numpy()
        for expert in range(source.description.num_experts):
            weights = unpack_expert(layout, source.expert(layer, expert))
            assert np.array_equal(np.concatenate([weights.gate, weights.up]), gate_up[expert])
            assert np.array_equal(weights.down, down[expert])


def test_a_checkpoint_that_is_not_the_configs_is_refused(tmp_path: Path) -> None:
    config = json.loads((FOLDER / TARGET / "config.json").read_text())
    (tmp_path / "model.safetensors").write_bytes((FOLDER / TARGET / "model.safetensors").read_bytes())
    (tmp_path / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
    with pytest.raises(InputError, match="are not those of its config"):
        load_reference_model(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(config | {"model_type": "llama"}))
    with pytest.raises(InputError, match="is of model type 'llama'; give the folder of a qwen3_moe model"):
        load_reference_model(tmp_path)


def test_drafts_of_the_targets_own_text_are_accepted_about_as_often_as_published(
    model: Qwen3MoeForCausalLM, figures: dict[str, dict[str, float]]
) -> None:
    held_out = np.frombuffer((FOLDER / "held-out.txt").read_bytes(), np.uint8).astype(np.int64)
    prompts = torch.from_numpy(held_out[: 8 * 96].reshape(8, 96))
    texts = continuations(
        model,
        prompts,
        num_tokens=96,
        temperatures=torch.zeros(8),
        generator=torch.Generator().manual_seed(0),
    )
    found = measured_acceptance(
        load_drafter(FOLDER / DRAFTER),
        model,
        texts,
        first=96,
        temperature=0.0,
        generator=np.random.default_rng(0),
    )
    assert abs(found.mean - figures["drafts_accepted"]["greedy"]) < 1.5  # eight texts: they differ much


def test_the_drafters_head_and_mask_are_the_targets(model: Qwen3MoeForCausalLM) -> None:
    drafter = load_drafter(FOLDER / DRAFTER)
    assert drafter.config.mask_token_id == MASK < model.config.vocab_size
    assert drafter.config.block_size == 8
    text = torch.arange(40, 80)[None]
    rates = acceptance_rates(drafter, model, text, first=20, temperature=1.0)
    assert np.isfinite(rates).all()


@pytest.mark.parametrize("name", ["greedy", "0.6", "1.0"])
def test_acceptance_files_are_read_by_the_simulator(name: str, figures: dict[str, dict[str, float]]) -> None:
    acceptance = load_acceptance(f"vector:{FOLDER / f'acceptance-{name}.json'}")
    rates = np.array(json.loads((FOLDER / f"acceptance-{name}.json").read_text())["conditional"])
    assert len(rates) == 7
    assert rates.cumprod().sum() == pytest.approx(figures["drafts_accepted"][name], abs=1e-9)
    assert acceptance is not None


def test_the_recorded_routing_and_the_targets_use_the_experts_alike(model: Qwen3MoeForCausalLM) -> None:
    recorded = read_routing_file(FOLDER / "routing.npz")
    assert (recorded.num_layers, recorded.num_experts, recorded.top_k) == (4, 16, 2)
    held_out = np.frombuffer((FOLDER / "held-out.txt").read_bytes(), np.uint8).astype(np.int64)
    fresh = routing(model, torch.from_numpy(held_out).view(-1, 512))
    for layer in range(4):  # another text, so alike and not equal
        use = [np.bincount(trace.expert_ids[:, layer].ravel(), minlength=16) for trace in (recorded, fresh)]
        assert np.corrcoef(*use)[0, 1] > 0.7


def test_the_tokenizer_reads_bytes() -> None:
    tokenizer = Tokenizer.from_file(str(FOLDER / TARGET / "tokenizer.json"))
    assert tokenizer.encode("def f(é):\n").ids == list("def f(é):\n".encode())
