"""What is counted, on cases worked out by hand: chance, waste by position, rejected rows, time, fits, texts."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("torch")

from hideaway.hw.route_recall.fitted import RIDGES, best, fit
from hideaway.hw.route_recall.guesses import Guess
from hideaway.hw.route_recall.open_subject import split_text
from hideaway.hw.route_recall.positions import Waste, alone, waste_result
from hideaway.hw.route_recall.rejected import compare_rejected
from hideaway.hw.route_recall.replay import Replay, ReplayCosts
from hideaway.hw.route_recall.rounds import Played, Round, chosen
from hideaway.hw.route_recall.scores import Bootstrap, Tally, score
from hideaway.sim.errors import InputError

LAYERS, ROWS, TOP_K, EXPERTS = 2, 4, 2, 8
Z = 4.5


def random_ids(rng, *shape):
    keys = rng.random((*shape, EXPERTS))
    return np.argsort(keys, axis=-1)[..., :TOP_K].astype(np.int16)


def made_round(ids, *, sequence=0, position=0, kept=ROWS, embeddings=None):
    layers, rows, top_k = ids.shape
    nothing = np.full((1, layers, rows, top_k), -1, dtype=np.int16)
    if embeddings is None:
        embeddings = np.zeros((rows, 3), dtype=np.float32)
    return Round(
        sequence=sequence, position=position, kept=kept, ids=ids, stale=nothing, stale_after=nothing,
        embedded=ids, last=ids[:, 0], last_kept=ids[:, :1], embeddings=embeddings,
    )  # fmt: skip


def test_random_guesses_hit_as_often_as_chance_says() -> None:
    rng = np.random.default_rng(11)
    rounds = 600
    tally = Tally(3, LAYERS, ROWS)
    for number in range(rounds):
        guess = Guess("random", 0, chosen(random_ids(rng, LAYERS, ROWS), EXPERTS))
        tally.add(number % 3, guess, chosen(random_ids(rng, LAYERS, ROWS), EXPERTS))
    bootstrap = Bootstrap(3, rng)
    row = score(tally.rows.sum(axis=1), bootstrap)
    assert row.recall_by_chance == TOP_K / EXPERTS == row.precision_by_chance
    picks = rounds * LAYERS * ROWS * TOP_K
    # Hits of one row are hypergeometric, whose variance is below the binomial's.
    assert abs(row.recall.value - 0.25) < Z * math.sqrt(0.25 * 0.75 / picks)
    union = score(tally.unions.sum(axis=1), bootstrap)
    assert union.recall.value == pytest.approx(union.recall_by_chance, abs=Z * 0.5 / math.sqrt(picks / ROWS))
    by_row = score(tally.by_row[:, 2], bootstrap)
    assert by_row.recall_by_chance == 0.25


def test_layers_below_the_distance_are_not_judged() -> None:
    truth = chosen(np.zeros((3, ROWS, 1), dtype=np.int16), EXPERTS)
    guessed = truth.copy()
    guessed[:2] = False
    tally = Tally(1, 3, ROWS)
    tally.add(0, Guess("stale-gate", 2, guessed), truth)
    assert tally.rows[0].tolist() == [[0] * 4, [0] * 4, [ROWS, ROWS, ROWS, ROWS / EXPERTS]]


def test_intervals_come_from_whole_texts() -> None:
    """Two texts, one always right and one never: resampled texts give 0, 1/2 and 1 and nothing between."""
    estimate = Bootstrap(2, np.random.default_rng(0)).ratio(np.array([10.0, 0.0]), np.array([10.0, 10.0]))
    assert (estimate.value, estimate.low, estimate.high) == (0.5, 0.0, 1.0)
    alike = Bootstrap(2, np.random.default_rng(0)).ratio(np.array([5.0, 5.0]), np.array([10.0, 10.0]))
    assert (alike.low, alike.high) == (0.5, 0.5)
    assert Bootstrap(2, np.random.default_rng(0)).ratio(np.zeros(2), np.zeros(2)) is None


def test_waste_by_rejected_position_is_what_only_that_row_was_to_read() -> None:
    """One layer, rows name {0,1} {1,2} {3,4} {4,5}: alone are 0; 2; 3; 5. Two rows are kept, then all."""
    ids = np.array([[[0, 1], [1, 2], [3, 4], [4, 5]]])
    experts = chosen(ids, EXPERTS)
    assert alone(experts).tolist() == [1, 1, 1, 1]
    waste = Waste(1, ROWS, EXPERTS, 100)
    truth = chosen(np.array([[[0, 1], [1, 2], [1, 2], [0, 6]]]), EXPERTS)
    waste.add(0, Guess("x", 0, experts), truth, kept=2)
    waste.add(0, Guess("x", 0, experts), truth, kept=3)
    waste.add(0, Guess("x", 0, experts), truth, kept=4)
    found = waste_result(("x", 0), waste, Bootstrap(1, np.random.default_rng(0)))
    assert waste.rejections() == (0, 0, 1, 2)
    positions = [None if one is None else one.value for one in found.wasted_by_position]
    assert positions == [None, None, 100.0, 100.0]
    # Named {0..5}, read by any row {0,1,2,6}; kept rows read {0,1,2} twice and {0,1,2,6} once: 3, 4, 5 are in vain.
    assert found.coverage == pytest.approx(3 / 4)
    assert found.waste_ratio == pytest.approx(3 / 6)
    assert (found.predicted_bytes, found.wasted_bytes) == (600, 300)


def test_waste_by_position_adds_layers_up() -> None:
    ids = np.array([[[0], [0], [1], [2]], [[3], [4], [4], [5]]])
    assert alone(chosen(ids, EXPERTS)).tolist() == [1, 0, 1, 2]


def test_rejected_rows_are_held_against_what_truly_comes() -> None:
    """Rows 2 and 3 are rejected; the first is wholly different from the true row, the second half of it."""
    ids = np.array([[[0, 1], [0, 1], [4, 5], [2, 6]]], dtype=np.int16)
    true = {position: np.array([[0, 1]], dtype=np.int16) for position in range(5, 7)}
    true |= {7: np.array([[2, 3]], dtype=np.int16), 8: np.array([[2, 3]], dtype=np.int16)}
    other = {position: np.array([[7, 0]], dtype=np.int16) for position in range(20)}
    played = Played([made_round(ids, position=5, kept=2)], [true, other], EXPERTS)
    rng = np.random.default_rng(0)
    found = compare_rejected(played, Bootstrap(2, rng), rng)
    assert found.rounds == 1
    assert [one and one.value for one in found.by_offset["recorded"]] == [0.0, 0.5, None]
    assert found.overlap["recorded"].value == 0.25
    assert found.overlap["other-sequence"].value == 0.0
    assert found.by_chance == 0.25
    assert found.union["recorded"].value == 6  # 0 1 2 4 5 6
    assert found.union["true"].value == 4
    assert found.excess["true"].value == -2


def test_rounds_whose_truth_is_not_known_say_nothing_of_rejected_rows() -> None:
    ids = random_ids(np.random.default_rng(1), 1, ROWS)
    truth = {position: ids[:, 0] for position in range(7)}
    rounds = [made_round(ids, position=5, kept=2), made_round(ids, position=0, kept=ROWS)]
    rng = np.random.default_rng(0)
    found = compare_rejected(Played(rounds, [truth, truth], EXPERTS), Bootstrap(2, rng), rng)
    assert found.rounds == 0
    assert found.overlap["recorded"] is None


SECONDS = ReplayCosts(slots=2, expert_seconds=1.0, dense_seconds=0.5, experts_seconds=0.5)


@pytest.mark.parametrize(("predictor", "distance", "named", "waited", "timely", "ended"), [
    # dense .5, expert 0 until 1.5, experts until 2; the same again
    ("no guess", 0, [0, 0], 2.0, 0, 4.0),
    # both copied from 0 on: the first is in time at 1, half a second late, the second at 2 meets its visit at 2
    ("exact", 0, [1, 2], 0.5, 1, 2.5),
    # wanted at the first visit, behind its own copy: 1.5 to 2.5, when the second visit is
    ("stale-gate", 1, [0, 2], 1.0, 1, 3.0),
    # wanted when the first layer is done: 2 to 3, half a second late
    ("late-gate", 1, [0, 2], 1.5, 0, 3.5),
])  # fmt: skip
def test_guesses_come_in_time_or_not(predictor, distance, named, waited, timely, ended) -> None:
    replay = Replay(predictor, distance, SECONDS, num_layers=2, num_experts=4, top_k=1)
    replay.round(named, [1, 2], [1, 2])
    found = replay.result()
    assert replay.now == pytest.approx(ended)
    assert found.waiting_seconds == pytest.approx(waited)
    assert found.timely_coverage == pytest.approx(timely / 2)
    assert found.coverage == pytest.approx(sum(bool(mask) for mask in named) / 2)


def test_guesses_in_vain_move_bytes_and_delay_nothing_on_demand_longer_than_one_copy() -> None:
    replay = Replay("x", 0, SECONDS, num_layers=2, num_experts=4, top_k=1)
    replay.round([0b1100, 0b1100], [1, 2], [1, 2])
    found = replay.result()
    assert found.wasted_experts == found.moved_experts
    assert found.coverage == 0.0
    # The copy under way at the visit at .5 ends at 1, expert 0 comes at 2, experts are done at 2.5. A vain copy of the
    # second layer comes at 3, the next begins then, when the visit is: expert 1 comes at 5.
    assert found.waiting_seconds == pytest.approx(1.5 + 2.0)


def test_more_experts_than_slots_are_streamed_and_the_replay_ends() -> None:
    costs = ReplayCosts(slots=2, expert_seconds=1.0, dense_seconds=0.0, experts_seconds=0.0)
    replay = Replay("x", 1, costs, num_layers=2, num_experts=8, top_k=2)
    for _ in range(3):
        replay.round([0, 0xF0], [0xFF, 0x0F], [3, 3])
    # Of 8 and of 4 needed experts at most 2 are there before a visit.
    assert replay.now >= 3 * (6 + 2)
    assert replay.result().hit_rate < 4 / 12


def test_a_linear_map_finds_a_planted_rule() -> None:
    """The sign of input 0 decides between experts {0, 1} and {2, 3}; of input 1, in the other layer, likewise."""
    rng = np.random.default_rng(3)
    rounds = []
    for sequence in range(12):
        inputs = rng.choice([-1.0, 1.0], size=(ROWS, 3)).astype(np.float32)
        first = np.where(inputs[:, :1] > 0, [[0, 1]], [[2, 3]])
        second = np.where(inputs[:, 1:2] > 0, [[4, 5]], [[6, 7]])
        rounds.append(
            made_round(np.stack([first, second]).astype(np.int16), sequence=sequence, embeddings=inputs)
        )
    fitted = fit(Played(rounds, [{}] * 12, EXPERTS))
    assert fitted.token_map.ridge in RIDGES
    assert fitted.token_map.num_rows == 12 * ROWS
    guessed = fitted.token_map.top(np.array([[1.0, -1.0, 1.0], [-1.0, 1.0, -1.0]]), TOP_K)
    assert np.sort(guessed, axis=-1).tolist() == [[[0, 1], [2, 3]], [[6, 7], [4, 5]]]


@pytest.mark.parametrize("width", [3, 40])
def test_a_linear_map_is_ridge_regression_with_more_rows_and_with_more_inputs(width) -> None:
    """Against the least squares of the problem with sqrt(lambda) I stacked under the centred inputs."""
    rng = np.random.default_rng(7)
    rounds = [
        made_round(
            random_ids(rng, LAYERS, ROWS),
            sequence=4 * number,
            embeddings=rng.standard_normal((ROWS, width)).astype(np.float32),
        )
        for number in range(5)
    ]
    found = fit(Played(rounds, [{}] * 17, EXPERTS)).token_map
    inputs = np.concatenate([one.embeddings for one in rounds]).astype(np.float64)
    marks = np.concatenate([chosen(one.ids, EXPERTS).swapaxes(0, 1).reshape(ROWS, -1) for one in rounds])
    centred = inputs - inputs.mean(axis=0)
    penalty = found.ridge * (centred**2).sum() / width
    stacked = np.concatenate([centred, math.sqrt(penalty) * np.eye(width)])
    wanted = np.concatenate([marks - marks.mean(axis=0), np.zeros((width, marks.shape[1]))])
    expected = np.linalg.lstsq(stacked, wanted, rcond=None)[0]
    assert np.allclose(found.weights, expected, rtol=0, atol=1e-10)


def test_cooccurrence_is_the_frequency_of_what_followed() -> None:
    ids = np.array([[[0], [0], [0], [1]], [[5], [5], [6], [7]]], dtype=np.int16)
    one = made_round(ids)
    fitted = fit(Played([one, one], [{}, {}], EXPERTS))
    assert fitted.following[0, 1, 0].tolist() == pytest.approx([0, 0, 0, 0, 0, 2 / 3, 1 / 3, 0])
    assert fitted.following[0, 1, 1, 7] == 1.0
    assert fitted.following[0, 1, 4].tolist() == pytest.approx([0, 0, 0, 0, 0, 0.5, 0.25, 0.25])
    assert fitted.popular.tolist() == [[0], [5]]


def test_of_equal_scores_the_lower_expert_is_guessed() -> None:
    assert best(np.array([0.5, 1.0, 0.5, 0.5]), 3).tolist() == [1, 0, 2]


def test_texts_of_both_halves_do_not_overlap() -> None:
    calibration, judged = split_text(range(100), 4, 12)
    tokens = [token for text in (*calibration, *judged) for token in text]
    assert len(tokens) == len(set(tokens)) == 96
    assert max(max(text) for text in calibration) < 50 <= min(min(text) for text in judged)
    with pytest.raises(InputError, match="the text has 100 tokens but twice 5 texts of 12 tokens"):
        split_text(range(100), 5, 12)
