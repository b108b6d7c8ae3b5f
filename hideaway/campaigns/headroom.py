"""What is holding a scenario back: one limit removed at a time, memory bought, users added.

Every variant runs with the seeds of the base (`hideaway.campaigns.paired`); all runs go to the workers at once.
Next: `hideaway.report.headroom_table` and `hideaway.report.headroom_plot`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hideaway.campaigns.figures import Figures, run_figures
from hideaway.campaigns.limits import Limit, Setup, limits_of, make_setup, resident_bound
from hideaway.campaigns.memory_worth import Worth, purchases, worth_of
from hideaway.campaigns.paired import Estimate, estimate, paired_gain
from hideaway.campaigns.shared_inputs import inputs_of
from hideaway.campaigns.users_served import UsersQuestion, UsersServed, serve
from hideaway.campaigns.workers import run_all
from hideaway.sim.inputs.scenario.baselines import BASELINES
from hideaway.sim.inputs.scenario.fields import Scenario

USERS_REPLICATIONS = 2
"""Replications of each concurrency that the search for users tries: each judges 50 requests or more."""

Task = Scenario | UsersQuestion
Answer = Figures | UsersServed


@dataclass(frozen=True, slots=True)
class Service:
    """Service figures of one scenario over its replications."""

    tokens_per_second: Estimate
    round_p99_seconds: Estimate
    ttft_p99_seconds: Estimate
    tpot_seconds: Estimate


@dataclass(frozen=True, slots=True)
class Gain:
    """What removing one limit brings: more tokens per second, fewer seconds of latency (positive is better)."""

    limit: Limit
    service: Service
    tokens_per_second: Estimate
    round_p99_seconds: Estimate
    ttft_p99_seconds: Estimate
    tpot_seconds: Estimate

    def worth(self, *, closed: bool) -> Estimate:
        """Return the gain that counts: tokens per second where users wait for answers, else time per token.

        In an open loop tokens per second say how much was asked for, not how fast the answer was.
        """
        return self.tokens_per_second if closed else self.tpot_seconds


@dataclass(frozen=True, slots=True)
class Headroom:
    """The whole answer.

    Attributes
    ----------
    gains : tuple of Gain
        In order of worth: tokens per second in a closed loop, time per output token in an open one.
    bound : Gain
        Every expert resident.
    absent : tuple of Limit
        Limits that this scenario does not have.
    """

    setup: Setup
    seeds: tuple[int, ...]
    base: Service
    gains: tuple[Gain, ...]
    bound: Gain
    absent: tuple[Limit, ...]
    memory: tuple[Worth, ...]
    users: UsersServed
    share: float
    kv_peak_bytes: float
    warnings: tuple[str, ...]

    @property
    def closed(self) -> bool:
        """Whether a closed loop was run."""
        return self.setup.scenario.closed_loop is not None


def replication_seeds(scenario: Scenario, replications: int) -> tuple[int, ...]:
    """Return the scenario's seed and those after it, so that `hideaway simulate --seed` repeats any replication."""
    return tuple(scenario.seed + number for number in range(replications))


def run_headroom(
    scenario: Scenario,
    *,
    replications: int,
    share: float,
    most_users: int,
    workers: int | None = None,
) -> Headroom:
    """Run every variant of a scenario and return what each is worth.

    Raises
    ------
    InputError
        The scenario is wrong, or nothing is offloaded in it.
    """
    setup = make_setup(scenario, inputs_of(scenario))
    seeds = replication_seeds(scenario, replications)
    found = limits_of(setup)
    bought = purchases(setup)
    bound = resident_bound(setup)
    variants = [scenario]
    variants += [limit.scenario for limit in (*found, bound) if limit.scenario is not None]
    variants += [purchase.scenario for purchase in bought if purchase.scenario is not None]
    variants = list(dict.fromkeys(variants))
    question = UsersQuestion(scenario, share, most_users, seeds[:USERS_REPLICATIONS])
    tasks: list[Task] = [question]
    tasks += [replace(variant, seed=seed) for variant in variants for seed in seeds]
    answers = run_all(_work, tasks, "runs", workers=workers, cost=_cost)
    (users,) = [answer for answer in answers if isinstance(answer, UsersServed)]
    runs = _by_variant(variants, answers, len(seeds))
    base = runs[scenario]
    gains = [_gain(limit, base, runs[limit.scenario]) for limit in found if limit.scenario is not None]
    closed = scenario.closed_loop is not None
    return Headroom(
        setup=setup,
        seeds=seeds,
        base=_service(base),
        gains=tuple(sorted(gains, key=lambda gain: gain.worth(closed=closed).mean, reverse=True)),
        bound=_gain(bound, base, runs[bound.scenario or scenario]),
        absent=tuple(limit for limit in found if limit.scenario is None),
        memory=tuple(
            worth_of(purchase, base, runs[purchase.scenario] if purchase.scenario else ())
            for purchase in bought
        ),
        users=users,
        share=share,
        kv_peak_bytes=max(figures.kv_peak_bytes for figures in base),
        warnings=tuple(dict.fromkeys(warning for figures in base for warning in figures.warnings)),
    )


def _work(task: Task) -> Answer:
    return serve(task) if isinstance(task, UsersQuestion) else run_figures(task)


def _cost(task: Task) -> float:
    """Guess: the search for users is a chain of runs; Belady runs twice; few seats a forward mean many forwards."""
    if isinstance(task, UsersQuestion):
        return 100.0
    if BASELINES[task.baseline].resident:
        return 0.0
    seldom_seated = (task.admission or BASELINES[task.baseline].admission) == "deficit-2d"
    return (2.0 if task.eviction == "belady" else 1.0) * (2.0 if seldom_seated else 1.0)


def _by_variant(
    variants: Sequence[Scenario], answers: Sequence[Answer], replications: int
) -> dict[Scenario, list[Figures]]:
    figures = [answer for answer in answers if isinstance(answer, Figures)]
    return {
        variant: figures[place * replications : (place + 1) * replications]
        for place, variant in enumerate(variants)
    }


def _service(runs: Sequence[Figures]) -> Service:
    return Service(
        estimate([run.tokens_per_second for run in runs]),
        estimate([run.round_p99_seconds for run in runs]),
        estimate([run.ttft_p99_seconds for run in runs]),
        estimate([run.tpot_seconds for run in runs]),
    )


def _gain(limit: Limit, base: Sequence[Figures], runs: Sequence[Figures]) -> Gain:
    return Gain(
        limit,
        _service(runs),
        paired_gain([run.tokens_per_second for run in base], [run.tokens_per_second for run in runs]),
        paired_gain([run.round_p99_seconds for run in runs], [run.round_p99_seconds for run in base]),
        paired_gain([run.ttft_p99_seconds for run in runs], [run.ttft_p99_seconds for run in base]),
        paired_gain([run.tpot_seconds for run in runs], [run.tpot_seconds for run in base]),
    )
