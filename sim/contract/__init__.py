"""The frozen contract: metric and baseline names, the nominal inequality, rows, matrices.

Names, arguments and verdicts are those of the public experiment, so that its programs and files work here.
The files behind it, in a row's order: `metric_names`, `hide_terms`, `rows`, `observations`, `matrix`,
`writers`.
"""

from hideaway.sim.contract.hide_terms import HideInequality, evaluate_hide_inequality
from hideaway.sim.contract.matrix import aggregate_result_matrices, evaluate_matrix, validate_result_matrix
from hideaway.sim.contract.metric_names import (
    BLOCKED_STATUS,
    REQUIRED_BASELINES,
    REQUIRED_METRICS,
    UNAVAILABLE_CAPACITY,
)
from hideaway.sim.contract.observations import append_observation, load_observations
from hideaway.sim.contract.rows import make_observation_row, require_offloaded

__all__ = [
    "BLOCKED_STATUS",
    "REQUIRED_BASELINES",
    "REQUIRED_METRICS",
    "UNAVAILABLE_CAPACITY",
    "HideInequality",
    "aggregate_result_matrices",
    "append_observation",
    "evaluate_hide_inequality",
    "evaluate_matrix",
    "load_observations",
    "make_observation_row",
    "require_offloaded",
    "validate_result_matrix",
]
