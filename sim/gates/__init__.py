"""The five gates of the public experiment, as pure rules over measured numbers.

BM1 router against verify, BM2 batched issuance, BM3 route-ahead priority band, BM4 overlap of bytes with
compute, BM5 issuance changes nothing that can be seen. Names, arguments and verdicts are the experiment's.
`hideaway.sim.verdicts` reads files and applies them.
"""

from hideaway.sim.gates.bm1 import summarise_row
from hideaway.sim.gates.bm2 import (
    BATCHED_PYBIND,
    CPP_INTERNAL,
    ISSUANCE_MODES,
    PYTHON_PER_EXPERT,
    Bm2Decision,
    bm2_decision,
    build_bm2_report,
)
from hideaway.sim.gates.bm3 import (
    BACKGROUND,
    ON_DEMAND,
    PRIORITY_BANDS,
    ROUTE_AHEAD,
    Bm3Decision,
    PriorityArm,
    bm3_decision,
    build_bm3_report,
    priority_arm,
)
from hideaway.sim.gates.bm4 import DEFAULT_COMPUTE_RANGES, Memcpy, NvtxRange, OverlapResult, compute_overlap
from hideaway.sim.gates.bm5 import cpp_hop_verdicts, summarise_bm5_equivalence
from hideaway.sim.gates.percentiles import median, percentiles_us

__all__ = [
    "BACKGROUND",
    "BATCHED_PYBIND",
    "CPP_INTERNAL",
    "DEFAULT_COMPUTE_RANGES",
    "ISSUANCE_MODES",
    "ON_DEMAND",
    "PRIORITY_BANDS",
    "PYTHON_PER_EXPERT",
    "ROUTE_AHEAD",
    "Bm2Decision",
    "Bm3Decision",
    "Memcpy",
    "NvtxRange",
    "OverlapResult",
    "PriorityArm",
    "bm2_decision",
    "bm3_decision",
    "build_bm2_report",
    "build_bm3_report",
    "compute_overlap",
    "cpp_hop_verdicts",
    "median",
    "percentiles_us",
    "priority_arm",
    "summarise_bm5_equivalence",
    "summarise_row",
]
