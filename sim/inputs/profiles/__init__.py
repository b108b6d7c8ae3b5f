"""Hardware profiles: what operations cost on a machine, with error, origin and source of every figure.

`load_profile` is the way in; `Profile` is what the cost model reads.
"""

from __future__ import annotations

from hideaway.sim.inputs.profiles.load import builtin_profile_names, load_profile
from hideaway.sim.inputs.profiles.noise import OperationNoise
from hideaway.sim.inputs.profiles.parameters import (
    ALL_PARAMETERS,
    ATTENTION_FLOPS,
    CACHE_READ,
    DENSE_READ,
    OPTIONAL_PARAMETERS,
    PARAMETERS,
    SERIAL_SHARE,
    ParameterKind,
)
from hideaway.sim.inputs.profiles.profile_file import ORIGINS, Parameter, Profile

__all__ = [
    "ALL_PARAMETERS",
    "ATTENTION_FLOPS",
    "CACHE_READ",
    "DENSE_READ",
    "OPTIONAL_PARAMETERS",
    "ORIGINS",
    "PARAMETERS",
    "SERIAL_SHARE",
    "OperationNoise",
    "Parameter",
    "ParameterKind",
    "Profile",
    "builtin_profile_names",
    "load_profile",
]
