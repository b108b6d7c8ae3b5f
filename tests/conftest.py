"""Hypothesis profiles, chosen by the environment variable HYPOTHESIS_PROFILE: fast (default), ci, thorough.

`fast` and `ci` draw the same examples in every run, so that a red run is red again; `thorough` explores.
"""

import os

from hypothesis import settings

settings.register_profile("fast", max_examples=50, deadline=None, derandomize=True)
settings.register_profile("ci", max_examples=250, deadline=None, derandomize=True, print_blob=True)
settings.register_profile("thorough", max_examples=2500, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))
