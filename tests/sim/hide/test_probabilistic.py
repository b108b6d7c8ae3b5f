"""Two probabilities: each against its closed form, and each blind to the other's cause."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.errors import InputError
from hideaway.sim.hide.probabilistic import draw_parameters, mean_hidden_probability, round_hidden_probability

Z = 4.0
"""Standard errors allowed between a seeded sample and its closed form: one false alarm in 16,000."""


def normal_cdf(z):
    return 0.5 * (1 + math.erf(z / math.sqrt(2)))


def test_round_probability_counts_slack_of_zero_as_hidden():
    result = round_hidden_probability([-1.0, 0.0, 1.0, 2.0])
    assert result.probability == 0.75
    assert result.num_samples == 4
    low, high = result.interval_95
    assert low < 0.75 < high


def test_exposed_quantiles_are_samples_by_nearest_rank():
    result = round_hidden_probability(-np.arange(1.0, 101.0))
    assert result.probability == 0.0
    assert (result.exposed_p50_seconds, result.exposed_p90_seconds, result.exposed_p99_seconds) == (
        50.0,
        90.0,
        99.0,
    )


@given(slack=st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=50), more=st.floats(0, 10))
def test_more_slack_never_lowers_the_probability_or_raises_the_exposed_quantiles(slack, more):
    before = round_hidden_probability(slack)
    after = round_hidden_probability(np.array(slack) + more)
    assert after.probability >= before.probability
    assert after.exposed_p99_seconds <= before.exposed_p99_seconds
    assert 0.0 <= before.interval_95[0] <= before.probability <= before.interval_95[1] <= 1.0


def test_mean_probability_of_a_normal_slack_is_the_normal_distribution_function():
    draws = 20_000
    result = mean_hidden_probability(
        lambda draw: draw["window"] - draw["fetch"],
        {"window": (10.0, 0.3), "fetch": (9.8, 0.4)},
        np.random.default_rng(1408),
        num_draws=draws,
    )
    expected = normal_cdf((10.0 - 9.8) / 0.5)
    assert abs(result.probability - expected) < Z * math.sqrt(expected * (1 - expected) / draws)


def test_mean_probability_ignores_process_variation_and_round_probability_ignores_calibration():
    generator = np.random.default_rng(7)
    round_slack = generator.normal(0.1, 1.0, 4000)
    rounds = round_hidden_probability(round_slack)
    mean = mean_hidden_probability(
        lambda draw: draw["window"] - draw["window"] + round_slack.mean(), {"window": (1.0, 0.0)}, generator
    )
    assert 0.4 < rounds.probability < 0.7
    assert mean.probability == 1.0
    assert mean.exposed_p99_seconds == 0.0


@pytest.mark.parametrize(("num_hidden", "num_rounds"), [(1, 10), (37, 50), (160, 200), (1999, 2000)])
def test_interval_ends_are_the_proportions_1_96_standard_errors_from_what_was_seen(num_hidden, num_rounds):
    slack = np.where(np.arange(num_rounds) < num_hidden, 1.0, -1.0)
    for end in round_hidden_probability(slack).interval_95:
        distance = abs(num_hidden / num_rounds - end)
        assert distance == pytest.approx(
            1.959963984540054 * math.sqrt(end * (1 - end) / num_rounds), rel=1e-9
        )


def test_draws_are_positive_repeatable_and_fixed_without_an_error():
    estimates = {"rate": (1.0, 1.0), "fixed": (2.0, 0.0)}
    first = draw_parameters(estimates, np.random.default_rng(5), num_draws=1000)
    again = draw_parameters(estimates, np.random.default_rng(5), num_draws=1000)
    assert np.all(first["rate"] > 0)
    assert np.array_equal(first["rate"], again["rate"])
    assert np.all(first["fixed"] == 2.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: round_hidden_probability([]), "0 samples"),
        (lambda: round_hidden_probability([float("nan")]), "perhaps NaN"),
        (
            lambda: draw_parameters({"x": (1.0, -1.0)}, np.random.default_rng(0), num_draws=3),
            "x is 1.0 with standard",
        ),
        (lambda: draw_parameters({}, np.random.default_rng(0), num_draws=0), "num_draws is 0"),
    ],
)
def test_bad_input_is_one_sentence(call, message):
    with pytest.raises(InputError, match=message):
        call()
