"""Headroom as tables, sentences and plain JSON values.

Not here: the picture (`hideaway.report.headroom_plot`).
"""

from __future__ import annotations

import math
from dataclasses import asdict

from hideaway.campaigns.headroom import Gain, Headroom, Service
from hideaway.campaigns.memory_worth import Worth
from hideaway.campaigns.paired import Estimate
from hideaway.campaigns.users_served import Trial
from hideaway.sim.units import GB

Cells = tuple[str, ...]
_MOST_DECIMALS = 3
_MILLISECONDS = 1e3

MEMORY_COLUMNS = ("memory to", "GB", "tokens/s per GB", "remark")


def spelled(value: Estimate, factor: float = 1.0, *, signed: bool = True) -> str:
    """Return mean and interval with as many decimals as the interval is worth.

    >>> spelled(Estimate(12.345, 11.0, 13.7))
    '+12.3 [+11.0, +13.7]'
    """
    if value.mean == value.low == value.high:
        return f"{value.mean * factor:.4g}"
    decimals = _decimals(value.half_width * factor, value.mean * factor)
    sign = "+" if signed else ""
    mean, low, high = (
        f"{round(number * factor, decimals) + 0.0:{sign},.{decimals}f}"
        for number in (value.mean, value.low, value.high)
    )
    return f"{mean} [{low}, {high}]"


def _decimals(half_width: float, mean: float) -> int:
    """Return decimals for one to two significant digits of the half width; of the mean if the interval is a point."""
    size = half_width or abs(mean)
    if size == 0.0:
        return 0
    return min(_MOST_DECIMALS, max(0, -math.floor(math.log10(size / 3))))


def gain_table(headroom: Headroom) -> tuple[Cells, list[Cells]]:
    """Return the columns, and as rows the limits in order of worth, those that are absent, then the bound.

    The column after the name is the one that the order goes by.
    """
    closed = headroom.closed
    first = ("tokens/s gained", "tokens/s then") if closed else ("TPOT saved, ms", "tokens/s gained")
    columns = ("remove", *first, "round p99 saved, ms", "TTFT p99 saved, ms", "what is removed")
    rows = [_gain_row(gain, closed=closed) for gain in headroom.gains]
    rows += [(limit.name, "", "", "", "", limit.note) for limit in headroom.absent]
    return columns, [*rows, _gain_row(headroom.bound, closed=closed)]


def _gain_row(gain: Gain, *, closed: bool) -> Cells:
    limit = gain.limit
    tokens = spelled(gain.tokens_per_second)
    if closed:
        first = (tokens, f"{gain.service.tokens_per_second.mean:,.1f}")
    else:
        first = (spelled(gain.tpot_seconds, _MILLISECONDS), tokens)
    return (
        limit.name,
        *first,
        spelled(gain.round_p99_seconds, _MILLISECONDS),
        spelled(gain.ttft_p99_seconds, _MILLISECONDS),
        f"{limit.removal}; {limit.note}" if limit.note else limit.removal,
    )


def base_sentence(base: Service) -> str:
    """Return what the scenario does as it is."""
    return (
        f"as it is: {spelled(base.tokens_per_second, signed=False)} tokens/s, round latency p99 "
        f"{spelled(base.round_p99_seconds, _MILLISECONDS, signed=False)} ms, TTFT p99 "
        f"{spelled(base.ttft_p99_seconds, _MILLISECONDS, signed=False)} ms, TPOT "
        f"{spelled(base.tpot_seconds, _MILLISECONDS, signed=False)} ms (mean [95 % interval])"
    )


def verdict(headroom: Headroom) -> str:
    """Return which limit is worth most, and whether that is clear of noise."""
    if not headroom.gains:
        return "this scenario has none of the limits that can be removed"
    first, count = headroom.gains[0], len(headroom.seeds)
    base, service = headroom.base, first.service
    if headroom.closed:
        now, then = base.tokens_per_second.mean, service.tokens_per_second.mean
        text = f"without it {then:,.1f} instead of {now:,.1f} tokens/s ({then / now:.2f} times)"
    else:
        now, then = base.tpot_seconds.mean * _MILLISECONDS, service.tpot_seconds.mean * _MILLISECONDS
        text = f"without it {then:,.2f} instead of {now:,.2f} ms per output token"
    worth = first.worth(closed=headroom.closed)
    if worth.high <= 0:
        return f"no single limit holds this scenario back: removing any one of {len(headroom.gains)} gains nothing"
    if worth.low <= 0:
        text += f", which {count} replications do not tell from noise; raise --replications"
    return f"held back most by: {first.limit.name}; {text}. Each limit is removed alone: gains do not add up"


