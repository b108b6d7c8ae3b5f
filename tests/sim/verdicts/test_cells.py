"""Rows judged cell by cell, repeat by repeat."""

import pytest

from hideaway.sim.contract import (
    BLOCKED_STATUS,
    REQUIRED_BASELINES,
    REQUIRED_METRICS,
    UNAVAILABLE_CAPACITY,
    make_observation_row,
)
from hideaway.sim.verdicts import judge_rows


def row(baseline, concurrency=1, repeat=0, status=None, acceptance=3.0):
    metrics = dict.fromkeys(REQUIRED_METRICS, 1.0) | {"acceptance_length_a": acceptance}
    return make_observation_row(
        model="m",
        draft="d",
        baseline=baseline,
        block_size=8,
        concurrency=concurrency,
        repeat=repeat,
        metrics={} if status else metrics,
        status=status,
    )


def test_cells_of_every_repeat_are_judged_apart():
    rows = [row(baseline, 2, repeat) for repeat in (1, 0) for baseline in REQUIRED_BASELINES]
    rows += [row("B0", 1, 1), row("OURS", 2, 1)]
    cells = judge_rows(rows, "rows.json")
    assert [(cell.repeat, cell.concurrency, cell.complete) for cell in cells] == [
        (0, 2, True),
        (1, 1, False),
        (1, 2, True),
    ]
    assert cells[1].missing == ("B1", "B2", "B3")
    assert cells[2].present == ("B0", "B1", "B2", "OURS", "B3")
    assert {cell.source for cell in cells} == {"rows.json"}


def test_an_upper_bound_that_does_not_fit_leaves_the_cell_complete():
    rows = [row(baseline) for baseline in ("B0", "B1", "B2")] + [row("B3", status=UNAVAILABLE_CAPACITY)]
    (cell,) = judge_rows(rows, "x")
    assert (cell.complete, cell.blocked) == (True, ("B3",))


def test_a_blocked_baseline_leaves_it_incomplete_unless_allowed():
    rows = [row(baseline) for baseline in ("B0", "B1", "B3")] + [row("B2", status=BLOCKED_STATUS)]
    assert judge_rows(rows, "x")[0].complete is False
    assert judge_rows(rows, "x", ["B2"])[0].complete is True


def test_a_row_with_malformed_metrics_is_named():
    bad = row("B1")
    del bad["ttft_seconds"]
    (cell,) = judge_rows([row("B0"), bad], "x")
    assert cell.invalid == ("B1",)


def test_one_baseline_twice_in_a_repeat_is_refused():
    with pytest.raises(ValueError, match="duplicate baseline B0"):
        judge_rows([row("B0"), row("B0")], "x")


def test_speculation_that_accepts_nothing_is_remarked_on():
    cells = judge_rows([row("B0", acceptance=1.0), row("B1", acceptance=1.0)], "x")
    assert [warning.split(":")[0] for warning in cells[0].warnings] == ["B1"]


def test_fields_by_name_are_plain():
    fields = judge_rows([row("B0")], "x")[0].to_dict()
    assert fields["present"] == ["B0"]
    assert fields["missing"] == ["B1", "B2", "B3"]
