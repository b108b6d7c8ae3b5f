"""Order statistics of the median against scipy and by coverage; warm-up that ends when medians agree."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from hideaway.hw.microbenchmarks.stopping import (
    Effort,
    WarmUp,
    has_converged,
    interval_ranks,
    median_interval,
    relative_half_width,
)


@pytest.mark.parametrize("count", [6, 7, 12, 40, 155, 400])
def test_ranks_hold_the_confidence_and_the_next_narrower_ones_do_not(count) -> None:
    low, high = interval_ranks(count)
    assert high == count - 1 - low
    assert 1 - 2 * binom.cdf(low, count, 0.5) >= 0.95
    assert 1 - 2 * binom.cdf(low + 1, count, 0.5) < 0.95


def test_fewer_than_six_samples_have_no_interval() -> None:
    assert interval_ranks(5) is None
    assert median_interval([1.0] * 5) is None
    assert relative_half_width([1.0] * 5) is None


def test_intervals_of_skewed_samples_hold_the_median_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(7)
    runs, inside = 2000, 0
    for _ in range(runs):
        low, high = median_interval(rng.lognormal(sigma=0.5, size=25).tolist())
        inside += low <= 1.0 <= high
    # 25 samples: the ranks hold 0.957; z = 4
    assert abs(inside / runs - 0.957) < 4 * (0.957 * 0.043 / runs) ** 0.5


def test_convergence_needs_both_samples_and_a_narrow_interval() -> None:
    effort = Effort(relative_width=0.05, fewest=10, most=100)
    assert not has_converged([1.0] * 9, effort)
    assert has_converged([1.0] * 10, effort)
    assert not has_converged([0.9, 1.1] * 10, effort)


def test_warm_up_ends_when_two_successive_medians_agree() -> None:
    warm_up = WarmUp(window=3, tolerance=0.1, most=30)
    for seconds in (9, 8, 7, 5, 5, 4, 3, 2, 2):
        warm_up.note(seconds)
        assert not warm_up.is_over
    for seconds in (2.1, 2.0, 50.0):
        warm_up.note(seconds)
    assert warm_up.is_over
    assert warm_up.runs == 12


def test_warm_up_of_what_never_settles_ends_at_the_cap() -> None:
    warm_up = WarmUp(window=1, most=7)
    for number in range(7):
        assert not warm_up.is_over
        warm_up.note(2.0**number)
    assert warm_up.is_over
