"""Which sequences may verify in this iteration: the exact two-dimensional deficit rule, pure.

One dimension is rows (tokens), the other the expert bytes a sequence is predicted to move. What an iteration
leaves unused is carried to the next, up to a cap. The rule has consequences that are no bugs: a large demand
can starve behind small ones that each fit, an expert that two sequences share is counted in both demands, and
after an idle stretch budget + cap are spent at once. The policies that use the rule, and alternatives to it,
are in `hideaway.sim.policies.admission`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hideaway.sim.errors import InputError
from hideaway.sim.number_checks import whole_number


@dataclass(frozen=True, slots=True)
class Deficit2D:
    """A pair of amounts, each a whole number >= 0: a budget, what was carried over, or a cap."""

    tokens: int
    expert_bytes: int

    def __post_init__(self) -> None:
        _make_plain(self, "")


@dataclass(frozen=True, slots=True)
class VerifyDemand:
    """What one sequence asks for; `in_flight` when its verify began earlier and cannot be put off."""

    seq_id: int
    tokens: int
    expert_bytes: int
    in_flight: bool = False

    def __post_init__(self) -> None:
        _make_plain(self, f" of demand {self.seq_id}")


@dataclass(frozen=True, slots=True)
class VerifyAdmission:
    """Who verifies: the seated (in flight) and the admitted, each in demand order; what is carried on."""

    seated_ids: tuple[int, ...]
    admitted_ids: tuple[int, ...]
    carried: Deficit2D


def admit_verify_demands(
    demands: Iterable[VerifyDemand],
    budget: Deficit2D,
    carried: Deficit2D,
    deficit_cap: Deficit2D,
) -> VerifyAdmission:
    """Return who verifies in this iteration and what is carried to the next.

    Every in-flight demand is seated. The pool is budget + carried − seated, in each dimension, possibly below
    zero. The others are scanned in order: one that fits the pool in both dimensions is admitted and
    subtracted, one that does not is passed over. Carried on is the rest of the pool, at least 0 and at most
    the cap.

    Raises
    ------
    InputError
        The cap is below the largest single demand in a dimension, which could then never be admitted.
    """
    queue = tuple(demands)
    _check_cap(queue, deficit_cap)
    seated = [demand for demand in queue if demand.in_flight]
    pool_tokens = budget.tokens + carried.tokens - sum(demand.tokens for demand in seated)
    pool_bytes = budget.expert_bytes + carried.expert_bytes - sum(demand.expert_bytes for demand in seated)
    admitted_ids: list[int] = []
    for demand in queue:
        fits = demand.tokens <= pool_tokens and demand.expert_bytes <= pool_bytes
        if demand.in_flight or not fits:
            continue
        pool_tokens -= demand.tokens
        pool_bytes -= demand.expert_bytes
        admitted_ids.append(demand.seq_id)
    return VerifyAdmission(
        seated_ids=tuple(demand.seq_id for demand in seated),
        admitted_ids=tuple(admitted_ids),
        carried=Deficit2D(
            tokens=min(max(0, pool_tokens), deficit_cap.tokens),
            expert_bytes=min(max(0, pool_bytes), deficit_cap.expert_bytes),
        ),
    )


def _make_plain(pair: Deficit2D | VerifyDemand, whose: str) -> None:
    """Check both amounts and turn NumPy integers, which overflow, into int; changes a value being built."""
    for name in ("tokens", "expert_bytes"):
        object.__setattr__(pair, name, whole_number(f"{name}{whose}", getattr(pair, name)))


def _check_cap(demands: tuple[VerifyDemand, ...], cap: Deficit2D) -> None:
    largest_tokens = max((demand.tokens for demand in demands), default=0)
    largest_bytes = max((demand.expert_bytes for demand in demands), default=0)
    if cap.tokens < largest_tokens or cap.expert_bytes < largest_bytes:
        raise InputError(
            f"deficit_cap is {cap.tokens} tokens, {cap.expert_bytes} bytes but the largest single demand is "
            f"{largest_tokens} tokens, {largest_bytes} bytes; raise the cap to that in each dimension"
        )
