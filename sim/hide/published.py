"""Published hiding inequalities, restated from their own terms, with the assumption that flips the verdict.

A published case says how many bytes moved; which of them were expert transfers, and whether a sequence's
fetch can hide behind its own draft, are assumptions. Each combination is evaluated, so that one sees which
assumption decides. The figures and their sources are files of `hideaway/sim/inputs/data/published/`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hideaway.sim.contract import HideInequality, evaluate_hide_inequality
from hideaway.sim.errors import InputError
from hideaway.sim.files import read_json
from hideaway.sim.hide.checks import as_positive, as_scalar

_FOLDER = Path(__file__).parent.parent / "inputs" / "data" / "published"
_FORMAT = "hideaway-published-case"


@dataclass(frozen=True, slots=True)
class PublishedCase:
    """The terms of a published inequality; times and bytes are totals over `num_rounds` rounds.

    `moved_bytes` is everything that crossed the link; `num_expert_copies` copies of `expert_bytes` each are
    the expert transfers among it.
    """

    name: str
    title: str
    moved_bytes: int
    num_expert_copies: int
    expert_bytes: int
    measured_h2d_bytes_per_second: float
    draft_seconds: float
    router_seconds: float
    verify_seconds: float
    overlap_seconds: float
    num_rounds: int
    acceptance_length: float
    sources: tuple[str, ...]
    caveats: tuple[str, ...]

    def __post_init__(self) -> None:
        for name in ("draft_seconds", "router_seconds", "verify_seconds", "overlap_seconds"):
            as_scalar(name, getattr(self, name))
        for name in ("moved_bytes", "expert_bytes", "measured_h2d_bytes_per_second", "num_rounds"):
            as_positive(name, getattr(self, name))
        if not 0 <= self.num_expert_copies * self.expert_bytes <= self.moved_bytes:
            raise InputError(
                f"{self.num_expert_copies} copies of {self.expert_bytes} bytes are not within the "
                f"{self.moved_bytes} bytes moved; correct the published case"
            )


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of a published case: what counts as fetch, what as window, and both sides that follow."""

    only_expert_copies: bool
    own_draft_in_window: bool
    form: HideInequality

    @property
    def margin_seconds(self) -> float:
        """Window minus fetch."""
        return self.form.hide_window_seconds - self.form.fetch_seconds


def published_case_names() -> tuple[str, ...]:
    """Return the names of the cases that are shipped."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.json")))


def load_published_case(name: str) -> PublishedCase:
    """Return a shipped case by name.

    Raises
    ------
    InputError
        There is no such case.
    """
    if name not in published_case_names():
        raise InputError(
            f"there is no published case {name!r}; the cases are {', '.join(published_case_names())}"
        )
    value: dict[str, Any] = read_json(_FOLDER / f"{name}.json", "published case")
    if value.pop("format", None) != _FORMAT or value.pop("version", None) != 1:
        raise InputError(f"published case {name!r} is not a {_FORMAT} of version 1; reinstall hideaway")
    for listed in ("sources", "caveats"):
        value[listed] = tuple(value[listed])
    value.pop("provenance")
    return PublishedCase(name=name, **value)


def read_published_case(case: PublishedCase) -> tuple[Reading, ...]:
    """Return every reading of a case, the published one (all bytes, own draft in the window) first."""
    readings = []
    for only_experts in (False, True):
        for own_draft in (True, False):
            form = evaluate_hide_inequality(
                resident_fraction=0.0,
                saturation=1.0,
                total_expert_bytes=case.num_expert_copies * case.expert_bytes
                if only_experts
                else case.moved_bytes,
                measured_h2d_bytes_per_second=case.measured_h2d_bytes_per_second,
                draft_seconds=case.draft_seconds if own_draft else 0.0,
                router_seconds=case.router_seconds,
                overlap_seconds=case.overlap_seconds,
            )
            readings.append(Reading(only_experts, own_draft, form))
    return tuple(readings)


def deciding_assumptions(readings: tuple[Reading, ...]) -> tuple[str, ...]:
    """Return the names of the single assumptions whose change alone flips the published verdict."""
    published = readings[0]
    changes = {
        "own_draft_in_window": (published.only_expert_copies, not published.own_draft_in_window),
        "only_expert_copies": (not published.only_expert_copies, published.own_draft_in_window),
    }
    by_reading = {(reading.only_expert_copies, reading.own_draft_in_window): reading for reading in readings}
    return tuple(
        name for name, key in changes.items() if by_reading[key].form.hidden != published.form.hidden
    )
