from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from hideaway.hw.draft.checkpoint import load_drafter, save_drafter
from hideaway.sim.errors import InputError
from tests.hw.draft.random_drafters import CONFIGS
from tests.hw.draft.test_reference import drafter_of

NAMES = {
    "fc.weight",
    "hidden_norm.weight",
    "norm.weight",
    *(
        f"layers.{layer}.{name}.weight"
        for layer in range(3)
        for name in (
            "input_layernorm",
            "post_attention_layernorm",
            *(f"self_attn.{part}" for part in ("q_proj", "k_proj", "v_proj", "o_proj", "q_norm", "k_norm")),
            *(f"mlp.{part}_proj" for part in ("gate", "up", "down")),
        )
    ),
}
"""The tensors of a published checkpoint of three layers without biases."""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["full"]))
    save_file(drafter_of("full").state_dict(), tmp_path / "model.safetensors")
    return tmp_path


def rewrite(folder, change):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


def test_a_checkpoint_in_the_published_layout_is_loaded(folder):
    assert set(load_file(folder / "model.safetensors")) == NAMES
    loaded, expected = load_drafter(folder).state_dict(), drafter_of("full").state_dict()
    assert all(torch.equal(loaded[name], expected[name]) for name in NAMES)


def test_names_after_model_and_stored_frequencies_are_read_too(folder):
    def change(tensors):
        for name in list(tensors):
            tensors[f"model.{name}"] = tensors.pop(name)
        tensors["model.rotary_emb.inv_freq"] = torch.ones(4)

    rewrite(folder, change)
    assert torch.equal(load_drafter(folder).fc.weight, drafter_of("full").fc.weight)


def test_a_loaded_drafter_has_the_dtype_and_no_gradients(folder):
    drafter = load_drafter(folder, dtype=torch.bfloat16)
    assert {tensor.dtype for tensor in drafter.parameters()} == {torch.bfloat16}
    assert not any(tensor.requires_grad for tensor in drafter.parameters())
    assert not drafter.training


@pytest.mark.parametrize("name", CONFIGS)
def test_a_saved_drafter_loads_again(name, tmp_path):
    drafter = drafter_of(name)
    save_drafter(tmp_path / "pair", drafter)
    again = load_drafter(tmp_path / "pair")
    assert again.config == drafter.config
    assert all(torch.equal(again.state_dict()[key], value) for key, value in drafter.state_dict().items())
    assert sorted(path.name for path in (tmp_path / "pair").iterdir()) == ["config.json", "model.safetensors"]
    assert json.loads((tmp_path / "pair" / "config.json").read_text())["dtype"] == "float32"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop("fc.weight"), "lacks the tensor fc.weight that its configuration calls for"),
        (
            lambda t: [t.pop(name) for name in list(t) if "layers.2" in name],
            "lacks the tensor layers.2.input_layernorm.weight and 10 more",
        ),
        (
            lambda t: t.update({"mask_embedding": torch.ones(3)}),
            "has the tensor mask_embedding, which no DFlash",
        ),
        (
            lambda t: t.update({"fc.weight": torch.ones(24, 48)}),
            r"fc.weight .* has the shape \[24, 48\] but its configuration calls for \[24, 72\]",
        ),
        (
            lambda t: t.update({"norm.weight": torch.ones(24, dtype=torch.int8)}),
            "norm.weight .* is stored as I8 but must be one of BF16, F16, F32",
        ),
    ],
)
def test_every_tensor_is_accounted_for(folder, change, message):
    rewrite(folder, change)
    with pytest.raises(InputError, match=message):
        load_drafter(folder)


def test_missing_files_are_refused(folder, tmp_path):
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match="holds no safetensors files"):
        load_drafter(folder)
    with pytest.raises(InputError, match="cannot read drafter configuration"):
        load_drafter(tmp_path / "absent")
