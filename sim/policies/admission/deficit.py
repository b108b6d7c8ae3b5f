"""Deficit admission by tokens (B2) or by tokens and expert bytes (OURS): the frozen rule of `hideaway.sim.admission`.

The token dimension alone is the same rule with a byte budget that never binds. Known consequences of the frozen
rule, shown in its tests: a large demand can starve behind small ones, and experts that two sequences share are
counted twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from hideaway.sim.admission import Deficit2D, VerifyAdmission, VerifyDemand, admit_verify_demands

UNBOUNDED_BYTES = 1 << 62


class DeficitAdmission:
    """Seats sequences while their demands fit the budget and what was carried over.

    Parameters
    ----------
    budget : Deficit2D
        Tokens and expert bytes added per iteration (tau, beta).
    deficit_cap : Deficit2D
        Most that may be carried (D_max), at least the largest single demand in each dimension.
    """

    def __init__(self, budget: Deficit2D, deficit_cap: Deficit2D) -> None:
        self.budget = budget
        self.deficit_cap = deficit_cap
        self.carried = Deficit2D(0, 0)
        self.needs_bytes = budget.expert_bytes < UNBOUNDED_BYTES

    @classmethod
    def by_tokens(cls, token_budget: int, token_cap: int) -> DeficitAdmission:
        """Return the rule in the token dimension only."""
        return cls(Deficit2D(token_budget, UNBOUNDED_BYTES), Deficit2D(token_cap, UNBOUNDED_BYTES))

    def admit(self, demands: Sequence[VerifyDemand]) -> VerifyAdmission:
        """Return who is seated; keeps what is carried. Changes state."""
        admission = admit_verify_demands(demands, self.budget, self.carried, self.deficit_cap)
        self.carried = admission.carried
        return admission
