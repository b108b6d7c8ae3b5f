"""From the names in a scenario to policy objects."""

from __future__ import annotations

from hideaway.sim.admission import Deficit2D
from hideaway.sim.costs import CostModel
from hideaway.sim.inputs.routing.union_table import UnionTable
from hideaway.sim.inputs.scenario.baselines import Baseline
from hideaway.sim.inputs.scenario.fields import Scenario
from hideaway.sim.policies.admission.admit_all import AdmitAll
from hideaway.sim.policies.admission.base import AdmissionPolicy
from hideaway.sim.policies.admission.deficit import DeficitAdmission
from hideaway.sim.policies.eviction.aged_lfu import AgedLfu
from hideaway.sim.policies.eviction.base import EvictionPolicy
from hideaway.sim.policies.eviction.belady import Belady
from hideaway.sim.policies.eviction.lru import Lru
from hideaway.sim.policies.eviction.static_hot_set import StaticHotSet, hot_set
from hideaway.sim.policies.prefetch.base import NoPrefetch, PrefetchPolicy
from hideaway.sim.policies.prefetch.cross_round import CrossRound
from hideaway.sim.policies.prefetch.previous_token import PreviousToken
from hideaway.sim.policies.prefetch.previous_union import PreviousUnion
from hideaway.sim.policies.prefetch.route_ahead import RouteAhead


def make_eviction(
    scenario: Scenario, num_layers: int, num_experts: int, future: list[list[int]] | None
) -> EvictionPolicy:
    """Return the eviction policy; `future` is the recorded run that Belady's rule looks into."""
    if scenario.eviction == "aged-lfu":
        return AgedLfu(num_layers, num_experts)
    if scenario.eviction == "static":
        return StaticHotSet()
    if scenario.eviction == "belady" and future is not None:
        return Belady(num_layers, num_experts, future)
    return Lru(num_layers, num_experts)


def initial_residency(scenario: Scenario, slots: list[int], table: UnionTable) -> list[int]:
    """Return the experts resident before the first request: all where they fit, the hot set if static, else none."""
    if all(count >= table.num_experts for count in slots):
        return [(1 << table.num_experts) - 1] * len(slots)
    if scenario.eviction == "static":
        return hot_set(table.popularity(), slots)
    return [0] * len(slots)


def route_depth(scenario: Scenario, baseline: Baseline, num_layers: int) -> int:
    """Return how many layers the route pass knows exactly."""
    return num_layers if baseline.oracle else min(scenario.router_exact_depth or 1, num_layers)


def make_prefetch(scenario: Scenario, baseline: Baseline, num_layers: int) -> PrefetchPolicy:
    """Return the prefetch policy, the baseline's unless the scenario names another."""
    name = "none" if baseline.resident else scenario.prefetch or baseline.prefetch
    if name == "previous-token":
        return PreviousToken(num_layers)
    if name == "previous-union":
        return PreviousUnion(num_layers)
    if name in ("route-ahead", "cross-round"):
        depth = route_depth(scenario, baseline, num_layers)
        route_ahead = RouteAhead(num_layers, exact_depth=depth, lookahead=scenario.lookahead)
        return CrossRound(route_ahead) if name == "cross-round" else route_ahead
    return NoPrefetch()


def make_admission(scenario: Scenario, baseline: Baseline, costs: CostModel) -> AdmissionPolicy:
    """Return the admission policy with its budgets.

    The stated rule: tau = sequences x block size; beta = bandwidth x achievable window, the compute of one full
    forward, behind which alone its own transfers can hide; caps are the largest demand there can be (where experts
    are predicted, every one may be named).
    """
    name = scenario.admission or baseline.admission
    if name == "all" or not baseline.speculative:
        return AdmitAll()
    model, block = costs.model, scenario.block_size
    tokens = scenario.token_budget or scenario.most_sequences * block
    if name == "token-deficit":
        return DeficitAdmission.by_tokens(tokens, max(tokens, block))
    exact = route_depth(scenario, baseline, model.num_layers)
    named = (
        exact * min(model.num_experts, block * model.top_k) + (model.num_layers - exact) * model.num_experts
    )
    largest = named * model.expert_bytes
    beta = scenario.byte_budget or achievable_window_bytes(scenario, costs)
    return DeficitAdmission(Deficit2D(tokens, beta), Deficit2D(max(tokens, block), max(largest, beta)))


def achievable_window_bytes(scenario: Scenario, costs: CostModel) -> int:
    """Return bandwidth x achievable window of one iteration with every sequence seated."""
    model = costs.model
    rows = scenario.most_sequences * scenario.block_size
    nominal = min(model.num_experts, rows * model.top_k)
    window = costs.forward_floor_seconds(rows, nominal, model.top_k)
    return int(window * costs.link.bytes_per_second)
