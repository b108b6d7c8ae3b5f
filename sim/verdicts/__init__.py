"""Verdicts over files: rows into cells, benchmark files into the gates' rules, one verdict a gate.

A benchmark that is absent is "not measured", never zero. `readers` and `range_summaries` read what was
measured, `cells` judges rows, `judges` the gates, `published` names the files that ship.
"""

from hideaway.sim.verdicts.cells import CellVerdict, judge_rows
from hideaway.sim.verdicts.gate_verdict import GateVerdict
from hideaway.sim.verdicts.judges import GateReport, judge_gates
from hideaway.sim.verdicts.measurements import GateMeasurements
from hideaway.sim.verdicts.readers import read_bm2, read_bm3, read_bm4, read_bm5

__all__ = [
    "CellVerdict",
    "GateMeasurements",
    "GateReport",
    "GateVerdict",
    "judge_gates",
    "judge_rows",
    "read_bm2",
    "read_bm3",
    "read_bm4",
    "read_bm5",
]
