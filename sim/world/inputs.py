"""What a scenario names, loaded: shared by every run of a matrix."""

from __future__ import annotations

from dataclasses import dataclass

from hideaway.sim.costs import CostModel
from hideaway.sim.inputs.acceptance import AcceptanceModel
from hideaway.sim.inputs.arrivals import RequestSpec
from hideaway.sim.inputs.models import ModelSpec
from hideaway.sim.inputs.routing import RoutingTrace, UnionTable
from hideaway.sim.inputs.routing.recorded import RecordedRun


@dataclass(frozen=True, slots=True)
class Inputs:
    """Model, costs, routing, acceptance and requests of a scenario.

    Parameters
    ----------
    recorded : RecordedRun or None
        The run that is replayed whole, where one is.
    """

    model: ModelSpec
    costs: CostModel
    trace: RoutingTrace
    table: UnionTable
    acceptance: AcceptanceModel
    requests: tuple[RequestSpec, ...]
    recorded: RecordedRun | None = None
