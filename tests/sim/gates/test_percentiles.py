"""Nearest-rank percentiles and medians."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.gates import median, percentiles_us

SAMPLES = st.lists(st.integers(0, 10**12), min_size=1, max_size=200)


def test_percentiles_of_one_to_a_hundred_microseconds():
    assert percentiles_us([i * 1000 for i in range(100, 0, -1)]) == {
        "p50": 50.0,
        "p90": 90.0,
        "p99": 99.0,
        "min": 1.0,
        "max": 100.0,
        "count": 100,
    }


def test_one_sample_is_every_percentile():
    assert percentiles_us([2500]) == {"p50": 2.5, "p90": 2.5, "p99": 2.5, "min": 2.5, "max": 2.5, "count": 1}


@given(SAMPLES)
def test_a_percentile_is_the_least_sample_that_enough_samples_do_not_exceed(samples):
    result = percentiles_us(samples)
    for percent in (50, 90, 99):
        enough = [s for s in samples if 100 * sum(other <= s for other in samples) >= percent * len(samples)]
        assert result[f"p{percent}"] == min(enough) / 1000
    assert result["count"] == len(samples)


@given(st.lists(st.floats(0, 1e9), min_size=1))
def test_median_agrees_with_the_standard_library(samples):
    assert median(samples) == statistics.median(samples)


@pytest.mark.parametrize("function", [percentiles_us, median])
@pytest.mark.parametrize(
    "samples", [[], (), None, 3, "123", [-1], [math.nan], [math.inf], [True], ["1"]], ids=str
)
def test_no_samples_or_a_bad_one_is_refused(function, samples):
    with pytest.raises(ValueError, match="samples"):
        function(samples)
