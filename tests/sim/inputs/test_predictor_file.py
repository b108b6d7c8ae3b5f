"""Measured predictors: files that round-trip, what is refused, and a simulation that reads one."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.prediction import PRESETS
from hideaway.sim.inputs.predictor_file import MeasuredPredictor, predictor_named, write_predictor
from hideaway.sim.inputs.routing.load import load_shipped_trace
from hideaway.sim.inputs.routing.union_table import UnionTable
from hideaway.sim.inputs.scenario import Scenario
from hideaway.sim.world.prediction import Foresight

GATE = MeasuredPredictor(
    name="stale-gate", recall_curve=(0.8, 0.6), precision_curve=(0.7, 0.5), source="measured on a test"
)


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "gate.json"
    write_predictor(file, GATE)
    return file


def test_what_is_written_is_read(path) -> None:
    assert predictor_named(str(path)) == GATE
    assert predictor_named("qwen3-30b-a3b") is PRESETS["qwen3-30b-a3b"]


def test_distances_beyond_the_measured_ones_take_the_last() -> None:
    assert GATE.recall_by_distance(4) == (0.8, 0.6, 0.6, 0.6)
    assert GATE.precision_by_distance(1) == (0.7,)


@pytest.mark.parametrize(("changes", "words"), [
    ({"format": "hideaway-profile"}, "format is 'hideaway-profile' but must be 'hideaway-predictor'"),
    ({"version": 2}, "version is 2 but must be 1"),
    ({"recall_by_distance": [0.8]}, "1 recalls and 2 precisions"),
    ({"recall_by_distance": [], "precision_by_distance": []}, "_by_distance is .* but must obey minItems"),
    ({"recall_by_distance": [0.8, 1.5]}, r"recall_by_distance\[1\] is 1.5"),
    ({"recall_by_distance": [0.8, "x"]}, r"recall_by_distance\[1\] is 'x'"),
    ({"recall_by_distance": [0.8, True]}, r"recall_by_distance\[1\] is True"),
    ({"recall_by_distance": 0.8}, "recall_by_distance is 0.8 but must be of type array"),
    ({"precision_by_distance": [0.5, 0.0]}, r"precision_by_distance\[1\] is 0.0"),
    ({"name": ""}, "name is ''"),
    ({"name": "a\nb"}, "printable text"),
    ({"source": None}, "source is None"),
    ({"more": 1}, "has the unknown key 'more'"),
])  # fmt: skip
def test_a_malformed_file_is_one_sentence_that_names_it(path, changes, words) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(InputError, match=words) as caught:
        predictor_named(str(path))
    assert "gate.json" in str(caught.value)


@pytest.mark.parametrize("key", ["name", "source", "recall_by_distance", "precision_by_distance"])
def test_a_missing_key_is_named(path, key) -> None:
    value = json.loads(path.read_text())
    del value[key]
    path.write_text(json.dumps(value))
    with pytest.raises(InputError, match=f"lacks the key '{key}'"):
        predictor_named(str(path))


def test_a_scenario_takes_names_and_files_and_nothing_else(path) -> None:
    assert Scenario(predictor=str(path)).predictor == str(path)
    for wrong in ("nope", "gate.toml", "LRU"):
        with pytest.raises(InputError, match=r"must be one of qwen3-30b-a3b, .* or a \.json file"):
            Scenario(predictor=wrong)
    with pytest.raises(InputError, match="cannot read predictor file"):
        predictor_named("nowhere.json")


def test_a_simulation_guesses_as_well_as_the_file_says(tmp_path) -> None:
    """A single row's guesses: the kept share of the true experts is the file's recall at each distance."""
    file = tmp_path / "half.json"
    write_predictor(
        file,
        MeasuredPredictor(name="x", recall_curve=(1.0, 0.25), precision_curve=(1.0, 1.0), source="a test"),
    )
    table = UnionTable(load_shipped_trace("gpt-oss-20b"))
    foresight = Foresight(
        Scenario(predictor=str(file)), table, top_k=4, block_size=1, lookahead=2, rng=np.random.default_rng(0)
    )
    hits = [0, 0]
    needed = [0b1111] * 3
    for _ in range(2000):
        ahead = foresight.ahead(needed, 1)[0]
        for place in range(2):
            hits[place] += (ahead[place] & 0b1111).bit_count()
    assert hits[0] == 8000
    assert abs(hits[1] / 8000 - 0.25) < 4.5 * (0.25 * 0.75 / 1021) ** 0.5
