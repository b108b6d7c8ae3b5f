"""The verdict over the things that have no threshold: block sizes and slots, each a set.

Terms at each block size come from the caller; slots change only what must move.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hideaway.sim.hide import as_ranges, evaluate_nominal, hiding_set
from hideaway.sim.hide.checks import FloatArray
from hideaway.subcommands.hide_chance import UnionSample
from hideaway.subcommands.hide_layers import union_form
from hideaway.subcommands.hide_terms import HideTerms

_LEAST_LARGEST_BLOCK = 32
_MOST_CANDIDATES = 256


@dataclass(frozen=True, slots=True)
class VerdictCurve:
    """Both sides at each candidate (N,); `union_fetch_seconds` has full transfer costs, or is None."""

    candidates: tuple[int, ...]
    fetch_seconds: FloatArray
    hide_window_seconds: FloatArray
    union_fetch_seconds: FloatArray | None

    @property
    def hiding(self) -> tuple[int, ...]:
        """Candidates that the nominal form calls hidden."""
        return hiding_set(self.candidates, self.fetch_seconds, self.hide_window_seconds)

    @property
    def hiding_by_union(self) -> tuple[int, ...] | None:
        """Candidates that the full-cost form calls hidden; None without it."""
        if self.union_fetch_seconds is None:
            return None
        return hiding_set(self.candidates, self.union_fetch_seconds, self.hide_window_seconds)

    def as_text(self, chosen: Sequence[int]) -> str:
        """Return a set of candidates as runs."""
        return as_ranges(chosen, self.candidates)


def block_candidates(block_size: int) -> tuple[int, ...]:
    """Return the block sizes to judge: 1 to twice the present one, at least to 32, at most to 256."""
    return tuple(range(1, min(_MOST_CANDIDATES, max(_LEAST_LARGEST_BLOCK, 2 * block_size)) + 1))


def block_curve(terms_at: Callable[[int], HideTerms], candidates: Sequence[int]) -> VerdictCurve:
    """Return both sides at each block size, with the terms of that block size."""
    all_terms = [terms_at(block_size) for block_size in candidates]
    fetch, window, union = [], [], []
    for terms in all_terms:
        form = evaluate_nominal(**terms.nominal.as_arguments())
        fetch.append(float(form.fetch_seconds))
        window.append(float(form.hide_window_seconds))
        if terms.transfers is not None:
            moved = terms.transfers.num_layers * terms.transfers.missing_per_layer
            union.append(float(union_form(terms.nominal, terms.transfers, moved).fetch_seconds))
    whole = np.array(union) if len(union) == len(all_terms) else None
    return VerdictCurve(tuple(candidates), np.array(fetch), np.array(window), whole)


def slot_curve(terms: HideTerms, sample: UnionSample | None) -> VerdictCurve | None:
    """Return both sides at each number of slots a layer, r = slots/E; None when E is not known.

    The full-cost side counts what a static hot set of that many slots misses in the sampled rounds, or
    (1 - slots/E) of the union without a sample.
    """
    if terms.block is None:
        return None
    slots = np.arange(terms.block.num_experts + 1)
    fractions = slots / terms.block.num_experts
    form = evaluate_nominal(**(terms.nominal.as_arguments() | {"resident_fraction": fractions}))
    union = None
    if terms.transfers is not None:
        if sample is None:
            missing = (1.0 - fractions) * terms.transfers.experts_per_layer
        else:
            missing = np.append(sample.needed.mean(axis=(0, 1))[::-1].cumsum()[::-1], 0.0)
        union = union_form(terms.nominal, terms.transfers, terms.transfers.num_layers * missing).fetch_seconds
    window = np.broadcast_to(form.hide_window_seconds, slots.shape)
    return VerdictCurve(tuple(slots.tolist()), form.fetch_seconds, window, union)
