"""The limits of a scenario and the same scenario with one of them removed.

Each removal is a `Scenario`, so that every figure can be had again with `hideaway simulate`. A limit that the
scenario does not have says why. Next: `hideaway.campaigns.headroom`, which runs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.scenario.baselines import BASELINES
from hideaway.sim.inputs.scenario.fields import Scenario
from hideaway.sim.world.inputs import Inputs
from hideaway.sim.world.memory import CapacityError, MemorySplit, split_memory

NO_LINK_LIMIT = {
    "link.h2d_bytes_per_second": 1e18,
    "link.pageable_bytes_per_second": 1e18,
    "link.latency_seconds": 0.0,
}
"""The largest bandwidth that a profile may state stands for infinity: an expert takes 1e-11 s."""
NO_ISSUE_COST = {
    "issue.seconds_per_call": 0.0,
    "issue.batch_seconds": 0.0,
    "issue.batch_seconds_per_transfer": 0.0,
    "link.pageable_issue_seconds": 0.0,
}
NO_ROUND_TRIP = {"host.round_trip_seconds": 0.0}
NO_CONTENTION = {"contention.compute_slowdown": 0.0, "contention.link_slowdown": 0.0}

ALL_ACCEPTED = "rate:1"
_PREDICTING = ("route-ahead", "cross-round")


@dataclass(frozen=True, slots=True)
class Limit:
    """One thing that holds a scenario back.

    Parameters
    ----------
    name : str
        Short, for tables.
    removal : str
        What is done to remove it.
    scenario : Scenario or None
        The scenario without it; None where there is nothing to remove.
    note : str
        What a reader must know of the removal, or why there is nothing to remove.
    """

    name: str
    removal: str
    scenario: Scenario | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Setup:
    """A scenario with its inputs and the split of its memory."""

    scenario: Scenario
    inputs: Inputs
    memory: MemorySplit

    @property
    def speculative(self) -> bool:
        """Whether blocks are drafted."""
        return BASELINES[self.scenario.baseline].speculative

    @property
    def prefetch(self) -> str:
        """The prefetch policy in force."""
        return self.scenario.prefetch or BASELINES[self.scenario.baseline].prefetch

    @property
    def admission(self) -> str:
        """The admission policy in force; without drafts everybody is seated."""
        named = self.scenario.admission or BASELINES[self.scenario.baseline].admission
        return named if self.speculative else "all"

    @property
    def exact_everywhere(self) -> bool:
        """Whether the route pass already knows every layer."""
        depth = self.scenario.router_exact_depth or 1
        return BASELINES[self.scenario.baseline].oracle or depth >= self.inputs.model.num_layers


def make_setup(scenario: Scenario, inputs: Inputs) -> Setup:
    """Return the scenario with what it stands on.

    Raises
    ------
    InputError
        Nothing is offloaded, so there is nothing to gain; or the scenario does not fit the device.
    """
    baseline = BASELINES[scenario.baseline]
    if baseline.resident:
        raise InputError(
            f"{scenario.baseline} keeps every expert on the device, so nothing is offloaded and no limit of "
            "offloading can be removed; ask for an offloaded baseline such as OURS"
        )
    memory = split_memory(scenario, baseline, inputs.costs)
    if memory.slots_per_layer >= inputs.model.num_experts:
        raise InputError(
            f"every one of the {inputs.model.num_experts} experts of a layer has a slot, so nothing is offloaded; "
            "lower --slots or --slot-fraction"
        )
    return Setup(scenario, inputs, memory)


def with_parameters(scenario: Scenario, values: Mapping[str, float]) -> Scenario:
    """Return the scenario with some parameters of its profile overridden."""
    return replace(scenario, parameters={**dict(scenario.parameters), **values})


def limits_of(setup: Setup) -> list[Limit]:
    """Return every limit in the order of a copy's way, then those of scheduling."""
    limits = [
        _costs(setup, "link", "infinite bandwidth, no latency", NO_LINK_LIMIT),
        _costs(setup, "issue cost", "issuing a copy takes the host no time", NO_ISSUE_COST),
        _costs(setup, "host round trip", "routed sets are on the host at once", NO_ROUND_TRIP),
        _costs(setup, "contention", "copies and compute do not slow each other", NO_CONTENTION),
        _eviction(setup),
        _depth(setup),
        _prediction(setup),
        _rejected_drafts(setup),
        _queueing(setup),
    ]
    if setup.scenario.page_cache_bytes is not None:
        in_memory = replace(setup.scenario, page_cache_bytes=None)
        limits.append(Limit("SSD", "every expert in host memory", in_memory))
    return limits


