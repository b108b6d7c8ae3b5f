"""Hypothesis strategies and small builders that several test files share."""

from __future__ import annotations

from hypothesis import strategies as st

from hideaway.sim.masks import experts_of


def masks(num_experts: int, *, minimum: int = 0, maximum: int | None = None) -> st.SearchStrategy[int]:
    """Return expert masks with between `minimum` and `maximum` experts."""
    experts = st.sets(st.integers(0, num_experts - 1), min_size=minimum, max_size=maximum)
    return experts.map(lambda chosen: sum(1 << expert for expert in chosen))


def submasks(mask: int) -> st.SearchStrategy[int]:
    """Return masks of some of the experts of `mask`."""
    if not mask:
        return st.just(0)
    return st.sets(st.sampled_from(list(experts_of(mask)))).map(lambda chosen: sum(1 << e for e in chosen))


def event_lists(
    num_experts: int, *, largest: int | None = None, max_events: int = 40
) -> st.SearchStrategy[list[int]]:
    """Return what the successive visits of one layer read: non-empty masks of at most `largest` experts."""
    return st.lists(masks(num_experts, minimum=1, maximum=largest), min_size=1, max_size=max_events)
