"""A recorded run is read row by row, and a damaged or foreign file is one sentence."""

from __future__ import annotations

import numpy as np
import pytest

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.routing import UnionTable
from hideaway.sim.inputs.routing.recorded import RecordedAcceptance, read_recorded_run
from hideaway.sim.world.recorded_rows import RecordedRows

LAYERS, EXPERTS, TOP_K = 2, 8, 2


def arrays(**changes):
    """Two requests: 3 and 2 prompt tokens, 4 and 2 output tokens; request 0 lost two rows in its first round."""
    rng = np.random.default_rng(0)
    ids = np.array([[rng.choice(EXPERTS, TOP_K, False) for _ in range(LAYERS)] for _ in range(6 + 3 + 2)])
    return {
        "expert_ids": ids[:9].astype(np.int8),
        "num_experts": np.int64(EXPERTS),
        "top_k": np.int64(TOP_K),
        "seq_lengths": np.array([6, 3]),
        "phase": np.array([0, 0, 0, 1, 1, 1, 0, 0, 1]),
        "rejected_expert_ids": ids[9:].astype(np.int8),
        "rejected_seq_ids": np.array([0, 0]),
        "rejected_anchors": np.array([3, 3]),
        "rejected_rows": np.array([1, 2]),
        "rejected_distances": np.array([0, 1]),
        "round_seq_ids": np.array([0, 0, 1]),
        "round_lengths": np.array([1, 3, 1]),
        **changes,
    }


def written(path, **changes):
    np.savez_compressed(
        path, **{name: value for name, value in arrays(**changes).items() if value is not None}
    )
    return path


def test_rows_are_found_by_request_and_position(tmp_path) -> None:
    run = read_recorded_run(written(tmp_path / "run.npz"))
    assert (run.input_tokens, run.output_tokens) == ((3, 2), (4, 2))
    rows = RecordedRows(run, UnionTable(run.trace))
    rows.open(0)
    rows.open(1)
    assert rows.prompt(1, 0, 2, 2) == (6, 2)
    rows.advance(0, 1)
    rows.advance(1, 1)
    assert rows.block(0, 3, 1) == [(3, 1), (9, 2)]
    assert rows.kept(0, 1) == (3, 1)
    rows.advance(0, 1)
    assert rows.block(0, 2, 2) == [(4, 2)]
    assert rows.block(1, 1, 1) == [(8, 1)]
    with pytest.raises(
        InputError, match="was recorded with 0 rejected rows where a block of 4 rows that keeps 1 has 3"
    ):
        rows.block(1, 4, 1)


def test_requests_get_their_own_rounds_whatever_the_seed(tmp_path) -> None:
    run = read_recorded_run(written(tmp_path / "run.npz"))
    acceptance = RecordedAcceptance(run)
    first, second = (acceptance.sequence(np.random.default_rng(seed)) for seed in (5, 5))
    assert [first(3), first(3), second(3)] == [1, 3, 1]
    assert acceptance.mean_length(3) == pytest.approx(5 / 3)
    assert acceptance.mean_length(2) == pytest.approx(4 / 3)


@pytest.mark.parametrize(("changes", "words"), [
    ({"rejected_anchors": None}, "has no array rejected_anchors, so it is no recorded run"),
    ({"seq_lengths": np.array([6, 4])}, "is damaged .9 rows but 10 in requests"),
    ({"phase": np.ones(9, dtype=np.int64)}, "is damaged .a request has no prompt"),
    ({"round_seq_ids": np.array([0, 0, 7])}, "is damaged"),
    ({"round_lengths": np.array([1, 3])}, "is damaged"),
    ({"rejected_anchors": np.array([3])}, "is damaged"),
    ({"expert_ids": np.zeros((9, LAYERS, TOP_K), dtype=np.int8)}, "names an expert twice"),
    ({"num_experts": np.array([8, 8])}, "is damaged|store one whole number"),
])  # fmt: skip
def test_a_damaged_or_foreign_file_is_one_sentence(tmp_path, changes, words) -> None:
    with pytest.raises(InputError, match=words):
        read_recorded_run(written(tmp_path / "run.npz", **changes))


def test_rows_of_a_block_that_do_not_follow_one_another_are_refused(tmp_path) -> None:
    changes = {
        "rejected_expert_ids": np.array([[[0, 1]] * LAYERS] * 3),
        "rejected_seq_ids": np.array([0, 1, 0]),
    }
    with pytest.raises(InputError, match="do not follow one another"):
        read_recorded_run(written(tmp_path / "run.npz", rejected_anchors=np.array([3, 3, 3]), **changes))
