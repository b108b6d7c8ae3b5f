"""A model cut to its first layers keeps their shapes and the proportions of the whole."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from hideaway.hw.engine import store_cache
from hideaway.hw.engine.run import check_store
from hideaway.hw.engine.truncation import cut_architecture, truncate
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.models import load_architecture, spec_from
from hideaway.sim.inputs.scenario import Scenario
from hideaway.sim.world.simulate import load_inputs
from tests.hw.engine.small_shape import scenario_in, store_in


@pytest.mark.parametrize("name", ["gpt-oss-20b", "Qwen3-30B-A3B"])
def test_a_cut_model_is_the_share_of_the_whole(name) -> None:
    whole = load_architecture(name)
    cut, full = spec_from(cut_architecture(whole, 6)), spec_from(whole)
    share = 6 / full.num_layers
    assert cut.num_layers == 6
    assert cut.expert_bytes == full.expert_bytes
    assert cut.dense_bytes_per_layer == full.dense_bytes_per_layer
    assert cut.head_bytes == pytest.approx(full.head_bytes * share, rel=1e-3)
    assert cut.dense_bytes == pytest.approx(full.dense_bytes * share, rel=1e-3)
    assert cut_architecture(whole, None) is whole


def test_dense_layers_before_the_last_kept_one_stay(tmp_path) -> None:
    truncated = truncate(scenario_in(tmp_path), 2)
    assert truncated.architecture.layer_kinds == ("full", "sliding", "full")
    assert truncated.architecture.dense_indices == (0,)
    assert truncated.share == 3 / 5
    assert truncated.inputs.model.num_layers == 2
    assert truncated.scenario.drafter_parameters == pytest.approx(12_000)


def test_the_routing_is_the_first_layers_of_the_whole_models(tmp_path) -> None:
    scenario = scenario_in(tmp_path)
    whole, cut = load_inputs(scenario), truncate(scenario, 2).inputs
    assert np.array_equal(cut.trace.expert_ids, whole.trace.expert_ids[:, :2])
    assert cut.requests == whole.requests
    assert "first 2 of 4 layers" in cut.trace.origin


def test_experts_can_be_asked_for_in_another_fp4_format_only() -> None:
    truncated = truncate(Scenario(model="gpt-oss-20b", expert_format="nvfp4"), 1)
    assert truncated.inputs.model.expert_format == "nvfp4"
    with pytest.raises(InputError, match="expert_format is 'bf16'; real experts are"):
        truncate(Scenario(model="gpt-oss-20b", expert_format="bf16"), 1)


def test_a_store_of_another_shape_is_refused(tmp_path) -> None:
    truncated = truncate(scenario_in(tmp_path), None)
    store = store_in(tmp_path, truncated)
    check_store(store, truncate(scenario_in(tmp_path), 2))
    with pytest.raises(InputError, match="has num_experts 8 but openai/gpt-oss-20b"):
        check_store(store, truncate(Scenario(model="gpt-oss-20b"), 1))


def test_a_cached_store_is_made_once(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    scenario = scenario_in(tmp_path)
    source = store_cache.synthetic_source(scenario.model, 2, None)
    made = store_cache.cached_store(source)
    stamp = made.data_path.stat().st_mtime_ns
    assert store_cache.cached_store(source).data_path.stat().st_mtime_ns == stamp
    assert made.path.is_relative_to(tmp_path / "cache" / "hideaway")
    assert store_cache.store_path(store_cache.synthetic_source(scenario.model, 3, None)) != made.path


def test_a_disk_without_room_is_refused_before_anything_is_made(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(store_cache.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 10**6})())
    source = store_cache.synthetic_source(scenario_in(tmp_path).model, None, None)
    with pytest.raises(InputError, match=r"but 0\.00 GB are free there"):
        store_cache.cached_store(source)
    assert not store_cache.store_path(source).exists()
