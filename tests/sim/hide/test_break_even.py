"""Seconds per committed token, break-even acceptance, and hiding that does not pay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.errors import InputError
from hideaway.sim.hide.break_even import (
    Worth,
    break_even_acceptance_length,
    round_seconds,
    seconds_per_committed_token,
    worth,
)

positive = st.floats(1e-6, 1e3)


@given(round_time=positive, b0=positive)
def test_at_the_break_even_acceptance_a_token_costs_what_it_costs_b0(round_time, b0):
    acceptance = float(break_even_acceptance_length(round_time, b0))
    if acceptance >= 1:
        assert float(seconds_per_committed_token(round_time, acceptance)) == pytest.approx(b0, rel=1e-12)


def test_a_slow_drafter_hides_everything_and_still_loses():
    fetch, b0 = 0.14, 0.02
    fast = {"draft_seconds": 0.005, "router_seconds": 0.001, "verify_seconds": 0.03}
    slow = {"draft_seconds": 0.2, "router_seconds": 0.001, "verify_seconds": 0.03}
    verdicts = []
    for terms in (fast, slow):
        window = terms["draft_seconds"] + terms["router_seconds"]
        total = round_seconds(**terms, exposed_seconds=max(0.0, fetch - window))
        per_token = float(seconds_per_committed_token(total, 9.0))
        verdicts.append(worth(hidden=fetch <= window, seconds_per_token=per_token, b0_seconds_per_token=b0))
    assert verdicts == [Worth.EXPOSED_BUT_PAYS, Worth.HIDDEN_BUT_SLOWER]
    assert verdicts[1].value == "hidden but slower than B0"


def test_all_four_verdicts():
    assert worth(hidden=True, seconds_per_token=1.0, b0_seconds_per_token=1.0) is Worth.HIDDEN_AND_PAYS
    assert worth(hidden=False, seconds_per_token=1.1, b0_seconds_per_token=1.0) is Worth.EXPOSED_AND_SLOWER


def test_arrays_are_taken():
    assert seconds_per_committed_token([1.0, 2.0], 2.0).tolist() == [0.5, 1.0]
    assert break_even_acceptance_length([1.0, 2.0], [0.5, 0.25]).tolist() == [2.0, 8.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: seconds_per_committed_token(1.0, 0.5),
            "acceptance_length is 0.5; the target's own token counts",
        ),
        (lambda: break_even_acceptance_length(1.0, 0.0), "b0_seconds_per_token holds zero"),
    ],
)
def test_bad_input_is_one_sentence(call, message):
    with pytest.raises(InputError, match=message):
        call()
