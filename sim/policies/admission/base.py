"""What an admission policy is: given the drafted sequences' demands, it says who is verified now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hideaway.sim.admission import VerifyAdmission, VerifyDemand


class AdmissionPolicy(Protocol):
    """Chooses which drafted sequences are verified in this iteration."""

    needs_bytes: bool
    """Whether demands must carry the bytes of their predicted, non-resident experts."""

    def admit(self, demands: Sequence[VerifyDemand]) -> VerifyAdmission:
        """Return who verifies (in-flight ones are seated anyway, others admitted). Changes the carried deficit."""
        ...
