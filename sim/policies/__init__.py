"""One small file a rule, a sub-package a family; this table is the only place that names them.

A policy is asked through read-only arguments and never sees a clock, a file or a random generator that it was
not handed. `hideaway.sim.scheduler` asks; both worlds use the same objects.
"""
