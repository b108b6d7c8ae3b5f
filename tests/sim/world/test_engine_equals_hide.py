"""The simulated machine against the closed forms of the hiding inequality, on random cases."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.hide import (
    depth_one_exposed_seconds,
    link_arrival_seconds,
    split_by_layer,
    staggered_exposed_seconds,
)
from hideaway.sim.world.copies import LinkOptions
from tests.machine import LayerCosts, Machine

EXPERTS = 12
seconds = st.floats(min_value=0.0, max_value=1.0, allow_nan=False)
masks = st.integers(min_value=0, max_value=(1 << EXPERTS) - 1)


@st.composite
def cases(draw: st.DrawFn) -> dict:
    num_layers = draw(st.integers(1, 6))
    needed = draw(st.lists(masks.map(lambda mask: mask or 1), min_size=num_layers, max_size=num_layers))
    resident = draw(st.lists(masks, min_size=num_layers, max_size=num_layers))
    costs = [LayerCosts(draw(seconds), draw(seconds), draw(seconds), mask) for mask in resident]
    return {
        "num_experts": EXPERTS,
        "needed": needed,
        "resident": resident,
        "costs": costs,
        "issue_seconds": draw(seconds),
        "latency_seconds": draw(seconds),
        "copy_bytes_seconds": draw(st.floats(min_value=0.01, max_value=1.0)),
        "window_seconds": draw(seconds),
    }


def misses_of(case: dict) -> list[int]:
    pairs = zip(case["needed"], case["resident"], strict=True)
    return [(needed & ~resident).bit_count() for needed, resident in pairs]


def closed_form(case: dict, *, pipelined: bool) -> float:
    """Staggered form with every miss prefetched in layer order from time 0."""
    misses = misses_of(case)
    total = sum(misses)
    copy = case["latency_seconds"] + case["copy_bytes_seconds"]
    arrivals = link_arrival_seconds(
        [case["issue_seconds"]] * total, [copy] * total, pipelined_issue=pipelined
    )
    return staggered_exposed_seconds(
        case["window_seconds"],
        [cost.dense_seconds for cost in case["costs"]],
        [cost.hit_work_seconds for cost in case["costs"]],
        split_by_layer(arrivals, misses),
        [[cost.each_seconds] * count for cost, count in zip(case["costs"], misses, strict=True)],
    )


@given(cases())
def test_prefetched_experts_are_exposed_exactly_as_the_staggered_form_says(case: dict) -> None:
    slots = [EXPERTS] * len(case["needed"])
    for depth, pipelined in ((1, False), (1000, True)):
        _, waited, _ = Machine(slots=slots, options=LinkOptions(submitted_depth=depth), **case).run()
        assert waited == pytest.approx(closed_form(case, pipelined=pipelined), abs=1e-9)


@given(cases())
def test_the_whole_visit_time_is_work_plus_exposed(case: dict) -> None:
    slots = [EXPERTS] * len(case["needed"])
    end, waited, _ = Machine(slots=slots, options=LinkOptions(submitted_depth=1), **case).run()
    work = sum(
        cost.dense_seconds + cost.hit_work_seconds + cost.each_seconds * count
        for cost, count in zip(case["costs"], misses_of(case), strict=True)
    )
    assert end == pytest.approx(case["window_seconds"] + work + waited, abs=1e-9)


@given(cases(), st.data())
def test_blocking_slots_never_expose_less_than_the_staggered_form(case: dict, data: st.DataObject) -> None:
    slots = [data.draw(st.integers(max(1, resident.bit_count()), EXPERTS)) for resident in case["resident"]]
    _, waited, _ = Machine(slots=slots, options=LinkOptions(submitted_depth=1), **case).run()
    assert waited >= closed_form(case, pipelined=False) - 1e-9


@given(cases())
def test_without_prediction_exposed_time_is_the_depth_one_form(case: dict) -> None:
    slots = [EXPERTS] * len(case["needed"])
    _, waited, _ = Machine(slots=slots, options=LinkOptions(submitted_depth=1), prefetch=False, **case).run()
    copy = case["latency_seconds"] + case["copy_bytes_seconds"]
    misses = misses_of(case)
    expected = depth_one_exposed_seconds(
        [cost.hit_work_seconds for cost in case["costs"]],
        [
            link_arrival_seconds([case["issue_seconds"]] * count, [copy] * count, pipelined_issue=False)
            for count in misses
        ],
        [[cost.each_seconds] * count for cost, count in zip(case["costs"], misses, strict=True)],
    )
    assert waited == pytest.approx(expected, abs=1e-9)
