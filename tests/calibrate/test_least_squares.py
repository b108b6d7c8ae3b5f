"""The fitting core against certified values: NIST Statistical Reference Datasets (www.itl.nist.gov/div898/strd).

Norris and Longley are linear (Longley: "higher" difficulty, columns all but collinear), Misra1a is not. Certified are
the estimates and their standard deviations.
"""

from __future__ import annotations

import numpy as np
import pytest

from hideaway.calibrate.least_squares import inverse_information, minimise

NORRIS = """
0.1 0.2 338.8 337.4 118.1 118.2 888.0 884.6 9.2 10.1 228.1 226.5 668.5 666.3 998.5 996.3 449.1 448.6 778.9 777.0
559.2 558.2 0.3 0.4 0.1 0.6 778.1 775.5 668.8 666.9 339.3 338.0 448.9 447.5 10.8 11.6 557.7 556.0 228.3 228.1
998.0 995.8 888.8 887.6 119.6 120.2 0.3 0.3 0.6 0.3 557.6 556.8 339.3 339.1 888.0 887.2 998.5 999.0 778.9 779.0
10.2 11.1 117.6 118.3 228.9 229.2 668.4 669.1 449.2 448.9 0.2 0.5
"""
LONGLEY = """
60323 83.0 234289 2356 1590 107608 1947  61122 88.5 259426 2325 1456 108632 1948
60171 88.2 258054 3682 1616 109773 1949  61187 89.5 284599 3351 1650 110929 1950
63221 96.2 328975 2099 3099 112075 1951  63639 98.1 346999 1932 3594 113270 1952
64989 99.0 365385 1870 3547 115094 1953  63761 100.0 363112 3578 3350 116219 1954
66019 101.2 397469 2904 3048 117388 1955  67857 104.6 419180 2822 2857 118734 1956
68169 108.4 442769 2936 2798 120445 1957  66513 110.8 444546 4681 2637 121950 1958
68655 112.6 482704 3813 2552 123366 1959  69564 114.2 502601 3931 2514 125368 1960
69331 115.7 518173 4806 2572 127852 1961  70551 116.9 554894 4007 2827 130081 1962
"""
MISRA1A = """
10.07 77.6 14.73 114.9 17.94 141.1 23.93 190.8 29.61 239.9 35.18 289.0 40.02 332.8 44.82 378.4 50.76 434.8
55.05 477.3 61.01 536.8 66.40 593.1 75.47 689.1 81.78 760.0
"""


def table(text: str, columns: int) -> np.ndarray:
    return np.array(text.split(), dtype=float).reshape(-1, columns)


def fitted(residuals, start, jacobian=None):
    """Return estimates and standard errors as least squares has them: s² (JᵀJ)⁻¹."""
    found = minimise(residuals, np.array(start, dtype=float), jacobian=jacobian)
    covariance, undetermined = inverse_information(found.jacobian)
    assert undetermined == []
    variance = (found.residuals**2).sum() / (len(found.residuals) - len(start))
    return found.values, np.sqrt(variance * np.diag(covariance))


def linear(x: np.ndarray, y: np.ndarray, start):
    design = np.column_stack([np.ones(len(x)), x])
    return fitted(lambda values: design @ values - y, start, lambda values: design)


def test_norris_matches_its_certified_values() -> None:
    data = table(NORRIS, 2)
    assert len(data) == 36
    values, errors = linear(data[:, 1:], data[:, 0], (0.0, 0.0))
    assert values == pytest.approx([-0.262323073774029, 1.00211681802045], rel=1e-8)
    assert errors == pytest.approx([0.232818234301152, 0.429796848199937e-03], rel=1e-8)


def test_longley_matches_its_certified_values() -> None:
    data = table(LONGLEY, 7)
    values, errors = linear(data[:, 1:], data[:, 0], np.zeros(7))
    certified = [-3482258.63459582, 15.0618722713733, -0.358191792925910e-01, -2.02022980381683, -1.03322686717359,
                 -0.511041056535807e-01, 1829.15146461355]  # fmt: skip
    assert values == pytest.approx(certified, rel=1e-6)
    deviations = [890420.383607373, 84.9149257747669, 0.334910077722432e-01, 0.488399681651699, 0.214274163161675,
                  0.226073200069370, 455.478499142212]  # fmt: skip
    assert errors == pytest.approx(deviations, rel=1e-6)


@pytest.mark.parametrize("start", [(500, 1e-4), (250, 5e-4)])
@pytest.mark.parametrize("differences", [False, True])
def test_misra1a_matches_its_certified_values_from_both_starts(start, differences) -> None:
    y, x = table(MISRA1A, 2).T

    def jacobian(values):
        decay = np.exp(-values[1] * x)
        return np.column_stack([1 - decay, values[0] * x * decay])

    values, errors = fitted(
        lambda values: values[0] * (1 - np.exp(-values[1] * x)) - y, start, None if differences else jacobian
    )
    assert values == pytest.approx([2.3894212918e02, 5.5015643181e-04], rel=1e-6)
    assert errors == pytest.approx([2.7070075241, 7.2668688436e-06], rel=1e-4 if differences else 1e-6)


def test_a_direction_that_no_point_determines_costs_the_later_column() -> None:
    one = np.array([1.0, 2.0, 3.0, 4.0])
    jacobian = np.column_stack([one, one**2, 3 * one, np.zeros(4)])
    covariance, undetermined = inverse_information(jacobian)
    assert undetermined == [2, 3]
    kept = np.linalg.inv(jacobian[:, :2].T @ jacobian[:, :2])
    assert covariance[:2, :2] == pytest.approx(kept)
    assert not covariance[2:].any()


def test_huber_is_hardly_moved_by_one_wild_point_and_plain_least_squares_is() -> None:
    rng = np.random.default_rng(5)
    x = np.linspace(0.0, 1.0, 40)
    y = 1.0 + 2.0 * x + 0.01 * rng.standard_normal(40)
    y[7] += 5.0
    design = np.column_stack([np.ones(40), x])

    def slope(huber: bool) -> float:
        return float(minimise(lambda v: (design @ v - y) / 0.01, np.zeros(2), huber=huber).values[1])

    assert abs(slope(True) - 2.0) < 0.03
    assert abs(slope(False) - 2.0) > 0.1
