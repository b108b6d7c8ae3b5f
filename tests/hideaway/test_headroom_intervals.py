"""Intervals of replications and of paired differences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.campaigns.paired import Estimate, estimate, paired_gain

SAMPLES = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20)


def test_interval_is_students_t_by_hand() -> None:
    # mean 2, s = 1, n = 3, t(0.975, 2) = 4.302653 (any table): half width 4.302653 / sqrt(3).
    found = estimate([1.0, 2.0, 3.0])
    assert found.mean == 2.0
    assert found.half_width == pytest.approx(4.302653 / 3**0.5, rel=1e-6)


def test_95_of_100_intervals_cover_the_mean() -> None:
    rng = np.random.default_rng(3)
    trials = 4000
    covered = sum(
        found.low <= 7.0 <= found.high for found in (estimate(rng.normal(7.0, 2.0, 5)) for _ in range(trials))
    )
    standard_error = (0.95 * 0.05 / trials) ** 0.5
    assert abs(covered / trials - 0.95) < 3 * standard_error  # z = 3


@given(SAMPLES)
def test_interval_holds_its_mean_and_equal_samples_give_a_point(samples: list[float]) -> None:
    found = estimate(samples)
    assert found.low <= found.mean <= found.high
    point = estimate([samples[0]] * len(samples))
    assert point.half_width <= 1e-9 * abs(samples[0])


@given(SAMPLES, st.floats(-1e3, 1e3))
def test_pairing_removes_what_both_share(samples: list[float], gain: float) -> None:
    found = paired_gain(samples, [sample + gain for sample in samples])
    assert found.mean == pytest.approx(gain, abs=1e-8)
    assert found.half_width < 1e-7


def test_scaling_by_a_negative_factor_keeps_the_ends_in_order() -> None:
    assert Estimate(2.0, 1.0, 3.0).scaled(-2.0) == Estimate(-4.0, -6.0, -2.0)


@pytest.mark.parametrize(
    ("value", "clear"),
    [(Estimate(1, 0.5, 1.5), True), (Estimate(-1, -2, -0.1), True), (Estimate(1, -1, 3), False)],
)
def test_clear_means_zero_is_outside(value: Estimate, clear: bool) -> None:
    assert value.clear is clear


def test_one_sample_has_no_interval() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        estimate([1.0])


def test_pairs_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        paired_gain([1.0, 2.0, 3.0], [1.0, 2.0])
