"""The real engine: executes the commands of the simulator's own scheduler on real experts with real transfers.

Read `run.py` first (one run from a scenario), then `engine.py` (the loop), `visitor.py` (one layer visit) and
`transfers.py` (experts on their way). None of these knows torch: what is computed stands behind `work.py`, and
`torch_work.py` is the real one.
"""
