"""Microbenchmarks of the engine's own operations: what calibration fits the cost model to.

Read `benchmark.py` (what a benchmark declares), `session.py` (the harness: warm-up, order, stopping, discarding) and
`measure.py` (one measurement from start to file). `link.py`, `expert.py`, … are one family a file; `subject.py` and
`rig.py` hold the engine's objects that they time. Importing this package imports no torch.
"""
