"""Verify every drafted sequence at once: continuous batching without a budget."""

from __future__ import annotations

from collections.abc import Sequence

from hideaway.sim.admission import Deficit2D, VerifyAdmission, VerifyDemand


class AdmitAll:
    """Seats everybody."""

    needs_bytes = False

    def admit(self, demands: Sequence[VerifyDemand]) -> VerifyAdmission:
        """Return all sequences as admitted; carries nothing."""
        everybody = tuple(demand.seq_id for demand in demands)
        return VerifyAdmission(seated_ids=(), admitted_ids=everybody, carried=Deficit2D(0, 0))
