"""Inputs for many variants of one scenario: the routing trace, which is dear to load, is loaded once a seed.

Equal to `hideaway.sim.world.simulate.load_inputs` (a test compares them), only cheaper from the second call on.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from hideaway.sim.costs import CostModel
from hideaway.sim.inputs.acceptance import load_acceptance
from hideaway.sim.inputs.arrivals import load_arrivals
from hideaway.sim.inputs.profiles import load_profile
from hideaway.sim.inputs.scenario.fields import Scenario
from hideaway.sim.world.inputs import Inputs
from hideaway.sim.world.simulate import load_inputs

_SEEDS_KEPT = 16


def inputs_of(scenario: Scenario) -> Inputs:
    """Return the inputs of a scenario; those with its model, routing and seed share one routing trace.

    Raises
    ------
    InputError
        Something that the scenario names does not exist, is malformed or does not fit together.
    """
    shared = _with_routing(scenario.model, scenario.expert_format, scenario.routing, scenario.seed)
    profile = load_profile(scenario.profile).with_values(dict(scenario.parameters))
    costs = CostModel(
        shared.model,
        profile,
        launch=scenario.launch,
        drafter_parameters=scenario.drafter_parameters,
        pageable=scenario.pageable,
    )
    requests = load_arrivals(
        scenario.trace,
        num_requests=scenario.requests,
        rate_requests_per_second=scenario.rate,
        rng=np.random.default_rng([scenario.seed, 3]),
        lengths_only=scenario.closed_loop is not None,
    )
    return replace(shared, costs=costs, acceptance=load_acceptance(scenario.acceptance), requests=requests)


@lru_cache(maxsize=_SEEDS_KEPT)
def _with_routing(model: str, expert_format: str | None, routing: str | None, seed: int) -> Inputs:
    return load_inputs(
        Scenario(model=model, expert_format=expert_format, routing=routing, seed=seed, requests=1)
    )
