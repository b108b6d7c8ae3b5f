"""Hardware profiles: what operations cost on a machine, with error, origin and source of every figure.

`load_profile` is the way in; `Profile` is what the cost model reads.
"""

from __future__ import annotations

from hideaway.sim.inputs.profiles.load import builtin_profile_names, load_profile
from hideaway.sim.inputs.profiles.parameters import PARAMETERS, ParameterKind
from hideaway.sim.inputs.profiles.profile_file import ORIGINS, Parameter, Profile

__all__ = [
    "ORIGINS",
    "PARAMETERS",
    "Parameter",
    "ParameterKind",
    "Profile",
    "builtin_profile_names",
    "load_profile",
]
