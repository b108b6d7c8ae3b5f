"""What another gigabyte of device memory is worth: as expert slots, as KV memory, as a larger drafter.

The gigabyte comes on top: everything else keeps its bytes. Nothing is assumed of how a drafter's acceptance grows
with its size, for which no law is known; what it would have to grow to is worked out instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hideaway.campaigns.figures import Figures
from hideaway.campaigns.limits import Setup, with_parameters
from hideaway.campaigns.paired import Estimate, estimate, paired_gain
from hideaway.sim.inputs.scenario.fields import Scenario
from hideaway.sim.units import GB

STEP_BYTES = GB
"""Slots come in whole numbers per layer; the number whose bytes are nearest to this is bought."""


@dataclass(frozen=True, slots=True)
class Purchase:
    """One use of extra memory.

    Parameters
    ----------
    use : str
        "expert slots", "KV" or "drafter".
    what : str
        What the bytes buy.
    extra_bytes : int
        Bytes added to the device.
    scenario : Scenario or None
        The scenario with them; None where the outcome is known without a run.
    note : str
        Why it is known, or what to bear in mind.
    """

    use: str
    what: str
    extra_bytes: int
    scenario: Scenario | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Worth:
    """What a purchase brings.

    Attributes
    ----------
    per_gb : Estimate or None
        Output tokens per second gained per 10**9 bytes, acceptance unchanged; None where there is nothing to buy.
    acceptance_length : float or None
        For the drafter: mean tokens a round as it is.
    break_even_ratio : Estimate or None
        For the drafter: factor by which they must rise for a sequence to decode as fast as before.
    """

    purchase: Purchase
    per_gb: Estimate | None
    acceptance_length: float | None = None
    break_even_ratio: Estimate | None = None

    @property
    def break_even_acceptance(self) -> float | None:
        """Mean tokens a round from which on the larger drafter pays."""
        if self.acceptance_length is None or self.break_even_ratio is None:
            return None
        return self.acceptance_length * self.break_even_ratio.mean


def purchases(setup: Setup) -> list[Purchase]:
    """Return the three uses of extra memory."""
    return [_slots(setup), _kv(setup), _drafter(setup)]


def worth_of(purchase: Purchase, base: Sequence[Figures], runs: Sequence[Figures]) -> Worth:
    """Return what a purchase brings, from paired replications; `runs` is empty where none were needed."""
    if not runs:
        known_zero = purchase.extra_bytes > 0
        return Worth(purchase, Estimate(0.0, 0.0, 0.0) if known_zero else None)
    gained = paired_gain(
        [figures.tokens_per_second for figures in base], [figures.tokens_per_second for figures in runs]
    )
    per_gb = gained.scaled(GB / purchase.extra_bytes)
    if purchase.use != "drafter":
        return Worth(purchase, per_gb)
    acceptance_length = sum(figures.acceptance_length for figures in base) / len(base)
    return Worth(purchase, per_gb, acceptance_length, _break_even(base, runs))


def _slots(setup: Setup) -> Purchase:
    model = setup.inputs.model
    slot_bytes = model.num_layers * model.expert_bytes
    room = model.num_experts - 1 - setup.memory.slots_per_layer
    if room < 1:
        note = "one more slot per layer makes every expert resident: see the bound"
        return Purchase("expert slots", "nothing", 0, None, note)
    step = min(room, max(1, round(STEP_BYTES / slot_bytes)))
    scenario = setup.scenario
    now = scenario.slots or max(1, round(scenario.slot_fraction * model.num_experts))
    more = replace(scenario, slots=now + step)
    what = f"{step} more slot{'s' if step > 1 else ''} per layer"
    return _bought(setup, "expert slots", what, step * slot_bytes, more)


def _kv(setup: Setup) -> Purchase:
    """Return the purchase of KV memory, without a run where the largest requests together fit already."""
    scenario, model = setup.scenario, setup.inputs.model
    block = scenario.block_size if setup.speculative else 1
    needs = sorted(
        model.kv_bytes(request.input_tokens + request.output_tokens + block)
        for request in setup.inputs.requests
    )
    most = sum(needs[-scenario.most_sequences :])
    capacity = setup.memory.kv_bytes
    room = int(capacity // (sum(needs) / len(needs)))
    note = f"{capacity / GB:,.1f} GB hold about {room:,} such requests"
    if most <= capacity:
        reason = (
            f"does not bind: {most / GB:,.2f} GB hold the largest {scenario.most_sequences} requests; {note}"
        )
        return Purchase("KV", "1 GB of KV memory", GB, None, reason)
    return _bought(setup, "KV", "1 GB of KV memory", GB, scenario, note)


def _drafter(setup: Setup) -> Purchase:
    if not setup.speculative:
        return Purchase("drafter", "nothing", 0, None, "nothing is drafted")
    scenario = setup.scenario
    twice = replace(scenario, drafter_parameters=2 * scenario.drafter_parameters)
    extra = setup.inputs.costs.drafter_bytes
    return _bought(setup, "drafter", "a drafter of twice the size", extra, twice)


def _bought(
    setup: Setup, use: str, what: str, extra_bytes: int, scenario: Scenario, note: str = ""
) -> Purchase:
    device_bytes = setup.inputs.costs.profile.value("memory.device_bytes") + extra_bytes
    larger = with_parameters(scenario, {"memory.device_bytes": device_bytes})
    return Purchase(use, what, extra_bytes, larger, note)


def _break_even(base: Sequence[Figures], runs: Sequence[Figures]) -> Estimate:
    """Return the factor on acceptance that makes up for the slower rounds of a larger drafter.

    A sequence decodes at a / T tokens per second, T the mean round latency. With T' for the larger drafter it
    decodes as fast as before at a' = a · T' / T. To first order: T' is taken not to depend on a'.
    """
    return estimate(
        [after.round_seconds / before.round_seconds for before, after in zip(base, runs, strict=True)]
    )
