"""Planted cases whose recall is known, and figures counted again with sets."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

from hideaway.hw.route_recall.fitted import fit
from hideaway.hw.route_recall.guesses import BEFORE, guesses_of
from hideaway.hw.route_recall.measure import judge, mean_union
from hideaway.hw.route_recall.replay import ReplayCosts
from tests.hw.route_recall.watched import FEATURES, Watched, play_drafted, play_spoilt

COSTS = ReplayCosts(slots=4, expert_seconds=1e-5, dense_seconds=1e-5, experts_seconds=1e-5)
BYTES = 1000


def judged(played, seed=0):
    return judge(*played, COSTS, BYTES, np.random.default_rng(seed))


def curve_of(found, name):
    return next(curve for curve in found.curves if curve.predictor == name)


@pytest.fixture(scope="module")
def random_played(tmp_path_factory):
    return play_drafted(Watched("olmoe", tmp_path_factory.mktemp("random"), features=FEATURES))


@pytest.fixture(scope="module")
def found(random_played):
    return judged(random_played)


def ignore_inputs(model) -> None:
    """Give every layer's router biases only."""
    generator = torch.Generator().manual_seed(3)
    for layer in model.model.layers:
        layer.mlp.router.weight.data.zero_()
        drawn = torch.randn(layer.mlp.router.bias.shape, generator=generator)
        layer.mlp.router.bias.data = drawn.to(torch.bfloat16).float()


def add_nothing(model) -> None:
    """Make attention and experts add zero to the residual."""
    for layer in model.model.layers:
        layer.self_attn.o_proj.weight.data.zero_()
        layer.mlp.experts.down_proj.data.zero_()


def test_a_router_that_ignores_its_input_is_guessed_by_everyone(tmp_path) -> None:
    found = judged(play_spoilt(Watched("gpt_oss", tmp_path, ignore_inputs)))
    for curve in found.curves:
        assert curve.every_row.recall.value == 1.0, curve.predictor
        assert curve.every_union.precision.value == 1.0, curve.predictor
    assert found.union.value == 2.0
    overlaps = [
        found.rejected.overlap[name].value for name in ("recorded", "same-sequence", "other-sequence")
    ]
    assert overlaps == [1.0] * 3


def test_layers_that_add_nothing_make_stale_gates_exact_at_every_distance(tmp_path) -> None:
    found = judged(play_spoilt(Watched("olmoe", tmp_path, add_nothing)))
    for name in ("stale-gate", "late-gate", "embedding-gate"):
        curve = curve_of(found, name)
        assert len(curve.distances) == (3 if curve.before_verify else 2)
        assert [score.recall.value for score in curve.rows] == [1.0] * len(curve.rows), name
    assert curve_of(found, "previous-token").every_row.recall.value < 1.0


def test_a_stale_gate_is_not_exact_where_layers_add_something(found) -> None:
    assert curve_of(found, "stale-gate").rows[0].recall.value < 1.0
    exact = curve_of(found, "exact")
    assert {score.recall.value for score in (*exact.rows, *exact.unions)} == {1.0}


def test_recall_and_precision_are_those_counted_with_sets(random_played, found) -> None:
    calibration, played = random_played
    fitted = fit(calibration)
    counted: dict[tuple[str, int], list[int]] = {}
    for one in played.rounds:
        for guess in guesses_of(one, fitted, played.num_experts):
            for layer in range(guess.distance, played.num_layers):
                sums = counted.setdefault((guess.predictor, guess.distance or layer + 1), [0] * 6)
                named, read = set(), set()
                for row in range(played.block_size):
                    mine = set(np.flatnonzero(guess.experts[layer, row]).tolist())
                    true = set(one.ids[layer, row].tolist())
                    named |= mine
                    read |= true
                    for place, count in enumerate((len(mine & true), len(mine), len(true))):
                        sums[place] += count
                for place, count in enumerate((len(named & read), len(named), len(read))):
                    sums[3 + place] += count
    checked = 0
    for curve in found.curves:
        for distance, row, union in zip(curve.distances, curve.rows, curve.unions, strict=True):
            hits, size, need, union_hits, union_size, union_need = counted[curve.predictor, distance]
            assert row.recall.value == pytest.approx(hits / need, abs=1e-12)
            assert row.precision.value == pytest.approx(hits / size, abs=1e-12)
            assert union.recall.value == pytest.approx(union_hits / union_need, abs=1e-12)
            assert union.precision.value == pytest.approx(union_hits / union_size, abs=1e-12)
            assert row.recall.low <= row.recall.value <= row.recall.high
            checked += 1
    assert checked == len(counted) == 3 * (len(BEFORE) + 1) + 3 * 2


def test_the_same_seed_gives_the_same_result_and_another_other_surrogates(random_played, found) -> None:
    assert asdict(judged(random_played)) == asdict(found)
    other = judged(random_played, seed=1)
    assert (
        curve_of(other, "stale-gate").rows[0].recall.value
        == curve_of(found, "stale-gate").rows[0].recall.value
    )
    assert other.rejected.overlap["other-sequence"] != found.rejected.overlap["other-sequence"]


def test_everything_is_counted_once_a_round(random_played, found) -> None:
    _, played = random_played
    assert found.rounds == len(played.rounds)
    assert found.mean_kept.value == pytest.approx(np.mean([one.kept for one in played.rounds]))
    assert found.union.value == pytest.approx(mean_union(played))
    assert found.rejections[0] == 0
    assert list(found.rejections) == [
        sum(row >= one.kept for one in played.rounds) for row in range(played.block_size)
    ]
    assert {one.predictor for one in found.replay} == {
        "no guess",
        "exact",
        *(c.predictor for c in found.curves),
    }
