"""What hiding is worth: seconds per committed token and the acceptance at which speculation pays.

"Hidden" alone rewards a slow drafter: the longer the draft, the more it hides. So beside every verdict stand
the seconds that one committed token costs and the acceptance length that would match B0 (autoregressive).
"""

from __future__ import annotations

from enum import Enum

import numpy as np
import numpy.typing as npt

from hideaway.sim.errors import InputError
from hideaway.sim.hide.checks import FloatArray, as_floats, as_positive


class Worth(Enum):
    """Hiding and speed together; the second part compares seconds per committed token with B0's."""

    HIDDEN_AND_PAYS = "hidden, and no slower than B0"
    HIDDEN_BUT_SLOWER = "hidden but slower than B0"
    EXPOSED_BUT_PAYS = "not hidden, yet no slower than B0"
    EXPOSED_AND_SLOWER = "not hidden and slower than B0"


def round_seconds(
    *,
    draft_seconds: npt.ArrayLike,
    router_seconds: npt.ArrayLike,
    verify_seconds: npt.ArrayLike,
    exposed_seconds: npt.ArrayLike,
) -> FloatArray:
    """Return the time of a lock-step round: draft, router pass, verify's compute and exposed transfers."""
    return np.asarray(
        as_floats("draft_seconds", draft_seconds)
        + as_floats("router_seconds", router_seconds)
        + as_floats("verify_seconds", verify_seconds)
        + as_floats("exposed_seconds", exposed_seconds)
    )


def seconds_per_committed_token(round_seconds: npt.ArrayLike, acceptance_length: npt.ArrayLike) -> FloatArray:
    """Return round time over a, the tokens committed per round, the target's own included (a >= 1)."""
    acceptance = as_floats("acceptance_length", acceptance_length)
    if np.any(acceptance < 1):
        raise InputError(
            f"acceptance_length is {np.min(acceptance):g}; the target's own token counts, so give 1 or more"
        )
    return np.asarray(as_floats("round_seconds", round_seconds) / acceptance)


def break_even_acceptance_length(
    round_seconds: npt.ArrayLike, b0_seconds_per_token: npt.ArrayLike
) -> FloatArray:
    """Return the a at which a round costs per token what B0 does: round time over B0's seconds per token.

    Below 1 speculation pays whatever is accepted; above the block size it cannot pay.
    """
    return np.asarray(
        as_floats("round_seconds", round_seconds) / as_positive("b0_seconds_per_token", b0_seconds_per_token)
    )


def worth(*, hidden: bool, seconds_per_token: float, b0_seconds_per_token: float) -> Worth:
    """Return the joint verdict on hiding and on speed against B0."""
    pays = seconds_per_token <= b0_seconds_per_token
    if hidden:
        return Worth.HIDDEN_AND_PAYS if pays else Worth.HIDDEN_BUT_SLOWER
    return Worth.EXPOSED_BUT_PAYS if pays else Worth.EXPOSED_AND_SLOWER
