"""Made-up experts: a function of the seed alone, of every built-in shape, and computable."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hideaway.hw.fp4.expert_weights import unpack_expert
from hideaway.hw.store.pack import pack_experts
from hideaway.hw.store.synthetic import SyntheticExperts
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.models import builtin_model_names, load_model

SMALL_MODEL = """{
  "format": "hideaway-model", "version": 1, "name": "test/small", "source": "made up by a test",
  "hidden_size": 64, "vocab_size": 1000, "layer_kinds": ["full", "full", "full"],
  "grouped_attention": {"num_heads": 4, "num_kv_heads": 2, "head_dim": 16},
  "experts": {"count": 4, "top_k": 2, "intermediate_size": 96%s}, "stored": {"experts": "%s"}%s
}"""


def small_model(folder: Path, stored: str = "bf16", bias: bool = False, dense: str = "") -> str:
    path = folder / "model.json"
    path.write_text(SMALL_MODEL % (', "bias": true' if bias else "", stored, dense))
    return str(path)


def test_the_same_seed_gives_the_same_bytes_whatever_the_workers(tmp_path: Path) -> None:
    model = small_model(tmp_path)
    stores = {}
    for name, seed, workers in [("one", 5, 1), ("two", 5, 3), ("other", 6, 1)]:
        pack_experts(SyntheticExperts(model, seed=seed), tmp_path / name, workers=workers)
        stores[name] = (tmp_path / name / "experts.safetensors").read_bytes()
    assert stores["one"] == stores["two"]
    assert stores["one"] != stores["other"]


def test_every_expert_differs_and_a_layer_does_not_depend_on_how_many_there_are(tmp_path: Path) -> None:
    model = small_model(tmp_path)
    all_layers, one_layer = SyntheticExperts(model, seed=1), SyntheticExperts(model, num_layers=1, seed=1)
    assert one_layer.description.num_layers == 1
    blobs = {all_layers.expert(layer, expert).tobytes() for layer in range(3) for expert in range(4)}
    assert len(blobs) == 12
    np.testing.assert_array_equal(one_layer.expert(0, 3), all_layers.expert(0, 3))


@pytest.mark.parametrize("expert_format", ["mxfp4", "nvfp4"])
@pytest.mark.parametrize("bias", [False, True])
def test_weights_have_the_size_of_trained_ones(tmp_path: Path, expert_format: str, bias: bool) -> None:
    source = SyntheticExperts(small_model(tmp_path, bias=bias), seed=1, expert_format=expert_format)
    store = pack_experts(source, tmp_path / "store")
    assert store.description.swiglu == ("gpt-oss" if bias else "plain")
    for expert in range(4):
        weights = unpack_expert(store.description.layout, store.read(2, expert, verify=True))
        for matrix, columns in [(weights.gate, 64), (weights.up, 64), (weights.down, 96)]:
            assert np.isfinite(matrix).all()
            rms = float(np.sqrt((matrix**2).mean())) * columns**0.5
            assert 0.3 < rms < 3.0  # a factor of two either way comes from scales that are powers of two


@pytest.mark.parametrize("name", builtin_model_names())
def test_every_built_in_shape_has_the_bytes_that_the_model_says(name: str) -> None:
    source = SyntheticExperts(name, num_layers=1, seed=1)
    spec = load_model(name, expert_format=source.description.expert_format)
    assert source.description.expert_bytes == spec.expert_bytes
    assert source.description.layout.expert_bytes == spec.expert_bytes
    assert source.description.stride_bytes - spec.expert_bytes in range(4096)
    assert source.description.num_experts == spec.num_experts


def test_dense_layers_are_skipped(tmp_path: Path) -> None:
    dense = ', "dense_layers": {"indices": [0], "intermediate_size": 128}'
    source = SyntheticExperts(small_model(tmp_path, dense=dense), seed=1)
    assert source.description.layer_indices == (1, 2)


def test_what_a_model_does_not_have_is_refused(tmp_path: Path) -> None:
    model = small_model(tmp_path)
    with pytest.raises(InputError, match="layers is 4 but test/small has 3 layers with routed experts"):
        SyntheticExperts(model, num_layers=4, seed=1)
    with pytest.raises(InputError, match="layers is 0"):
        SyntheticExperts(model, num_layers=0, seed=1)
    with pytest.raises(InputError, match="seed is -1"):
        SyntheticExperts(model, seed=-1)
    with pytest.raises(InputError, match="there is no model"):
        SyntheticExperts("gpt-oss-21b", seed=1)


def test_a_source_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    model = small_model(tmp_path)

    class Failing(SyntheticExperts):
        def expert(self, layer: int, expert: int) -> np.ndarray:
            if (layer, expert) == (1, 2):
                raise InputError("no such expert")
            return super().expert(layer, expert)

    with pytest.raises(InputError, match="no such expert"):
        pack_experts(Failing(model, seed=1), tmp_path / "store")
    assert [path.name for path in tmp_path.iterdir()] == ["model.json"]
