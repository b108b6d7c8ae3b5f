"""How many users a scenario serves within its limits: the largest concurrency that passes, and what fails beyond.

A user sends the next request when the last one is answered (closed loop, no time to think). As many requests as two
waves are not judged, because the first wave comes all at once and the second queues behind its prefill; nor is
the last wave, which runs while the load drains. Next: `hideaway.campaigns.headroom`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from hideaway.campaigns.shared_inputs import inputs_of
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.arrivals import load_arrival_source
from hideaway.sim.inputs.scenario.fields import DEFAULT_CONCURRENCY, Scenario
from hideaway.sim.world.simulate import simulate

JUDGED_AT_LEAST = 50
"""Requests judged per replication, or one a user if those are more."""
_FINENESS = 16
_WARM_UP_WAVES = 2
_DRAIN_WAVES = 1
_WAVES = _WARM_UP_WAVES + _DRAIN_WAVES + 1


@dataclass(frozen=True, slots=True)
class UsersQuestion:
    """What is asked.

    Parameters
    ----------
    share : float
        Share of requests that must meet both limits.
    most_users : int
        Largest concurrency that is tried.
    seeds : tuple of int
        One replication each; their requests are judged together.
    """

    scenario: Scenario
    share: float
    most_users: int
    seeds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """How one concurrency did.

    Attributes
    ----------
    judged, met_ttft, met_tpot, met_both : int
        Requests judged, and those that met a limit. A trial stops as soon as it has failed.
    preemptions : int
        Sequences sent back for want of KV memory.
    obstacle : str
        Why it could not run at all.
    """

    users: int
    passed: bool
    judged: int = 0
    met_ttft: int = 0
    met_tpot: int = 0
    met_both: int = 0
    preemptions: int = 0
    obstacle: str = ""


@dataclass(frozen=True, slots=True)
class UsersServed:
    """The answer: `users` pass (0: not even one), `beyond` is the smallest number found to fail, None at the cap.

    The two are neighbours up to 32 users and at most a sixteenth apart beyond.
    """

    users: int
    cap: int
    at: Trial | None
    beyond: Trial | None


def serve(question: UsersQuestion) -> UsersServed:
    """Return the largest number of users served, by doubling and bisection.

    Fewer users are taken to pass if more do; a search cannot do without.
    """
    available = load_arrival_source(question.scenario.trace).num_requests
    cap = max(1, min(question.most_users, available // _WAVES))
    trials: dict[int, Trial] = {}

    def passes(users: int) -> bool:
        trials[users] = _try(question, users, available)
        return trials[users].passed

    start = question.scenario.closed_loop or DEFAULT_CONCURRENCY
    served = largest_passing(passes, start=min(start, cap), cap=cap)
    failed = [users for users, trial in trials.items() if not trial.passed]
    return UsersServed(served, cap, trials.get(served), trials[min(failed)] if failed else None)


def largest_passing(passes: Callable[[int], bool], *, start: int, cap: int) -> int:
    """Return the largest n in 1..cap with `passes(n)`, 0 if none; smaller numbers pass if larger do.

    Doubles or halves from `start`, then bisects until the answer is known to one part in `_FINENESS`, exactly below
    twice that; no number is asked twice.

    >>> largest_passing(lambda users: users <= 11, start=8, cap=256)
    11
    """
    good, bad = 0, cap + 1
    probe = start
    while good < probe < bad:
        if passes(probe):
            good = probe
            probe = min(2 * probe, cap)
        else:
            bad = probe
            probe //= 2
        if good and bad <= cap:
            break
    while bad - good > max(1, good // _FINENESS):
        middle = (good + bad) // 2
        if passes(middle):
            good = middle
        else:
            bad = middle
    return good


def _try(question: UsersQuestion, users: int, available: int) -> Trial:
    """Run one concurrency, replication by replication, until it has failed or all are done."""
    requests = min(available, (_WAVES - 1) * users + max(users, JUDGED_AT_LEAST))
    scenario = replace(question.scenario, concurrency=users, rate=None, open_loop=False, requests=requests)
    judged = _judged(users, requests)
    most_failures = math.floor((1.0 - question.share) * len(judged) * len(question.seeds) + 1e-9)
    trial = Trial(users, passed=True)
    for seed in question.seeds:
        try:
            trial = _add_replication(trial, replace(scenario, seed=seed), judged)
        except InputError as error:
            return replace(trial, passed=False, obstacle=str(error))
        if trial.judged - trial.met_both > most_failures:
            return replace(trial, passed=False)
    return trial


def _judged(users: int, requests: int) -> range:
    """Return the numbers of the requests that are judged; at least one however short the trace."""
    first = min(_WARM_UP_WAVES * users, requests - 1)
    return range(first, max(first + 1, requests - _DRAIN_WAVES * users))


def _add_replication(trial: Trial, scenario: Scenario, judged: range) -> Trial:
    run = simulate(scenario, inputs=inputs_of(scenario))
    times = [run.meter.requests[number] for number in judged]
    ttft = [each.first_token_seconds - each.arrival_seconds <= scenario.ttft_limit_seconds for each in times]
    tpot = [
        each.finish_seconds - each.first_token_seconds
        <= scenario.tpot_limit_seconds * max(each.output_tokens - 1, 1)
        for each in times
    ]
    return replace(
        trial,
        judged=trial.judged + len(times),
        met_ttft=trial.met_ttft + sum(ttft),
        met_tpot=trial.met_tpot + sum(tpot),
        met_both=trial.met_both + sum(early and fast for early, fast in zip(ttft, tpot, strict=True)),
        preemptions=trial.preemptions + int(run.metrics["preemptions"]),
    )
