"""What the machine did meanwhile: steady, drifting, throttled for a while, with outlying samples."""

from __future__ import annotations

import numpy as np
import pytest

from hideaway.calibrate.calibration import calibrate
from hideaway.calibrate.drift import drift_of
from hideaway.calibrate.noise import noise_of
from hideaway.calibrate.work import Datum, Work
from hideaway.sim.inputs.profiles import load_profile
from tests.calibrate.planted import Planted, heavy_tailed, lognormal

BASE = load_profile("rtx-pro-6000")


def calibrated(**options):
    return calibrate(Planted().link().host().file(7, samples=30, **options), BASE, name="x", seed=1)


def test_a_steady_machine_is_not_flagged() -> None:
    made = calibrated()
    assert made.drift is not None
    assert not made.drift.drifted
    assert made.drift.low < 0.0 < made.drift.high
    assert made.drift.spells == ()
    assert made.drift.outliers == 0
    assert made.flags == ()


def test_a_drifting_clock_is_flagged_with_its_size() -> None:
    made = calibrated(level=lambda seconds: 1.0 + 0.2 * seconds / 100.0)
    assert made.drift is not None
    assert made.drift.drifted
    assert made.drift.change == pytest.approx(0.2, abs=0.04)
    assert any(
        "the machine drifted by +1" in flag or "the machine drifted by +2" in flag for flag in made.flags
    )


def test_a_throttled_spell_is_flagged_with_its_time_and_slowdown() -> None:
    made = calibrated(level=lambda seconds: np.where((seconds > 40.0) & (seconds < 60.0), 1.35, 1.0))
    assert made.drift is not None
    assert len(made.drift.spells) == 1
    spell = made.drift.spells[0]
    assert spell.from_seconds == pytest.approx(40.0, abs=4.0)
    assert spell.to_seconds == pytest.approx(60.0, abs=4.0)
    assert spell.slowdown == pytest.approx(0.35, abs=0.07)
    assert any("as under a throttled clock" in flag for flag in made.flags)


def test_a_throttled_fifth_of_the_run_hardly_moves_a_parameter() -> None:
    made = calibrated(level=lambda seconds: np.where((seconds > 40.0) & (seconds < 60.0), 1.35, 1.0))
    assert made.estimates["link.h2d_bytes_per_second"].value == pytest.approx(2.4e9, rel=0.05)


def test_outlying_samples_are_counted_and_flagged() -> None:
    def spoilt(rng, count):
        return lognormal(0.03)(rng, count) * np.where(rng.random(count) < 0.08, 5.0, 1.0)

    made = calibrated(noise=spoilt)
    assert made.drift is not None
    assert made.drift.outliers == pytest.approx(0.08 * made.drift.num_samples, rel=0.4)
    assert any("lie far off their point's level" in flag for flag in made.flags)


def test_samples_without_times_say_nothing_of_drift() -> None:
    datum = Datum(curve="x", axes={}, samples=tuple([1.0] * 100), work=Work({}), features={})
    assert drift_of([datum]) is None


def test_noise_is_described_by_spread_tail_and_correlation() -> None:
    rng = np.random.default_rng(4)

    def noise(samples):
        started = tuple(float(place) for place in range(len(samples)))
        datum = Datum(curve="x", axes={}, samples=tuple(samples), started=started, work=Work({}), features={})
        found = noise_of([datum])
        assert found is not None
        return found

    calm = noise(2.0 * lognormal(0.05)(rng, 4000))
    assert calm.relative_spread == pytest.approx(0.05, rel=0.06)
    assert calm.tail_ratio == pytest.approx(np.exp(2.326 * 0.05), rel=0.02)  # the normal's 99th percentile
    assert calm.mean_ratio == pytest.approx(np.exp(0.05**2 / 2), abs=0.005)
    assert abs(calm.lag_one_correlation) < 4 / 4000**0.5
    assert calm.samples == 4000
    assert noise(heavy_tailed(0.05)(rng, 4000)).tail_ratio > calm.tail_ratio + 0.05

    steps = np.empty(4000)
    steps[0] = 0.0
    for place in range(1, 4000):
        steps[place] = 0.7 * steps[place - 1] + rng.standard_normal()
    # the rank correlation of a normal pair: 6 / pi * asin(r / 2)
    wanted = 6 / np.pi * np.arcsin(0.7 / 2)
    assert noise(np.exp(0.05 * steps)).lag_one_correlation == pytest.approx(wanted, abs=0.05)


def test_a_point_of_two_samples_has_no_noise() -> None:
    datum = Datum(curve="x", axes={}, samples=(1.0, 2.0), work=Work({}), features={})
    assert noise_of([datum]) is None
