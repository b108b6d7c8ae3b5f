"""The frozen nominal inequality."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.contract import HideInequality, evaluate_hide_inequality

BASE = {
    "resident_fraction": 0.5,
    "saturation": 1.0,
    "total_expert_bytes": 14_000_000_000,
    "measured_h2d_bytes_per_second": 50_000_000_000,
    "draft_seconds": 0.04,
    "router_seconds": 0.01,
    "overlap_seconds": 0.10,
}
FIELDS = [*BASE, "fetch_seconds", "hide_window_seconds", "hidden"]


def test_worked_example_is_exact():
    result = evaluate_hide_inequality(**BASE)
    assert result.fetch_seconds == 0.14
    assert result.hide_window_seconds == 0.04 + 0.01 + 0.10
    assert result.hidden is True


def test_published_capture_is_exposed_by_its_published_margin():
    result = evaluate_hide_inequality(
        resident_fraction=0,
        saturation=1,
        total_expert_bytes=18_180_873_000,
        measured_h2d_bytes_per_second=57_553_826_518.35307,
        draft_seconds=0.127181882,
        router_seconds=0.141468786,
        overlap_seconds=0.017031083062521088,
    )
    assert result.hidden is False
    assert result.fetch_seconds == 0.31589338363457703
    assert result.hide_window_seconds == 0.28568175106252114
    assert result.hide_window_seconds - result.fetch_seconds == pytest.approx(-0.030211633, abs=5e-10)


def test_equality_counts_as_hidden():
    terms = BASE | {"draft_seconds": 0.14, "router_seconds": 0, "overlap_seconds": 0}
    assert evaluate_hide_inequality(**terms).hidden is True
    assert evaluate_hide_inequality(**terms | {"draft_seconds": math.nextafter(0.14, 0)}).hidden is False


def test_result_is_frozen_and_has_exactly_the_shared_fields():
    result = evaluate_hide_inequality(**BASE)
    assert [field.name for field in dataclasses.fields(HideInequality)] == FIELDS
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.hidden = False


def test_arguments_are_keywords_only():
    with pytest.raises(TypeError):
        evaluate_hide_inequality(*BASE.values())


@pytest.mark.parametrize("name", BASE)
@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf, True, "0.5", None, np.ones(2)], ids=str)
def test_an_impossible_term_is_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"^{name} is "):
        evaluate_hide_inequality(**BASE | {name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [("resident_fraction", 1.5), ("saturation", 1.01), ("measured_h2d_bytes_per_second", 0)],
)
def test_a_term_beyond_its_own_range_is_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"^{name} is "):
        evaluate_hide_inequality(**BASE | {name: value})


def test_terms_that_overflow_are_refused():
    with pytest.raises(ValueError, match="fetch_seconds overflows"):
        evaluate_hide_inequality(
            **BASE | {"total_expert_bytes": 1e308, "measured_h2d_bytes_per_second": 1e-300}
        )
    with pytest.raises(ValueError, match="hide_window_seconds overflows"):
        evaluate_hide_inequality(**BASE | {"draft_seconds": 1.7e308, "router_seconds": 1.7e308})


def test_numpy_scalars_become_plain_floats():
    result = evaluate_hide_inequality(**{name: np.float64(value) for name, value in BASE.items()})
    assert type(result.fetch_seconds) is float
    assert type(result.hidden) is bool


FRACTIONS = st.floats(0, 1)
SECONDS = st.floats(0, 10)


@given(
    r=FRACTIONS,
    s=FRACTIONS,
    total=st.integers(0, 10**12),
    rate=st.floats(1e8, 1e12),
    draft=SECONDS,
    router=SECONDS,
    overlap=SECONDS,
)
def test_both_sides_are_the_formula_and_power_of_two_units_change_nothing(
    r, s, total, rate, draft, router, overlap
):
    terms = {
        "resident_fraction": r,
        "saturation": s,
        "total_expert_bytes": total,
        "measured_h2d_bytes_per_second": rate,
        "draft_seconds": draft,
        "router_seconds": router,
        "overlap_seconds": overlap,
    }
    result = evaluate_hide_inequality(**terms)
    assert result.fetch_seconds == (1 - r) * s * total / rate
    assert result.hide_window_seconds == draft + router + overlap
    assert result.hidden == (result.fetch_seconds <= result.hide_window_seconds)
    rescaled = evaluate_hide_inequality(
        **terms | {"total_expert_bytes": total * 4.0, "measured_h2d_bytes_per_second": rate * 4.0}
    )
    assert rescaled.fetch_seconds == result.fetch_seconds
