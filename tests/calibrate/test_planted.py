"""Parameters planted through the cost model come back, and 95 % intervals hold them about 95 times in a hundred."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from hideaway.calibrate.bootstrap import bootstrap_covariance
from hideaway.calibrate.calibration import calibrate, families_of
from hideaway.calibrate.estimates import estimates_of
from hideaway.calibrate.family import fit_family
from hideaway.calibrate.point_samples import median_errors
from hideaway.calibrate.solver import solve
from hideaway.sim.inputs.profiles import DENSE_READ, OPTIONAL_PARAMETERS, PARAMETERS, load_profile
from tests.calibrate.planted import TRUTH, Planted, heavy_tailed, lognormal, true_profile

BASE = load_profile("rtx-pro-6000")
CHANCE = 1e-4
"""Of a false alarm, each side, for one parameter."""


def fits(file):
    return [fit_family(family, np.random.default_rng(0)) for family in families_of(file)]


def estimated(file):
    found = {}
    for fit in fits(file):
        for name, estimate in estimates_of(fit)[0].items():
            found.setdefault(name, estimate)
    return found


@pytest.fixture(scope="module")
def everything():
    return calibrate(Planted().everything().file(3), BASE, name="planted", seed=1)


def test_every_planted_parameter_comes_back_within_its_error(everything) -> None:
    for name, value in TRUTH.items():
        estimate = everything.estimates[name]
        assert estimate.standard_error is not None
        assert abs(estimate.value - value) < 4.0 * estimate.standard_error, name
        assert estimate.low < value < estimate.high or abs(estimate.value - value) < 0.1 * value
        assert not estimate.at_bound


def test_without_noise_they_come_back_exactly() -> None:
    found = estimated(Planted().everything().file(1, noise=lognormal(0.0)))
    for name, value in TRUTH.items():
        assert found[name].value == pytest.approx(value, rel=1e-3), name


def test_what_the_cost_model_foretells_is_what_was_planted(everything) -> None:
    for fit in everything.fits:
        for datum, fitted in zip(fit.family.data, fit.predicted, strict=True):
            assert fitted == pytest.approx(datum.observed, rel=0.1), datum.curve
    assert {
        choice.curve for choice in everything.choices if choice.chosen not in (None, choice.cost_model)
    } <= {
        "routed ids"  # planted without a slope in rows, and a constant has fewer unknowns
    }
    dense = [check for check in everything.checks if check.curve == "dense part of a visit"]
    assert len(dense) >= 3
    assert max(abs(check.error) for check in dense) < 0.1


def test_what_is_not_measured_keeps_value_and_origin_of_the_base_and_says_so(everything) -> None:
    expected = {
        "link.pageable_bytes_per_second", "link.pageable_issue_seconds", "memory.device_bytes",
        "memory.reserved_bytes", "compute.layer_launch_seconds_graph",
    }  # fmt: skip
    assert set(everything.kept) == expected
    for name in expected:
        kept, base = everything.profile.parameters[name], BASE.parameters[name]
        assert (kept.value, kept.origin, kept.standard_error) == (
            base.value,
            base.origin,
            base.standard_error,
        )
        assert kept.source.startswith(
            "not measured here (no series of the measurement exercises it), kept from"
        )
    measured = everything.profile.parameters.keys() - expected
    assert all(everything.profile.parameters[name].origin == "measured" for name in measured)


def test_a_machine_that_drives_no_disk_link_says_nothing_of_the_disk() -> None:
    made = calibrate(
        Planted().link().file(1, environment={"link": {"kind": "emulated link"}}), BASE, name="x", seed=1
    )
    assert "ssd.read_bytes_per_second" in made.kept
    assert "link.h2d_bytes_per_second" in made.estimates
    assert made.profile.value("ssd.read_bytes_per_second") == BASE.value("ssd.read_bytes_per_second")


def coverage(make, names, seeds, **options):
    """Return how often, of `seeds` files, the interval of each parameter holds the truth."""
    held = dict.fromkeys(names, 0)
    for seed in range(seeds):
        found = estimated(make.file(seed, **options))
        for name in names:
            held[name] += found[name].low <= make.profile.value(name) <= found[name].high
    return held


@pytest.mark.parametrize(
    ("part", "names"),
    [
        ("link", ("link.h2d_bytes_per_second", "link.latency_seconds", "issue.seconds_per_call",
                  "issue.batch_seconds", "issue.batch_seconds_per_transfer")),
        ("experts", ("memory.read_bytes_per_second", "compute.expert_flops_per_second",
                     "expert.launch_seconds", "expert.group_launch_seconds")),
        ("host", ("host.round_trip_seconds", "host.iteration_seconds")),
    ],
)  # fmt: skip
def test_intervals_cover_the_truth_as_often_as_they_say(part, names) -> None:
    make = Planted()
    getattr(make, part)()
    seeds = 60
    fewest, most = stats.binom.ppf([CHANCE, 1 - CHANCE], seeds, 0.95)
    for name, held in coverage(make, names, seeds, samples=20).items():
        assert fewest <= held <= most, f"{name}: {held} of {seeds}, not {fewest:g} to {most:g}"


def test_intervals_of_the_rooflines_cover_the_truth_as_often_as_they_say() -> None:
    names = (DENSE_READ, "compute.flops_per_second", "router.launch_seconds", "draft.launch_seconds")
    seeds = 20
    fewest, most = stats.binom.ppf([CHANCE, 1 - CHANCE], seeds, 0.95)
    for name, held in coverage(Planted().dense(), names, seeds, samples=20).items():
        assert fewest <= held <= most, f"{name}: {held} of {seeds}, not {fewest:g} to {most:g}"


def test_bootstrapped_errors_cover_the_truth_where_noise_has_heavy_tails() -> None:
    make = Planted().link()
    name, seeds, held = "issue.seconds_per_call", 20, 0
    for seed in range(seeds):
        file = make.file(seed, samples=30, noise=heavy_tailed(0.05))
        family = next(each for each in families_of(file) if each.name == "issue")
        data, design, unknowns = family.data, family.design, family.unknowns
        solved = solve(design, unknowns, family.observed, median_errors(data))
        covariance = bootstrap_covariance(data, design, unknowns, solved, np.random.default_rng(seed), 40)
        place = [unknown.name for unknown in unknowns].index(name)
        off = abs(solved.values[place] - make.profile.value(name))
        held += off <= 1.96 * covariance[place, place] ** 0.5
    fewest, most = stats.binom.ppf([CHANCE, 1 - CHANCE], seeds, 0.95)
    assert fewest <= held <= most


def test_normal_noise_takes_the_jacobian_and_heavy_tails_the_bootstrap() -> None:
    make = Planted().experts()
    assert {fit.method for fit in fits(make.file(1, samples=40))} == {"jacobian"}
    assert {fit.method for fit in fits(make.file(1, samples=40, noise=heavy_tailed(0.05)))} == {"bootstrap"}


def test_one_sample_in_twenty_gone_wild_hardly_moves_a_parameter() -> None:
    def spoilt(rng, count):
        return lognormal(0.03)(rng, count) * np.where(rng.random(count) < 0.05, 6.0, 1.0)

    for name, estimate in estimated(Planted().experts().file(5, noise=spoilt)).items():
        if name in ("memory.read_bytes_per_second", "compute.expert_flops_per_second"):
            assert estimate.value == pytest.approx(TRUTH[name], rel=0.05), name


def test_a_point_that_the_model_does_not_fit_widens_the_intervals() -> None:
    make = Planted().experts()
    sound = estimated(make.file(2))["compute.expert_flops_per_second"]
    rng = np.random.default_rng(0)
    make.series = [
        replace(
            series, samples_seconds=(series.samples_seconds[0] * float(np.exp(0.2 * rng.standard_normal())),)
        )
        for series in make.series
    ]
    bent = estimated(make.file(2))["compute.expert_flops_per_second"]
    assert bent.standard_error > 3 * sound.standard_error
    assert bent.residual_spread > 5 * sound.residual_spread


def test_a_slowdown_below_nothing_is_held_at_its_bound_and_flagged() -> None:
    make = Planted().contention()
    make.series = [
        replace(series, samples_seconds=(0.8 * series.samples_seconds[0],))
        if series.quantity == "copy" and series.axes["compute"] != "none"
        else series
        for series in make.series
    ]
    made = calibrate(make.file(1), BASE, name="x", seed=1)
    estimate = made.estimates["contention.link_slowdown"]
    assert estimate.at_bound
    assert estimate.value == 0.0
    assert any("contention.link_slowdown is at its bound" in flag for flag in made.flags)
    assert not made.estimates["contention.compute_slowdown"].at_bound


def test_a_launch_that_cannot_be_told_from_the_read_is_said_to_be_part_of_it() -> None:
    make = Planted().experts()
    make.series = [series for series in make.series if series.benchmark != "memory"]
    found = estimated(make.file(1, noise=lognormal(0.001)))
    assert found["expert.launch_seconds"].value == 0.0
    assert any("cannot be told from the rest" in note for note in found["expert.launch_seconds"].notes)
    size = make.model.expert_bytes
    whole = TRUTH["expert.launch_seconds"] + size / TRUTH["memory.read_bytes_per_second"]
    assert size / found["memory.read_bytes_per_second"].value == pytest.approx(whole, rel=0.02)


def test_a_rate_that_binds_no_point_stays_that_of_the_base() -> None:
    make = Planted(profile=true_profile(compute__flops_per_second=1e15)).dense()
    made = calibrate(make.file(1), BASE, name="x", seed=1)
    assert "compute.flops_per_second" in made.kept
    assert "bound by it" in made.kept["compute.flops_per_second"]
    assert made.profile.value("compute.flops_per_second") == BASE.value("compute.flops_per_second")


def test_work_that_is_partly_unhidden_is_found_out_and_stands_in_the_profile() -> None:
    make = Planted(profile=true_profile(compute__serial_share=0.7)).dense()
    made = calibrate(make.file(1), BASE, name="x", seed=1)
    assert made.profile.value("compute.serial_share") == pytest.approx(0.7, abs=0.05)
    assert "attention.flops_per_second" not in made.profile.parameters


def test_attention_with_rates_of_its_own_for_the_context_is_found_out_and_stands_in_the_profile() -> None:
    rates = {"attention.cache_read_bytes_per_second": 4e8, "attention.flops_per_second": 6e9}
    own = {name.replace(".", "__"): rate for name, rate in rates.items()}
    made = calibrate(Planted(profile=true_profile(**own)).dense().file(1), BASE, name="x", seed=1)
    for name, rate in rates.items():
        estimate = made.estimates[name]
        assert abs(estimate.value - rate) < 4 * estimate.standard_error
        assert estimate.value == pytest.approx(rate, rel=0.1)
    assert "compute.serial_share" not in made.profile.parameters
    attention = next(choice for choice in made.choices if choice.curve == "attention")
    assert attention.chosen == "context apart"
    assert max(abs(check.error) for check in made.checks if check.curve == "dense part of a visit") < 0.1


def test_a_plain_roofline_needs_no_optional_parameter_but_its_own_read_rate(everything) -> None:
    assert set(everything.profile.parameters) - set(PARAMETERS) == {DENSE_READ}


def test_parameters_of_a_profile_are_those_that_the_cost_model_knows(everything) -> None:
    assert set(everything.profile.parameters) <= set(PARAMETERS) | set(OPTIONAL_PARAMETERS)
    assert set(PARAMETERS) <= set(everything.profile.parameters)
