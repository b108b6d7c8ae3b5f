"""Checkpoints of each family, made by transformers itself, and what a broken one says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hideaway.hw.fp4.expert_weights import part_views, unpack_expert
from hideaway.hw.fp4.fp4_tensor import dequantise
from hideaway.hw.fp4.mxfp4 import quantise_mxfp4
from hideaway.hw.fp4.nvfp4 import quantise_nvfp4
from hideaway.hw.store.hf_experts import CheckpointExperts
from hideaway.hw.store.pack import pack_experts
from hideaway.sim.errors import InputError

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
from safetensors.torch import load_file, save_file  # noqa: E402

HIDDEN, INNER, EXPERTS, LAYERS = 64, 96, 4, 2
COMMON = {
    "vocab_size": 64,
    "hidden_size": HIDDEN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_experts_per_tok": 2,
    "head_dim": 16,
    "torch_dtype": "bfloat16",
}
CONFIGS: dict[str, dict[str, Any]] = {
    "qwen3_moe": {"num_experts": EXPERTS, "moe_intermediate_size": INNER, "intermediate_size": 128},
    "olmoe": {"num_experts": EXPERTS, "intermediate_size": INNER},
    "mixtral": {"num_local_experts": EXPERTS, "intermediate_size": INNER},
    "gpt_oss": {
        "num_local_experts": EXPERTS,
        "intermediate_size": INNER,
        "sliding_window": 8,
        "layer_types": ["sliding_attention", "full_attention"],
    },
}
QUANTISE = {"mxfp4": quantise_mxfp4, "nvfp4": quantise_nvfp4}


def random(*shape: int) -> Any:
    return (torch.randn(*shape) / shape[-1] ** 0.5).to(torch.bfloat16)


def write_checkpoint(folder: Path, family: str, tensors: dict[str, Any], shards: int = 1) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**COMMON, **CONFIGS[family], "model_type": family}))
    tensors = {**tensors, "model.embed_tokens.weight": random(64, HIDDEN)}
    if shards == 1:
        save_file(tensors, folder / "model.safetensors")
        return folder
    names = list(tensors)
    weight_map = {}
    for shard in range(shards):
        file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        save_file({name: tensors[name] for name in names[shard::shards]}, folder / file)
        weight_map.update(dict.fromkeys(names[shard::shards], file))
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": weight_map})
    )
    return folder


def separate(family: str) -> tuple[dict[str, Any], dict[tuple[int, int], list[np.ndarray]]]:
    """Return the tensors of a checkpoint of separate experts, and (gate, up, down) as float32."""
    home, words = ("block_sparse_moe", ("w1", "w3", "w2")) if family == "mixtral" else (
        "mlp", ("gate_proj", "up_proj", "down_proj"),
    )  # fmt: skip
    tensors, truth = {}, {}
    for layer in range(LAYERS):
        for expert in range(EXPERTS):
            matrices = [random(INNER, HIDDEN), random(INNER, HIDDEN), random(HIDDEN, INNER)]
            for word, matrix in zip(words, matrices, strict=True):
                tensors[f"model.layers.{layer}.{home}.experts.{expert}.{word}.weight"] = matrix
            truth[layer, expert] = [matrix.float().numpy() for matrix in matrices]
        tensors[f"model.layers.{layer}.{home}.gate.weight"] = random(EXPERTS, HIDDEN)
        tensors[f"model.layers.{layer}.mlp.shared_experts.gate_proj.weight"] = random(8, HIDDEN)
    return tensors, truth


@pytest.mark.parametrize("expert_format", ["mxfp4", "nvfp4"])
@pytest.mark.parametrize("family", ["qwen3_moe", "olmoe", "mixtral"])
def test_separate_experts_are_quantised_matrix_by_matrix(
    tmp_path: Path, family: str, expert_format: str
) -> None:
    tensors, truth = separate(family)
    folder = write_checkpoint(tmp_path / "model", family, tensors, shards=3)
    store = pack_experts(CheckpointExperts(folder, expert_format=expert_format), tmp_path / "store")
    assert store.description.swiglu == "plain"
    for (layer, expert), matrices in truth.items():
        weights = unpack_expert(store.description.layout, store.read(layer, expert, verify=True))
        for found, matrix in zip((weights.gate, weights.up, weights.down), matrices, strict=True):
            np.testing.assert_array_equal(found, dequantise(QUANTISE[expert_format](matrix)))


@pytest.mark.parametrize("family", list(CONFIGS))
def test_checkpoints_that_transformers_writes_are_packed_as_its_modules_hold_them(
    tmp_path: Path, family: str
) -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(3)
    config = transformers.AutoConfig.for_model(family, **{**COMMON, **CONFIGS[family]})
    model = transformers.AutoModelForCausalLM.from_config(config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    model.save_pretrained(tmp_path / "model")
    store = pack_experts(CheckpointExperts(tmp_path / "model"), tmp_path / "store")
    for layer in range(LAYERS):
        experts = model.model.layers[layer].mlp.experts
        for expert in range(EXPERTS):
            weights = unpack_expert(store.description.layout, store.read(layer, expert))
            gate_up = experts.gate_up_proj[expert].detach().float()
            down = experts.down_proj[expert].detach().float()
            if family == "gpt_oss":
                gate, up, down = gate_up[:, ::2].T, gate_up[:, 1::2].T, down.T
                bias = experts.gate_up_proj_bias[expert].detach().float().numpy()
                np.testing.assert_array_equal(weights.gate_bias, bias[::2])
                np.testing.assert_array_equal(weights.up_bias, bias[1::2])
                np.testing.assert_array_equal(
                    weights.down_bias, experts.down_proj_bias[expert].detach().float().numpy()
                )
            else:
                gate, up = gate_up.chunk(2)
            for found, matrix in [(weights.gate, gate), (weights.up, up), (weights.down, down)]:
                np.testing.assert_array_equal(found, dequantise(quantise_mxfp4(matrix.numpy())))


@pytest.mark.parametrize("shards", [1, 2])
def test_gpt_oss_in_mxfp4_is_taken_as_stored(tmp_path: Path, shards: int) -> None:
    rng = np.random.default_rng(1)
    tensors: dict[str, Any] = {}
    for layer in range(LAYERS):
        for name, out, columns in [("gate_up", 2 * INNER, HIDDEN), ("down", HIDDEN, INNER)]:
            stem = f"model.layers.{layer}.mlp.experts.{name}_proj"
            blocks = columns // 32
            tensors[f"{stem}_blocks"] = torch.from_numpy(
                rng.integers(0, 256, (EXPERTS, out, blocks, 16), dtype=np.uint8)
            )
            tensors[f"{stem}_scales"] = torch.from_numpy(
                rng.integers(115, 125, (EXPERTS, out, blocks)).astype(np.uint8)
            )
            tensors[f"{stem}_bias"] = random(EXPERTS, out)
    folder = write_checkpoint(tmp_path / "model", "gpt_oss", tensors, shards)
    store = pack_experts(CheckpointExperts(folder), tmp_path / "store")
    assert store.description.swiglu == "gpt-oss"
    packed = load_file(store.data_path)
    for layer in range(LAYERS):
        for expert in range(EXPERTS):
            parts = part_views(store.description.layout, store.read(layer, expert, verify=True))
            for name in ("gate_up", "down"):
                stem = f"model.layers.{layer}.mlp.experts.{name}_proj"
                for kind in ("blocks", "scales"):
                    np.testing.assert_array_equal(
                        parts[f"{name}_{kind}"], tensors[f"{stem}_{kind}"][expert].numpy()
                    )
                assert torch.equal(
                    packed[f"layers.{layer}.experts.{expert}.{name}_bias"], tensors[f"{stem}_bias"][expert]
                )
    with pytest.raises(InputError, match="are MXFP4 already and are not turned into nvfp4"):
        CheckpointExperts(folder, expert_format="nvfp4")


def test_only_the_first_layers_are_packed_where_asked(tmp_path: Path) -> None:
    tensors, _ = separate("qwen3_moe")
    folder = write_checkpoint(tmp_path / "model", "qwen3_moe", tensors)
    assert CheckpointExperts(folder, num_layers=1).description.layer_indices == (0,)


def test_a_broken_checkpoint_is_one_sentence(tmp_path: Path) -> None:
    tensors, _ = separate("qwen3_moe")
    name = "model.layers.1.mlp.experts.2.up_proj.weight"

    def packing(changed: dict[str, Any]) -> None:
        folder = write_checkpoint(tmp_path / "model", "qwen3_moe", changed)
        pack_experts(CheckpointExperts(folder), tmp_path / "store")

    without = {key: value for key, value in tensors.items() if key != name}
    with pytest.raises(
        InputError, match=r"layer 1 expert 2: the checkpoint has no tensor experts\.2\.up_proj\.weight"
    ):
        packing(without)
    with pytest.raises(
        InputError, match=r"layer 1 expert 2: up is mxfp4 of shape \(96, 32\) but the layout wants"
    ):
        packing({**tensors, name: random(INNER, 32)})
    with pytest.raises(
        InputError, match=r"layer 1 expert 2: .* is stored as F8_E4M3, which is not read; give .* in BF16"
    ):
        packing({**tensors, name: tensors[name].to(torch.float8_e4m3fn)})
    with pytest.raises(InputError, match="layer 1 expert 2: the weights hold NaN"):
        packing({**tensors, name: torch.full((INNER, HIDDEN), float("nan"))})
    with pytest.raises(InputError, match="has no experts of layer 1 though its config says so"):
        packing({key: value for key, value in tensors.items() if "layers.1." not in key})
    renamed = {key.replace("gate_proj", "gate_proj.qweight"): value for key, value in tensors.items()}
    with pytest.raises(InputError, match="are not those of gpt-oss, Qwen3-MoE, OLMoE or Mixtral"):
        packing(renamed)
    assert not (tmp_path / "store").exists()


def test_a_broken_folder_is_one_sentence(tmp_path: Path) -> None:
    tensors, _ = separate("qwen3_moe")
    with pytest.raises(InputError, match="is not a folder; give the folder of a Hugging Face checkpoint"):
        CheckpointExperts(tmp_path / "nothing")
    with pytest.raises(InputError, match="holds no safetensors files"):
        CheckpointExperts(tmp_path)
    folder = write_checkpoint(tmp_path / "model", "qwen3_moe", tensors, shards=2)
    shard = folder / "model-00002-of-00002.safetensors"
    whole = shard.read_bytes()
    shard.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(
        InputError, match=r"cannot read .*model-00002-of-00002.safetensors: .*; download it again"
    ):
        pack_experts(CheckpointExperts(folder), tmp_path / "store")
    shard.unlink()
    with pytest.raises(InputError, match=r"cannot read .*model-00002-of-00002.safetensors: .*No such file"):
        pack_experts(CheckpointExperts(folder), tmp_path / "store")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"x": "../../secret.safetensors"}}))
    with pytest.raises(InputError, match="is not a safetensors file beside it"):
        CheckpointExperts(folder)
    index.write_text(json.dumps({"weight_map": 3}))
    with pytest.raises(InputError, match=r"weight_map in .* is 3 but must be a JSON object"):
        CheckpointExperts(folder)
    index.unlink()
    (folder / "config.json").unlink()
    with pytest.raises(InputError, match="cannot read model file"):
        CheckpointExperts(folder)
