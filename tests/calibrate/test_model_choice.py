"""The form of a curve is found by how it foretells points left out."""

from __future__ import annotations

import numpy as np
import pytest

from hideaway.calibrate.model_choice import choose
from hideaway.calibrate.work import Datum, Work


def curve(features, seconds, noise=0.02, seed=0, samples=20):
    rng = np.random.default_rng(seed)
    return [
        Datum(
            curve="x",
            axes={},
            samples=tuple((true * np.exp(noise * rng.standard_normal(samples))).tolist()),
            work=Work({}),
            features=point,
        )
        for point, true in zip(features, seconds, strict=True)
    ]


SIZES = [2.0**power for power in range(14, 25)]
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
DENSE = [{"rows": float(rows), "bytes": 3e7, "flops": 3e7 * rows, "parts": 1.0} for rows in ROWS]


@pytest.mark.parametrize("seed", range(3))
def test_an_affine_link_keeps_the_cost_model(seed) -> None:
    data = curve([{"bytes": size} for size in SIZES], [1e-4 + size / 2e9 for size in SIZES], seed=seed)
    choice = choose("link", data, "sized")
    assert choice.chosen == choice.cost_model == "affine"
    errors = {trial.form: trial.median_error for trial in choice.trials}
    assert errors["affine"] < 0.02 < 0.3 < errors["constant"]


def test_a_link_that_is_faster_above_a_size_has_two_pieces() -> None:
    knot = 2.0**20
    seconds = [1e-4 + min(size, knot) / 5e8 + max(0.0, size - knot) / 8e9 for size in SIZES]
    assert choose("link", curve([{"bytes": size} for size in SIZES], seconds), "sized").chosen == "two pieces"


@pytest.mark.parametrize(
    ("share", "form"), [(0.0, "roofline"), (1.0, "affine"), (0.5, "partly hidden roofline")]
)
def test_dense_work_is_told_by_how_much_reading_and_computing_hide_each_other(share, form) -> None:
    times = [(point["bytes"] / 5e9, point["flops"] / 2.9e10) for point in DENSE]
    seconds = [2e-4 + max(pair) + share * min(pair) for pair in times]
    assert choose("attention", curve(DENSE, seconds, noise=0.01), "roofline").chosen == form


def test_calls_with_a_fixed_cost_are_affine_and_others_proportional() -> None:
    counts = [{"transfers": float(count)} for count in (1, 2, 4, 8, 16)]
    proportional = curve(counts, [5e-5 * point["transfers"] for point in counts])
    affine = curve(counts, [2e-4 + 2e-5 * point["transfers"] for point in counts])
    assert choose("issue", proportional, "counted").chosen == "proportional"
    assert choose("issue", affine, "counted").chosen == "affine"


def test_too_few_points_choose_nothing() -> None:
    choice = choose("link", curve([{"bytes": 1e6}, {"bytes": 2e6}], [1e-3, 2e-3]), "sized")
    assert choice.chosen is None
    assert all(trial.median_error is None for trial in choice.trials)
