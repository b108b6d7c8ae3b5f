"""BM4: bytes apportioned by the time a copy spends inside the union of named ranges."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.gates import DEFAULT_COMPUTE_RANGES, Memcpy, NvtxRange, compute_overlap

COMPUTE = ("dflash_draft", "route_ahead_router", "target_verify")


def ranges(*spans, name="dflash_draft"):
    return [NvtxRange(name, start, end) for start, end in spans]


@pytest.mark.parametrize(
    ("spans", "hidden"),
    [
        ([(0, 8)], 80),
        ([(20, 30)], 0),
        ([(-5, 25)], 100),
        ([(0, 4), (2, 10)], 100),
        ([(1, 2), (4, 5), (9, 30)], 30),
        ([(10, 20)], 0),
        ([(-3, 0)], 0),
        ([(5, 5)], 0),
        ([], 0),
    ],
)
def test_bytes_are_apportioned_by_covered_duration(spans, hidden):
    result = compute_overlap([Memcpy(0.0, 10.0, 100)], ranges(*spans), COMPUTE)
    assert result.total_h2d_bytes == 100
    assert result.overlapped_h2d_bytes == pytest.approx(hidden)
    assert result.overlap_fraction == pytest.approx(hidden / 100)


def test_no_bytes_is_no_division_by_zero():
    for copies in ([], [Memcpy(0, 1, 0)]):
        result = compute_overlap(copies, ranges((0, 1)), COMPUTE)
        assert (result.total_h2d_bytes, result.overlapped_h2d_bytes, result.overlap_fraction) == (0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("instant", "fraction"), [(0.0, 1.0), (1.5, 1.0), (3.0, 1.0), (3.5, 0.0), (-1.0, 0.0), (6.0, 1.0)]
)
def test_a_copy_of_no_duration_counts_whole_where_its_instant_is_covered(instant, fraction):
    result = compute_overlap([Memcpy(instant, instant, 10)], ranges((0, 3), (5, 7)), COMPUTE)
    assert result.per_memcpy_fraction == (fraction,)
    assert result.overlapped_h2d_bytes == 10 * fraction


def test_only_named_ranges_count_and_the_default_names_are_the_compute_phases():
    copies = [Memcpy(0, 10, 100)]
    for name in DEFAULT_COMPUTE_RANGES:
        assert compute_overlap(copies, ranges((0, 10), name=name)).overlap_fraction == 1.0
    for name in ("expert_h2d", "route_ahead_issue", "target_verify2"):
        assert compute_overlap(copies, ranges((0, 10), name=name)).overlap_fraction == 0.0
    assert DEFAULT_COMPUTE_RANGES == COMPUTE


def test_the_colon_of_an_empty_domain_does_not_matter_and_a_named_domain_does():
    copies = [Memcpy(0, 10, 100)]
    assert compute_overlap(copies, ranges((0, 10), name=":dflash_draft"), COMPUTE).overlap_fraction == 1.0
    assert (
        compute_overlap(copies, ranges((0, 10), name="expert_compute"), [":expert_compute"]).overlap_fraction
        == 1.0
    )
    assert compute_overlap(copies, ranges((0, 10), name="CCCL:dflash_draft"), COMPUTE).overlap_fraction == 0.0


def test_names_may_be_given_under_either_spelling():
    copies, spans = [Memcpy(0, 10, 100)], ranges((0, 5), name="x")
    expected = compute_overlap(copies, spans, ["x"])
    assert compute_overlap(copies, spans, compute_range_names=["x"]) == expected
    assert compute_overlap(copies, spans, compute_ranges=["x"]) == expected
    assert compute_overlap(copies, spans, compute_ranges=[]).overlap_fraction == 0.0
    with pytest.raises(ValueError, match="give a list of range names"):
        compute_overlap(copies, spans, "x")


@pytest.mark.parametrize(
    ("build", "named"),
    [
        (lambda: Memcpy(2.0, 1.0, 1), "the copy ends at 1, before its start at 2"),
        (lambda: Memcpy(0.0, math.nan, 1), "end of the copy is nan"),
        (lambda: Memcpy(0.0, math.inf, 1), "end of the copy is inf"),
        (lambda: Memcpy(0.0, 1.0, -1), "bytes is -1"),
        (lambda: Memcpy(0.0, 1.0, 1.5), r"bytes is 1\.5"),
        (lambda: Memcpy(0.0, 1.0, 10**400), "bytes is 1000"),
        (lambda: NvtxRange("x", 2.0, 1.0), "the range 'x' ends at 1, before its start at 2"),
        (lambda: NvtxRange(3, 0.0, 1.0), "the name of a range is 3"),
        (lambda: NvtxRange("x", None, 1.0), "start of the range 'x' is None"),
    ],
)
def test_malformed_intervals_are_refused(build, named):
    with pytest.raises(ValueError, match=named):
        build()


TIMES = st.integers(0, 40)
COPIES = st.lists(
    st.builds(lambda s, d, b: Memcpy(s, s + d, b), TIMES, st.integers(0, 10), st.integers(0, 1000)),
    max_size=8,
)
SPANS = st.lists(
    st.builds(
        lambda n, s, d: NvtxRange(n, s, s + d),
        st.sampled_from([*COMPUTE, "other"]),
        TIMES,
        st.integers(0, 10),
    ),
    max_size=8,
)


@given(COPIES, SPANS)
def test_a_count_of_unit_ticks_gives_the_same_bytes(copies, spans):
    covered = {tick for span in spans if span.name != "other" for tick in range(span.start, span.end)}
    instants = {
        tick
        for span in spans
        if span.name != "other" and span.end > span.start
        for tick in range(span.start, span.end + 1)
    }
    expected = 0.0
    for copy in copies:
        ticks = range(copy.start, copy.end)
        inside = (
            sum(tick in covered for tick in ticks) / len(ticks) if ticks else float(copy.start in instants)
        )
        expected += copy.bytes * inside
    result = compute_overlap(copies, spans)
    assert result.overlapped_h2d_bytes == pytest.approx(expected)
    assert 0 <= result.overlap_fraction <= 1
    assert result.total_h2d_bytes == sum(copy.bytes for copy in copies)
