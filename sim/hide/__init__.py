"""Do expert transfers hide? Four forms of the hiding inequality, their inverses, and what hiding is worth.

In the order in which they tell more: `nominal` (the frozen inequality over arrays), `union` (measured
transfers with their full costs), `staggered` and `depth_one` (exact exposed seconds; `arrivals` and `slots`
give the times they start from), `probabilistic` (over rounds, over calibration error). Then `inverse`,
`break_even` and `published`.

The frozen scalar form is in `hideaway.sim.contract`; nothing here knows the simulated machine, against
which the exact forms are checked.
"""

from hideaway.sim.hide.arrivals import link_arrival_seconds, link_seconds, split_by_layer, spread_over_layers
from hideaway.sim.hide.break_even import (
    Worth,
    break_even_acceptance_length,
    round_seconds,
    seconds_per_committed_token,
    worth,
)
from hideaway.sim.hide.depth_one import depth_one_exposed_seconds, depth_one_stalls_seconds
from hideaway.sim.hide.inverse import (
    as_ranges,
    hiding_set,
    smallest_bandwidth_bytes_per_second,
    smallest_resident_fraction,
)
from hideaway.sim.hide.nominal import NominalHide, evaluate_nominal, measured_saturation, nominal_saturation
from hideaway.sim.hide.probabilistic import (
    HiddenProbability,
    draw_parameters,
    mean_hidden_probability,
    round_hidden_probability,
)
from hideaway.sim.hide.published import (
    PublishedCase,
    Reading,
    deciding_assumptions,
    load_published_case,
    published_case_names,
    read_published_case,
)
from hideaway.sim.hide.slots import slot_limited_arrival_seconds
from hideaway.sim.hide.staggered import (
    barrier_exposed_seconds,
    barrier_stalls_seconds,
    smallest_staggered_window_seconds,
    staggered_exposed_seconds,
    staggered_stalls_seconds,
)
from hideaway.sim.hide.union import UnionHide, evaluate_union, missing_experts

__all__ = [
    "HiddenProbability",
    "NominalHide",
    "PublishedCase",
    "Reading",
    "UnionHide",
    "Worth",
    "as_ranges",
    "barrier_exposed_seconds",
    "barrier_stalls_seconds",
    "break_even_acceptance_length",
    "deciding_assumptions",
    "depth_one_exposed_seconds",
    "depth_one_stalls_seconds",
    "draw_parameters",
    "evaluate_nominal",
    "evaluate_union",
    "hiding_set",
    "link_arrival_seconds",
    "link_seconds",
    "load_published_case",
    "mean_hidden_probability",
    "measured_saturation",
    "missing_experts",
    "nominal_saturation",
    "published_case_names",
    "read_published_case",
    "round_hidden_probability",
    "round_seconds",
    "seconds_per_committed_token",
    "slot_limited_arrival_seconds",
    "smallest_bandwidth_bytes_per_second",
    "smallest_resident_fraction",
    "smallest_staggered_window_seconds",
    "split_by_layer",
    "spread_over_layers",
    "staggered_exposed_seconds",
    "staggered_stalls_seconds",
    "worth",
]
