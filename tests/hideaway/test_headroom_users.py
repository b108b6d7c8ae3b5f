"""The search for the largest number of users, and how one concurrency is judged."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.campaigns.users_served import Trial, UsersQuestion, UsersServed, largest_passing, serve
from hideaway.report.headroom_table import breaks_first
from hideaway.sim.inputs.scenario import Scenario
from hideaway.sim.world.simulate import simulate

SMALL = Scenario(baseline="B1", concurrency=2, acceptance="constant:8", launch="graph")
SEEDS = (1, 2)
SHORT_TRACE = "arrival_seconds,input_tokens,output_tokens\n" + "0,40,24\n" * 24


@given(st.integers(0, 300), st.integers(1, 256), st.data())
def test_search_finds_the_threshold_and_asks_nothing_twice(limit: int, cap: int, data: st.DataObject) -> None:
    asked: list[int] = []

    def passes(users: int) -> bool:
        asked.append(users)
        return users <= limit

    start = data.draw(st.integers(1, cap))
    found, right = largest_passing(passes, start=start, cap=cap), min(limit, cap)
    assert found == right if right <= 16 else right - found / 16 <= found <= right
    assert len(asked) == len(set(asked))
    assert all(1 <= users <= cap for users in asked)
    assert len(asked) <= 2 * cap.bit_length() + 2


def short_trace(tmp_path: object) -> str:
    path = f"{tmp_path}/requests.csv"
    with open(path, "w") as file:
        file.write(SHORT_TRACE)
    return path


def ask(tmp_path: object, *, share: float = 0.99, **changes: object) -> UsersServed:
    scenario = replace(SMALL, trace=short_trace(tmp_path), **changes)
    return serve(UsersQuestion(scenario, share=share, most_users=4, seeds=SEEDS))


def test_limits_that_nobody_misses_are_met_up_to_the_cap(tmp_path: object) -> None:
    served = ask(tmp_path, ttft_limit_seconds=1e6, tpot_limit_seconds=1e6)
    assert (served.users, served.cap, served.beyond) == (4, 4, None)
    assert served.at is not None
    # 24 requests: two waves of 4 before, one after, both seeds.
    assert served.at.judged == 2 * (24 - 8 - 4) == served.at.met_both


def test_limits_that_nobody_meets_serve_nobody(tmp_path: object) -> None:
    served = ask(tmp_path, tpot_limit_seconds=1e-6)
    assert served.users == 0
    assert served.at is None
    assert served.beyond is not None
    assert served.beyond.users == 1
    assert served.beyond.met_tpot == 0
    assert "TPOT breaks first" in breaks_first(served.beyond)


def test_a_limit_between_what_two_and_three_users_get_is_found(tmp_path: object) -> None:
    longest = {users: _longest_tpot(tmp_path, users) for users in (2, 3)}
    assert longest[2] < longest[3]
    served = ask(tmp_path, share=1.0, tpot_limit_seconds=(longest[2] + longest[3]) / 2)
    assert served.users == 2
    assert served.beyond is not None
    assert served.beyond.users == 3


def _longest_tpot(tmp_path: object, users: int) -> float:
    """Return the longest time per token of the requests that are judged: all but two waves and the last."""
    found = 0.0
    for seed in SEEDS:
        scenario = replace(SMALL, trace=short_trace(tmp_path), concurrency=users, requests=24, seed=seed)
        times = simulate(scenario).meter.requests
        for number in range(2 * users, 24 - users):
            request = times[number]
            seconds = request.finish_seconds - request.first_token_seconds
            found = max(found, seconds / (request.output_tokens - 1))
    return found


def test_a_request_that_cannot_fit_is_an_obstacle_not_a_crash(tmp_path: object) -> None:
    path = f"{tmp_path}/requests.csv"
    with open(path, "w") as file:
        file.write("arrival_seconds,input_tokens,output_tokens\n0,10,10\n0,5000000,10\n")
    scenario = replace(SMALL, trace=path, parameters={"memory.device_bytes": 1.6e10})
    served = serve(UsersQuestion(scenario, share=0.99, most_users=4, seeds=(1,)))
    assert served.users == 0
    assert served.beyond is not None
    assert "needs KV memory" in breaks_first(served.beyond)


@pytest.mark.parametrize(
    ("ttft", "tpot", "said"),
    [(9, 5, "TPOT breaks first"), (4, 5, "TTFT breaks first"), (5, 5, "TTFT and TPOT break together")],
)
def test_what_breaks_first_is_what_is_missed_more_often(ttft: int, tpot: int, said: str) -> None:
    trial = Trial(9, passed=False, judged=10, met_ttft=ttft, met_tpot=tpot, met_both=4, preemptions=3)
    text = breaks_first(trial)
    assert text.startswith(said)
    assert "KV memory ran out 3 times" in text
