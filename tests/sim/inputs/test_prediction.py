"""The stand-in predictor: moments of recall and precision, exactness at distance 0, and its presets."""

import math
from itertools import pairwise

import numpy as np
import pytest

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.prediction import DEFAULT_PRESET, PRESETS, RecallPredictor

NUM_GUESSES = 8000
Z = 4.0


def random_masks(num_experts, size, seed=1, count=NUM_GUESSES):
    rng = np.random.default_rng(seed)
    order = rng.permuted(np.tile(np.arange(num_experts), (count, 1)), axis=1)[:, :size]
    return [sum(1 << expert for expert in row) for row in order.tolist()]


def ratio_error(numerators, denominators):
    """Return the ratio of sums and its standard error, by the delta method."""
    numerators, denominators = np.array(numerators, float), np.array(denominators, float)
    ratio = numerators.sum() / denominators.sum()
    deviation = numerators - ratio * denominators
    return ratio, math.sqrt((deviation**2).sum()) / denominators.sum()


@pytest.mark.parametrize("num_experts", [32, 128, 256])
@pytest.mark.parametrize(
    ("recall", "precision"), [(0.9, 0.9), (0.6, 0.4), (0.8, 1.0), (1.0, 0.5), (0.0, 1.0)]
)
def test_recall_and_precision_have_the_stated_expectations(num_experts, recall, precision):
    predictor = RecallPredictor(num_experts, [0.5, recall], [0.5, precision], np.random.default_rng(2))
    truths = random_masks(num_experts, num_experts // 5)
    guesses = [predictor.predict(truth, 2) for truth in truths]
    right = [(truth & guess).bit_count() for truth, guess in zip(truths, guesses, strict=True)]
    found, error = ratio_error(right, [truth.bit_count() for truth in truths])
    # Pools are finite: a pool of 1021 masks of E bits has its own error of sqrt(r (1 - r) / (1021 E)).
    pool_error = math.sqrt(recall * (1 - recall) / (1021 * num_experts))
    assert abs(found - recall) <= Z * math.hypot(error, pool_error) + 1e-12
    if recall:
        found, error = ratio_error(right, [guess.bit_count() for guess in guesses])
        assert abs(found - precision) <= Z * math.hypot(error, pool_error) + 1e-12


def test_every_expert_is_equally_likely_to_be_missed_and_to_be_added():
    num_experts, truth = 64, (1 << 16) - 1
    predictor = RecallPredictor(num_experts, [0.75], [0.5], np.random.default_rng(4))
    guesses = np.array(
        [
            [guess >> expert & 1 for expert in range(num_experts)]
            for guess in (predictor.predict(truth, 1) for _ in range(4000))
        ]
    )
    shares = guesses.mean(axis=0)
    # 16 true kept at 0.75 give 12 right and as many wrong among 48.
    for expected, part in ((0.75, shares[:16]), (0.25, shares[16:])):
        assert abs(part - expected).max() < Z * math.sqrt(expected * (1 - expected) / 1021)


def test_distance_zero_is_exact_and_distances_beyond_the_curve_take_its_end():
    predictor = RecallPredictor(32, [1.0, 0.0], [1.0, 1.0], np.random.default_rng(0))
    assert predictor.predict(0b1011, 0) == 0b1011
    assert predictor.predict(0b1011, 1) == 0b1011
    assert predictor.predict(0b1011, 2) == 0
    assert predictor.predict(0b1011, 40) == 0


def test_guesses_stay_inside_the_experts_when_nearly_all_are_true():
    predictor = RecallPredictor(16, [0.9], [0.1], np.random.default_rng(0))
    full = (1 << 16) - 1
    for truth in (full, full ^ 1, 0):
        for _ in range(200):
            guess = predictor.predict(truth, 1)
            assert guess | full == full
    assert predictor.predict(0, 1) == 0


def test_the_same_generator_and_calls_give_the_same_guesses_whatever_distances_are_asked_first():
    one, two = (RecallPredictor(32, [0.8, 0.5], [0.8, 0.5], np.random.default_rng(7)) for _ in range(2))
    first = [one.predict(0xFF, 1 + step % 2) for step in range(100)]
    assert first == [two.predict(0xFF, 1 + step % 2) for step in range(100)]
    three = RecallPredictor(32, [0.8, 0.5], [0.8, 0.5], np.random.default_rng(7))
    three.predict(0xFF, 2)
    assert [three.predict(0xFF, 1 + step % 2) for step in range(1, 100)] == first[1:]


def test_presets_fall_from_the_published_figure_to_their_floor_and_cite():
    assert DEFAULT_PRESET in PRESETS
    curve = PRESETS["qwen3-30b-a3b"].recall_by_distance(48)
    assert curve[0] == 0.886
    assert 0.035 <= curve[0] - curve[1] <= 0.040
    assert curve[-1] == 0.433
    for preset in PRESETS.values():
        recalls = preset.recall_by_distance(94)
        assert len(recalls) == 94
        assert all(later <= earlier for earlier, later in pairwise(recalls))
        assert preset.precision_by_distance(94) == recalls
        assert any(place in preset.source for place in ("github.com/", "arXiv:", "AmanPriyanshu/"))


@pytest.mark.parametrize(
    ("recalls", "precisions", "message"),
    [
        ([], [], "0 recalls and 0 precisions"),
        ([0.5], [0.5, 0.5], "1 recalls and 2 precisions"),
        ([1.5], [0.5], "recall at distance 1 is 1.5"),
        ([0.5], [math.nan], "precision at distance 1 is nan"),
        ([0.5], [0.0], "precision at distance 1 is 0"),
    ],
)
def test_curves_out_of_range_are_refused(recalls, precisions, message):
    with pytest.raises(InputError, match=message):
        RecallPredictor(8, recalls, precisions, np.random.default_rng(0))


def test_a_predictor_needs_experts():
    with pytest.raises(InputError, match="0 experts"):
        RecallPredictor(0, [0.5], [0.5], np.random.default_rng(0))
