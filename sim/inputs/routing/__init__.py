"""Which experts each token chooses: recorded traces, a router fitted to them, and fast unions over ranges.

Start with `load.py` (routing by name); a trace is in `trace.py`, what the simulation asks it in `union_table.py`,
how a router is made up in `generative.py`, and what is measured on any trace in `locality.py`.
"""

from hideaway.sim.inputs.routing.load import load_routing, routing_trace_names
from hideaway.sim.inputs.routing.router_fit_file import fitted_router_names
from hideaway.sim.inputs.routing.trace import RoutingTrace
from hideaway.sim.inputs.routing.union_table import UnionTable

__all__ = ["RoutingTrace", "UnionTable", "fitted_router_names", "load_routing", "routing_trace_names"]
