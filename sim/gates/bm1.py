"""BM1: the route-ahead router pass must cost less than the verify forward it runs ahead of.

Both times come from one row, summed over the same stretch of a run, so that their ratio needs no round count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from hideaway.sim.errors import InputError
from hideaway.sim.number_checks import finite_number, shown


def summarise_row(row: Mapping[str, object]) -> dict[str, float | bool]:
    """Return `t_router_seconds`, `t_verify_seconds`, `bm1_router_to_verify_ratio` and `bm1_pass` of a row.

    `bm1_pass` is t_router < t_verify, strictly.

    Raises
    ------
    InputError
        Naming the time that is missing or negative, or a t_verify_seconds that is not above zero.
    """
    if not isinstance(row, Mapping):
        raise InputError(
            f"a row is a mapping but {shown(row)} was given; give t_router_seconds and t_verify_seconds"
        )
    for name in ("t_router_seconds", "t_verify_seconds"):
        if name not in row:
            raise InputError(f"the row has no {name}; BM1 needs t_router_seconds and t_verify_seconds")
    router = finite_number("t_router_seconds", row["t_router_seconds"])
    verify = finite_number("t_verify_seconds", row["t_verify_seconds"], above_minimum=True)
    if not math.isfinite(router / verify):
        raise InputError(
            f"t_verify_seconds is {verify:g}, too small against t_router_seconds; give physical times"
        )
    return {
        "t_router_seconds": router,
        "t_verify_seconds": verify,
        "bm1_router_to_verify_ratio": router / verify,
        "bm1_pass": router < verify,
    }
