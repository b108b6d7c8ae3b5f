"""Loads torch for a run, with threads that wait quietly, or says in one sentence that it is missing."""

from __future__ import annotations

import os

from hideaway.sim.errors import InputError


def make_torch_ready() -> None:
    """Import torch. Sets `OMP_WAIT_POLICY` where it is not set.

    OpenMP's threads spin between torch's calls unless told not to, on the very cores that compute and read experts:
    on two cores a forward then took four times as long. The library looks once, when torch is first imported.

    Raises
    ------
    InputError
        There is no torch.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise InputError(
            f"real runs need torch, which cannot be imported ({error}); install hideaway[hw]"
        ) from error