def memory_rows(headroom: Headroom) -> list[Cells]:
    """Return what a gigabyte is worth to slots, KV memory and drafter."""
    return [_memory_row(worth) for worth in headroom.memory]


def _memory_row(worth: Worth) -> Cells:
    purchase = worth.purchase
    remarks = [purchase.what, purchase.note, _break_even_remark(worth)]
    return (
        purchase.use,
        f"{purchase.extra_bytes / GB:.2f}" if purchase.extra_bytes else "",
        "" if worth.per_gb is None else spelled(worth.per_gb),
        "; ".join(remark for remark in remarks if remark),
    )


def _break_even_remark(worth: Worth) -> str:
    needed, ratio = worth.break_even_acceptance, worth.break_even_ratio
    if needed is None or ratio is None:
        return ""
    rise = Estimate(ratio.mean - 1, ratio.low - 1, ratio.high - 1)
    return (
        f"at the same acceptance; pays if that rises from {worth.acceptance_length:.2f} to {needed:.2f} tokens a round "
        f"({spelled(rise, 100)} %); no law from size to acceptance is known"
    )


def users_sentence(headroom: Headroom) -> str:
    """Return how many users are served within the limits, and what fails first beyond."""
    scenario, users = headroom.setup.scenario, headroom.users
    limits = (
        f"TTFT {scenario.ttft_limit_seconds:g} s and TPOT {scenario.tpot_limit_seconds:g} s "
        f"met by {headroom.share:.4g} of requests"
    )
    if users.beyond is None:
        return f"users served: at least {users.users}, the most that were tried ({limits})"
    return f"users served: {users.users} ({limits}); with {users.beyond.users}, {breaks_first(users.beyond)}"


def breaks_first(trial: Trial) -> str:
    """Return which limit a failed trial missed more often."""
    if trial.obstacle:
        return f"it cannot run: {trial.obstacle}"
    shares = {"TTFT": trial.met_ttft / trial.judged, "TPOT": trial.met_tpot / trial.judged}
    worst = min(shares.values())
    names = [name for name, share in shares.items() if share == worst]
    text = (
        f"{' and '.join(names)} breaks first" if len(names) == 1 else f"{' and '.join(names)} break together"
    )
    figures = ", ".join(f"{name} met by {share:.2f}" for name, share in shares.items())
    text = f"{text} ({figures} of {trial.judged} requests)"
    if trial.preemptions:
        text += f"; KV memory ran out {trial.preemptions} times"
    return text


def headroom_value(headroom: Headroom, settings: dict[str, object]) -> dict[str, object]:
    """Return the whole answer as plain values for JSON; latencies in seconds, positive gains are better."""
    return {
        "settings": settings,
        "base": asdict(headroom.base),
        "ordered_by": "gained_tokens_per_second" if headroom.closed else "saved_tpot_seconds",
        "limits": [_gain_value(gain) for gain in headroom.gains],
        "absent": [{"limit": limit.name, "reason": limit.note} for limit in headroom.absent],
        "bound": _gain_value(headroom.bound),
        "memory": [_worth_value(worth) for worth in headroom.memory],
        "kv_peak_bytes": headroom.kv_peak_bytes,
        "users": {"share": headroom.share, **asdict(headroom.users)},
        "verdict": verdict(headroom),
        "warnings": list(headroom.warnings),
    }


def _gain_value(gain: Gain) -> dict[str, object]:
    return {
        "limit": gain.limit.name,
        "removal": gain.limit.removal,
        "note": gain.limit.note,
        "gained_tokens_per_second": asdict(gain.tokens_per_second),
        "saved_round_p99_seconds": asdict(gain.round_p99_seconds),
        "saved_ttft_p99_seconds": asdict(gain.ttft_p99_seconds),
        "saved_tpot_seconds": asdict(gain.tpot_seconds),
        "without_it": asdict(gain.service),
    }


def _worth_value(worth: Worth) -> dict[str, object]:
    purchase, ratio = worth.purchase, worth.break_even_ratio
    return {
        "memory_to": purchase.use,
        "what": purchase.what,
        "note": purchase.note,
        "extra_bytes": purchase.extra_bytes,
        "tokens_per_second_per_gb": None if worth.per_gb is None else asdict(worth.per_gb),
        "acceptance_length": worth.acceptance_length,
        "break_even_acceptance_length": worth.break_even_acceptance,
        "break_even_ratio": None if ratio is None else asdict(ratio),
    }
