"""One gate's verdict: what was compared with what, and why it passes, fails or cannot be said."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

Outcome = Literal["pass", "fail", "not measured"]
Origin = Literal["computed", "quoted", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateVerdict:
    """The verdict of one gate.

    `value` is compared with `limit`, both in `unit` (empty for a ratio); None where there is no figure.
    `origin` is "quoted" when the verdict, not the figures behind it, was published, and "none" when nothing
    was measured.
    """

    gate: str
    outcome: Outcome
    reason: str
    value: float | None = None
    limit: float | None = None
    unit: str = ""
    origin: Origin = "computed"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return dataclasses.asdict(self)


def not_measured(gate: str, reason: str) -> GateVerdict:
    """Return the verdict of a gate whose benchmark, or a part of it, is absent."""
    return GateVerdict(gate=gate, outcome="not measured", reason=reason, origin="none")
