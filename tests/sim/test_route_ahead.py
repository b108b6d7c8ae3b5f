"""Unions, coverage and waste of route-ahead prefetching."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from hideaway.sim.route_ahead import (
    RouteAheadStats,
    RouteAheadStepSummary,
    prefetch_coverage,
    rejected_expert_ids,
    union_experts_from_logits,
    union_experts_from_mask,
)

MASK = np.array(
    [
        [1, 1, 0, 0, 0, 0, 0, 0],
        [0, 0, 1, 0, 0, 1, 0, 0],
        [1, 0, 0, 0, 0, 0, 0, 1],
    ],
    dtype=bool,
)
UNION = [0, 1, 2, 5, 7]
LOGITS = [
    [9.0, 1.0, 2.0, 8.0, 0.0, 3.0, 4.0, 5.0],
    [1.0, 0.0, 2.0, 9.0, 3.0, 8.0, 4.0, 5.0],
    [9.0, 2.0, 0.0, 1.0, 3.0, 4.0, 5.0, 8.0],
]


class DeviceTensor:
    """An array of another library: off-limits to NumPy until detached and brought to the host."""

    def __init__(self, array, on_host=False, has_numpy_type=True):
        self.array, self.on_host, self.has_numpy_type = np.asarray(array), on_host, has_numpy_type
        self.shape = self.array.shape

    def detach(self):
        return self

    def cpu(self):
        return DeviceTensor(self.array, on_host=True, has_numpy_type=self.has_numpy_type)

    def tolist(self):
        return self.array.tolist()

    def __array__(self, dtype=None, copy=None):
        if not (self.on_host and self.has_numpy_type):
            raise TypeError("cannot convert")
        return self.array


ARRAY_LIKES = {
    "numpy": np.asarray,
    "list": lambda array: np.asarray(array).tolist(),
    "tuples": lambda array: tuple(map(tuple, np.asarray(array).tolist())),
    "tensor": DeviceTensor,
    "tensor of a foreign type": lambda array: DeviceTensor(array, has_numpy_type=False),
}


@pytest.mark.parametrize("convert", ARRAY_LIKES.values(), ids=ARRAY_LIKES)
@pytest.mark.parametrize("dtype", [bool, np.int64, np.uint8, np.float32])
def test_mask_union_of_any_array_like(convert, dtype):
    union = union_experts_from_mask(convert(MASK.astype(dtype)))
    assert union == UNION
    assert {type(expert) for expert in union} == {int}


def test_mask_union_edges():
    assert union_experts_from_mask(np.zeros((0, 8))) == []
    assert union_experts_from_mask(np.zeros((4, 8))) == []
    assert union_experts_from_mask(DeviceTensor(np.zeros((0, 8)), has_numpy_type=False)) == []
    assert union_experts_from_mask([[0, -1, 0, 2]]) == [1, 3]


@pytest.mark.parametrize(
    "mask", [np.zeros(8), np.zeros((1, 2, 8)), [], 3, None, [[1, 2], [3]], [["a"]], [[np.nan]]], ids=str
)
def test_a_malformed_mask_is_refused(mask):
    with pytest.raises(ValueError, match="router_mask"):
        union_experts_from_mask(mask)


@pytest.mark.parametrize("convert", ARRAY_LIKES.values(), ids=ARRAY_LIKES)
def test_logits_union_is_every_rows_top_k(convert):
    assert union_experts_from_logits(convert(LOGITS), 2) == [0, 3, 5, 7]
    assert union_experts_from_logits(convert(LOGITS), 1) == [0, 3]
    assert union_experts_from_logits(convert(LOGITS), 8) == list(range(8))
    assert union_experts_from_logits(np.zeros((0, 8)), 2) == []


def test_equal_logits_take_the_lower_expert_and_compare_as_float32():
    assert union_experts_from_logits([[1.0, 1.0, 1.0]], 2) == [0, 1]
    assert union_experts_from_logits([[0.0, 1.0, 1.0 + 1e-12]], 1) == [1]
    assert union_experts_from_logits([[-np.inf, -1e300, -np.inf]], 1) == [0]
    assert union_experts_from_logits([[-np.inf, 2.0, -np.inf]], 1) == [1]


@pytest.mark.parametrize("top_k", [0, -1, 9, 1.5, None, True])
def test_top_k_outside_the_experts_is_refused(top_k):
    with pytest.raises(ValueError, match="top_k"):
        union_experts_from_logits(LOGITS, top_k)


@pytest.mark.parametrize("logits", [[1.0, 2.0], [[np.nan, 1.0]], [["a", "b"]], None])
def test_malformed_logits_are_refused(logits):
    with pytest.raises(ValueError, match="router_logits"):
        union_experts_from_logits(logits, 1)


@given(st.integers(1, 4), st.integers(0, 6), st.randoms(use_true_random=False))
def test_logits_and_the_mask_of_their_top_k_have_one_union(top_k, num_tokens, random):
    logits = [[float(v) for v in random.sample(range(100), 8)] for _ in range(num_tokens)]
    mask = np.zeros((num_tokens, 8), dtype=bool)
    for row, values in enumerate(logits):
        for value in sorted(values, reverse=True)[:top_k]:
            mask[row, values.index(value)] = True
    matrix = np.array(logits).reshape(num_tokens, 8)
    assert union_experts_from_logits(matrix, top_k) == union_experts_from_mask(mask)


@pytest.mark.parametrize(
    ("predicted", "actual", "expected"),
    [
        ([0, 3, 5, 7, 99], [0, 3, 5, 7], 1.0),
        ([0, 3, 4], [0, 3, 5, 7], 0.5),
        ([0, 0, 3, 3], [0, 3, 3, 5, 7, 7], 0.5),
        ([1, 2], [0, 3], 0.0),
        ([], [0, 3], 0.0),
        ([0, 3], [], 1.0),
        ([], [], 1.0),
        (np.array([[0, 3], [5, 5]]), {0, 3, 5, 7}, 0.75),
        (DeviceTensor([0, 3]), (i for i in [0.0, 3.0]), 1.0),
    ],
)
def test_coverage_is_the_share_of_actual_that_was_predicted(predicted, actual, expected):
    assert prefetch_coverage(predicted, actual) == expected


@pytest.mark.parametrize(
    ("full", "kept", "expected"),
    [
        (UNION, [0, 1], [2, 5, 7]),
        (UNION, UNION, []),
        (UNION, [], UNION),
        ([], [0], []),
        ([7, 0, 7], [3], [0, 7]),
    ],
)
def test_rejected_experts_are_the_sorted_difference(full, kept, expected):
    assert rejected_expert_ids(full, kept) == expected
    assert rejected_expert_ids(np.array(full, dtype=int), DeviceTensor(np.array(kept, dtype=int))) == expected


@pytest.mark.parametrize("ids", [[-1], [1.5], ["1"], [None], [True], 3, "12", None], ids=str)
def test_malformed_ids_are_refused(ids):
    with pytest.raises(ValueError, match=r"predicted|full_union"):
        prefetch_coverage(ids, [1])
    with pytest.raises(ValueError, match=r"predicted|full_union"):
        rejected_expert_ids(ids, [1])


def committed(*layers, kept_rows):
    stats = RouteAheadStats()
    stats.begin_step()
    for number, layer in enumerate(layers):
        stats.observe_layer(number, *layer)
    return stats, stats.commit_step(kept_rows)


def test_a_step_counts_predicted_routed_covered_kept_and_wasted():
    _, summary = committed((UNION, MASK), ([], MASK), kept_rows=1)
    assert summary == RouteAheadStepSummary(layers=2, predicted=5, actual=10, covered=5, kept=4, wasted=3)
    assert summary.coverage == 0.5


def test_coverage_is_one_when_nothing_was_needed():
    stats, summary = committed(([], np.zeros((1, 8))), kept_rows=1)
    assert summary == (1, 0, 0, 0, 0, 0, None, None, None)
    assert summary.coverage == stats.coverage == RouteAheadStats().coverage == 1.0
    assert stats.waste_ratio == RouteAheadStats().waste_ratio == 0.0


@pytest.mark.parametrize(
    ("kept_rows", "kept", "wasted"), [(99, 5, 0), (3, 5, 0), (1, 2, 3), (0, 0, 5), (-4, 0, 5)]
)
def test_kept_rows_are_clamped_to_the_rows_there_are(kept_rows, kept, wasted):
    _, summary = committed((UNION, MASK), kept_rows=kept_rows)
    assert (summary.kept, summary.wasted) == (kept, wasted)


@pytest.mark.parametrize("kept_rows", [1.5, None, "1", True])
def test_kept_rows_are_a_whole_number_and_a_refused_commit_drops_nothing(kept_rows):
    stats = RouteAheadStats()
    stats.observe_layer(0, UNION, MASK)
    with pytest.raises(ValueError, match="kept_rows"):
        stats.commit_step(kept_rows)
    assert stats.commit_step(1).layers == 1


def test_begin_step_drops_what_was_not_committed():
    stats = RouteAheadStats()
    stats.begin_step()
    stats.observe_layer(0, UNION, MASK)
    stats.begin_step()
    assert stats.commit_step(1) == RouteAheadStepSummary(0, 0, 0, 0, 0, 0)
    assert stats.as_dict() == RouteAheadStats().as_dict()


def test_a_committed_step_is_not_committed_again():
    stats, _ = committed((UNION, MASK), kept_rows=1)
    assert stats.commit_step(1).layers == 0
    assert stats.steps == 1


def test_predicted_bytes_are_kept_plus_wasted():
    sizes = {expert: (expert + 1) * 1024 for expert in range(8)}
    stats, summary = committed((UNION, MASK, sizes), kept_rows=1)
    assert summary.predicted_bytes == sum(sizes[expert] for expert in UNION)
    assert summary.kept_bytes == sizes[0] + sizes[1]
    assert summary.wasted_bytes == sizes[2] + sizes[5] + sizes[7]
    assert summary.predicted_bytes == summary.kept_bytes + summary.wasted_bytes
    totals = stats.as_dict()
    assert totals["predicted_prefetch_bytes"] == summary.predicted_bytes
    assert totals["kept_prefetch_bytes"] == summary.kept_bytes
    assert totals["wasted_prefetch_bytes"] == summary.wasted_bytes


def test_bytes_are_those_of_the_prediction_only():
    _, summary = committed(([3], MASK, {3: 10}), kept_rows=3)
    assert (summary.predicted_bytes, summary.kept_bytes, summary.wasted_bytes) == (10, 0, 10)
    assert summary.kept == 5


@pytest.mark.parametrize(
    "layers",
    [
        [(UNION, MASK)],
        [(UNION, MASK, None)],
        [(UNION, MASK, {0: 1, 1: 1, 2: 1, 5: 1})],
        [(UNION, MASK, dict.fromkeys(range(8), 1)), (UNION, MASK)],
    ],
    ids=["none", "explicitly none", "one expert's size absent", "one layer's sizes absent"],
)
def test_bytes_are_none_when_any_size_is_unknown(layers):
    stats, summary = committed(*layers, kept_rows=1)
    assert (summary.predicted_bytes, summary.kept_bytes, summary.wasted_bytes) == (None, None, None)
    assert stats.as_dict()["wasted_prefetch_bytes"] is None
    assert summary.wasted == 3 * len(layers)
    stats.observe_layer(0, UNION, MASK, dict.fromkeys(range(8), 1))
    assert stats.commit_step(1).wasted_bytes == 3
    assert stats.as_dict()["wasted_prefetch_bytes"] is None  # the earlier step's share stays unknown


def test_a_layer_that_prefetched_nothing_needs_no_sizes():
    stats, summary = committed(([], MASK), ([0, 2], MASK, {0: 7, 2: 9}), kept_rows=1)
    assert (summary.predicted_bytes, summary.kept_bytes, summary.wasted_bytes) == (16, 7, 9)
    stats.observe_layer(0, [], MASK)
    assert stats.commit_step(1).wasted_bytes is None
    assert stats.wasted_prefetch_bytes == 9


def test_totals_are_sums_and_ratios_are_of_sums():
    stats, _ = committed((UNION, MASK), ([], MASK), kept_rows=1)
    stats.observe_layer(0, UNION, MASK)
    stats.commit_step(3)
    assert stats.as_dict() == {
        "steps": 2,
        "layers_observed": 3,
        "predicted_experts": 10,
        "actual_experts": 15,
        "covered_experts": 10,
        "kept_experts": 9,
        "wasted_experts": 3,
        "coverage": 10 / 15,
        "waste_ratio": 0.3,
        "predicted_prefetch_bytes": None,
        "kept_prefetch_bytes": None,
        "wasted_prefetch_bytes": None,
    }
    stats.reset()
    assert stats.as_dict() == RouteAheadStats().as_dict()


def test_the_mask_is_copied_and_not_changed():
    mask = MASK.copy()
    stats = RouteAheadStats()
    stats.observe_layer(0, UNION, mask)
    mask[:] = False
    assert stats.commit_step(3).actual == 5
    assert not mask.any()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((0, [8], MASK), "predicted_ids holds 8 but router_mask has 8 experts"),
        ((0, [-1], MASK), "an expert id in predicted_ids is -1"),
        ((0, UNION, MASK[0]), "router_mask has shape"),
        ((-1, UNION, MASK), "layer is -1"),
        ((0, UNION, MASK, {0: -1}), r"expert_nbytes\[0\] is -1"),
        ((0, UNION, MASK, {"0": 1}), "an expert id in expert_nbytes"),
        ((0, UNION, MASK, 1024), "expert_nbytes is 1024"),
    ],
)
def test_a_malformed_observation_is_refused_and_not_recorded(arguments, named):
    stats = RouteAheadStats()
    with pytest.raises(ValueError, match=named):
        stats.observe_layer(*arguments)
    assert stats.commit_step(1).layers == 0


MASKS = npst.arrays(bool, st.tuples(st.integers(0, 5), st.just(6)))
LAYERS = st.lists(st.tuples(st.sets(st.integers(0, 5)), MASKS), max_size=4)


@given(
    st.lists(st.tuples(LAYERS, st.integers(-1, 7)), max_size=4),
    st.lists(st.integers(0, 10**12), min_size=6, max_size=6),
)
def test_every_total_agrees_with_sets_counted_by_hand(steps, sizes):
    stats = RouteAheadStats()
    predicted = actual = covered = kept = wasted = kept_bytes = wasted_bytes = 0
    for layers, kept_rows in steps:
        stats.begin_step()
        for number, (guess, mask) in enumerate(layers):
            stats.observe_layer(number, guess, mask, dict(enumerate(sizes)))
            routed = {e for row in mask.tolist() for e in range(6) if row[e]}
            used = {e for row in mask.tolist()[: max(kept_rows, 0)] for e in range(6) if row[e]}
            predicted += len(guess)
            actual += len(routed)
            covered += len(guess & routed)
            kept += len(used)
            wasted += len(guess - used)
            kept_bytes += sum(sizes[e] for e in guess & used)
            wasted_bytes += sum(sizes[e] for e in guess - used)
        summary = stats.commit_step(kept_rows)
        if layers:
            assert summary.predicted_bytes == summary.kept_bytes + summary.wasted_bytes
            assert summary.covered <= min(summary.predicted, summary.actual)
            assert summary.wasted <= summary.predicted
    assert stats.steps == sum(bool(layers) for layers, _ in steps)
    assert (stats.predicted_experts, stats.actual_experts, stats.covered_experts) == (
        predicted,
        actual,
        covered,
    )
    assert (stats.kept_experts, stats.wasted_experts) == (kept, wasted)
    if stats.steps:
        assert (stats.kept_prefetch_bytes, stats.wasted_prefetch_bytes) == (kept_bytes, wasted_bytes)
        assert stats.predicted_prefetch_bytes == kept_bytes + wasted_bytes
    assert 0 <= stats.coverage <= 1
    assert 0 <= stats.waste_ratio <= 1
