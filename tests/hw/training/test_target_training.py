"""A micro target: learns, is resumed to the bit, and is after export what it was."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from hideaway.hw.pairs.reference import load_reference_model
from hideaway.hw.training.experts import IMPLEMENTATION
from hideaway.hw.training.export import byte_tokenizer, export_target
from hideaway.hw.training.loop import Schedule
from hideaway.hw.training.target import TargetRecipe, target_loss, train_target
from hideaway.hw.training.target_model import (
    TargetShape,
    balance_loss,
    new_target,
    quantise_experts_in_forward,
)
from hideaway.sim.errors import InputError

SHAPE = TargetShape(
    hidden_size=64,
    num_layers=2,
    num_heads=2,
    num_kv_heads=1,
    head_dim=32,
    num_experts=4,
    expert_intermediate_size=32,
)
RECIPE = TargetRecipe(tokens_per_step=256, window=64, long_window=128)
TEXT = np.frombuffer(b"def f(x):\n    return x + 1\n\n\ndef g(y):\n    return f(y)\n" * 60, np.uint8).astype(
    np.int16
)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def schedule(steps: int, decay_steps: int = 10, checkpoint_steps: int = 10) -> Schedule:
    return Schedule(
        steps=steps,
        warmup_steps=5,
        decay_steps=decay_steps,
        peak_learning_rate=4e-3,
        checkpoint_steps=checkpoint_steps,
        report_steps=5,
    )


def test_loss_falls_and_the_exported_files_compute_the_same(tmp_path: Path) -> None:
    model = train_target(SHAPE, RECIPE, schedule(45), TEXT, tmp_path)
    losses = [json.loads(line)["loss"] for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert losses[0] > 4.5
    assert losses[-1] < 1.0

    dense = {name for name, _ in model.named_parameters() if "experts" not in name}
    with torch.no_grad():  # dense parts are stored in bfloat16: then nothing is left to differ
        for name, value in model.named_parameters():
            if name in dense:
                value.copy_(value.to(torch.bfloat16))
    export_target(model.state_dict(), SHAPE.config(), tmp_path / "target")
    text = torch.from_numpy(TEXT[:96].astype(np.int64))[None]
    with torch.no_grad():
        expected = model.eval()(input_ids=text).logits
    # Sums of the two experts of a row are added in another order by transformers' own loop.
    torch.testing.assert_close(
        load_reference_model(tmp_path / "target")(input_ids=text).logits, expected, rtol=0, atol=2e-5
    )
    same = load_reference_model(tmp_path / "target", experts=IMPLEMENTATION)
    assert torch.equal(same(input_ids=text).logits, expected)


def test_an_interrupted_run_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    whole = train_target(SHAPE, RECIPE, schedule(18), TEXT, tmp_path / "whole").state_dict()
    with pytest.raises(KeyboardInterrupt):
        _interrupted_at(14, tmp_path / "parts")
    resumed = train_target(SHAPE, RECIPE, schedule(18), TEXT, tmp_path / "parts").state_dict()
    assert all(torch.equal(value, resumed[name]) for name, value in whole.items())


def _interrupted_at(step: int, folder: Path) -> None:
    from hideaway.hw.training.loop import train

    folder.mkdir()
    model = new_target(SHAPE, RECIPE.seed)
    plan = schedule(18)

    def loss_of_step(number: int) -> torch.Tensor:
        if number == step:
            raise KeyboardInterrupt
        quantise_experts_in_forward(model, plan.decaying(number))
        length = RECIPE.window_of(number, plan)
        generator = np.random.default_rng([RECIPE.seed, number])
        starts = generator.integers(0, len(TEXT) - length, size=RECIPE.tokens_per_step // length)
        text = torch.from_numpy(TEXT[starts[:, None] + np.arange(length + 1)].astype(np.int64))
        return target_loss(model, text, SHAPE.top_k, RECIPE.balance_weight)

    train(model, loss_of_step, plan, folder)


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    train_target(SHAPE, RECIPE, schedule(16, checkpoint_steps=16), TEXT, tmp_path)
    with pytest.raises(InputError, match="is of another model than this one; give another folder"):
        train_target(TargetShape(num_layers=1), RECIPE, schedule(16), TEXT, tmp_path)


def test_the_rate_rises_stays_and_falls() -> None:
    plan = Schedule(steps=100, warmup_steps=10, decay_steps=20, peak_learning_rate=1.0)
    rates = [plan.learning_rate(step) for step in (1, 10, 11, 80, 81, 91, 100)]
    assert rates == pytest.approx([0.1, 1, 1, 1, 1, 0.5, 0.05])
    assert [plan.decaying(step) for step in (80, 81)] == [False, True]
    with pytest.raises(InputError, match="do not fit into 20 steps"):
        Schedule(steps=20, warmup_steps=10, decay_steps=20, peak_learning_rate=1.0)


def test_sorted_experts_equal_those_of_transformers_with_their_gradients() -> None:
    model = new_target(SHAPE, 3)
    text = torch.from_numpy(TEXT[:128].astype(np.int64)).view(2, 64)
    results = []
    for implementation in (IMPLEMENTATION, "eager"):
        model.config._experts_implementation = implementation
        model.zero_grad()
        loss = target_loss(model, text, SHAPE.top_k, 0.01)
        loss.backward()
        results.append(
            (loss.detach(), {name: value.grad.clone() for name, value in model.named_parameters()})
        )
    (ours, our_gradients), (theirs, their_gradients) = results
    torch.testing.assert_close(ours, theirs)
    for name, gradient in our_gradients.items():
        torch.testing.assert_close(gradient, their_gradients[name], rtol=1e-4, atol=1e-6)


def test_even_routing_has_balance_loss_one_and_a_single_expert_as_many_as_there_are() -> None:
    even = torch.eye(8).repeat(4, 1) * 1e-6
    assert balance_loss((even,), top_k=1).item() == pytest.approx(1.0, abs=1e-4)
    single = torch.zeros(32, 8)
    single[:, 5] = 50.0
    assert balance_loss((single, single), top_k=1).item() == pytest.approx(8.0, abs=1e-4)


def test_the_tokenizer_has_a_byte_a_token() -> None:
    tokenizer = byte_tokenizer()
    every = "".join(chr(code) for code in (*range(128), 0xE4, 0x20AC, 0x1F600))
    ids = tokenizer.encode(every).ids
    assert ids == list(every.encode())
    assert tokenizer.decode(ids) == every
    assert tokenizer.encode("a<|eos|>").ids == [97, 257]