def resident_bound(setup: Setup) -> Limit:
    """Return the scenario with every expert resident and as much KV memory as before: the upper bound."""
    name = "B3" if setup.speculative else "B3-AR"
    scenario = replace(setup.scenario, baseline=name, eviction="lru")
    costs, memory = setup.inputs.costs, setup.memory
    try:
        split_memory(scenario, BASELINES[name], costs)
        note = "they fit this card"
    except CapacityError:
        note = "they do not fit this card; run as if its memory were larger"
    model = setup.inputs.model
    slots_bytes = model.num_experts * model.num_layers * model.expert_bytes
    drafter_bytes = costs.drafter_bytes if setup.speculative else 0
    needed = memory.reserved_bytes + memory.dense_bytes + drafter_bytes + slots_bytes + memory.kv_bytes
    larger = with_parameters(scenario, {"memory.device_bytes": float(needed)})
    return Limit(f"all resident ({name})", "every expert has a slot", larger, note)


def _costs(setup: Setup, name: str, removal: str, values: Mapping[str, float]) -> Limit:
    profile = setup.inputs.costs.profile
    if all(profile.value(parameter) == value for parameter, value in values.items()):
        return Limit(name, removal, None, "the profile has none")
    return Limit(name, removal, with_parameters(setup.scenario, values))


def _eviction(setup: Setup) -> Limit:
    removal = "the expert needed last again leaves (Belady)"
    if setup.scenario.eviction == "belady":
        return Limit("eviction", removal, None, "evicts by Belady's rule already")
    note = "" if setup.prefetch == "none" else "bounds misses only where nothing is prefetched"
    return Limit("eviction", removal, replace(setup.scenario, eviction="belady"), note)


def _depth(setup: Setup) -> Limit:
    removal = "the route pass is exact in every layer"
    if not setup.speculative:
        return Limit("router depth", removal, None, "nothing is drafted, so there is no route pass")
    if setup.exact_everywhere:
        return Limit("router depth", removal, None, "exact in every layer already")
    prefetch, switched = _predicting_prefetch(setup)
    deep = replace(setup.scenario, router_exact_depth=setup.inputs.model.num_layers, prefetch=prefetch)
    reused = "verify reuses it" if setup.scenario.verify_reuses_route else "verify repeats it"
    return Limit("router depth", removal, deep, f"pays attention of every layer, {reused}{switched}")


def _prediction(setup: Setup) -> Limit:
    removal = "predictions have recall and precision 1"
    scenario = setup.scenario
    if scenario.recall == 1.0 and scenario.precision == 1.0 and setup.prefetch in _PREDICTING:
        return Limit("prediction", removal, None, "predictions are perfect already")
    prefetch, switched = _predicting_prefetch(setup)
    perfect = replace(scenario, recall=1.0, precision=1.0, prefetch=prefetch)
    return Limit("prediction", removal, perfect, f"costs no compute{switched}")


def _predicting_prefetch(setup: Setup) -> tuple[str | None, str]:
    """Return the prefetch policy that uses predictions, and what to say of it if it is another one."""
    if setup.prefetch in _PREDICTING:
        return setup.scenario.prefetch, ""
    return "route-ahead", f"; prefetch route-ahead instead of {setup.prefetch}"


def _rejected_drafts(setup: Setup) -> Limit:
    removal = "every draft is accepted"
    if not setup.speculative:
        return Limit("rejected drafts", removal, None, "nothing is drafted")
    block = setup.scenario.block_size
    if setup.inputs.acceptance.mean_length(block) >= block:
        return Limit("rejected drafts", removal, None, "every draft is accepted already")
    accepted = replace(setup.scenario, acceptance=ALL_ACCEPTED)
    return Limit("rejected drafts", removal, accepted, f"each round commits {block} tokens")


def _queueing(setup: Setup) -> Limit:
    scenario = setup.scenario
    seated = setup.admission == "all"
    if scenario.closed_loop is not None:
        removal = "every drafted sequence is verified at once"
        if seated:
            return Limit("queueing", removal, None, "not applicable: a closed loop has a seat for each user")
        return Limit("queueing", removal, replace(scenario, admission="all"), f"no {setup.admission}")
    removal = "every request is seated and verified at once"
    if seated and scenario.max_sequences >= scenario.requests:
        return Limit("queueing", removal, None, "every request has a seat already")
    open_door = replace(
        scenario, admission="all", max_sequences=max(scenario.max_sequences, scenario.requests)
    )
    return Limit("queueing", removal, open_door, "KV memory and one prefill chunk a forward remain")
