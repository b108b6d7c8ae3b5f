"""Files of rows and matrices: every baseline of every cell, in one order, every digit kept."""

import csv
import json

import numpy as np
import pytest

from hideaway.sim.contract import (
    REQUIRED_METRICS,
    UNAVAILABLE_CAPACITY,
    aggregate_result_matrices,
    load_observations,
    make_observation_row,
)
from hideaway.sim.contract.writers import (
    write_matrix_csv,
    write_matrix_json,
    write_matrix_markdown,
    write_rows_json,
)
from hideaway.sim.errors import InputError

BASELINES = ["B3", "OURS", "B1", "B3-AR", "OURS-oracle", "B0", "B2", "B1+deficit"]
IN_ORDER = ["B0", "B1", "B2", "OURS", "OURS-oracle", "B3", "B3-AR", "B1+deficit"]


def make_row(baseline, concurrency):
    identity = {"model": "org/m|x", "draft": "d", "block_size": 8, "concurrency": concurrency, "repeat": 0}
    if baseline == "B3":
        return make_observation_row(**identity, baseline=baseline, metrics={}, status=UNAVAILABLE_CAPACITY)
    metrics = {name: 0.1 * index + concurrency for index, name in enumerate(REQUIRED_METRICS)}
    extra = {"exposed_seconds": 1 / 3, "scenario_hash": "abc", "aborted": None, "all_resident": True}
    return make_observation_row(
        **identity, baseline=baseline, metrics=metrics | extra, cost_terms={"recall": 0.5}
    )


@pytest.fixture
def rows():
    return [make_row(baseline, concurrency) for concurrency in (16, 2) for baseline in BASELINES]


def test_rows_written_load_again(tmp_path, rows):
    write_rows_json(tmp_path / "rows.json", rows)
    assert load_observations(tmp_path / "rows.json") == rows


def test_malformed_rows_are_not_written(tmp_path, rows):
    with pytest.raises(InputError, match="row 1 has no 'model'"):
        write_rows_json(tmp_path / "rows.json", [rows[0], {}])
    assert not (tmp_path / "rows.json").exists()


def test_matrix_json_holds_every_row_by_cell_and_baseline(tmp_path, rows):
    write_matrix_json(tmp_path / "matrix.json", aggregate_result_matrices(rows))
    document = json.loads((tmp_path / "matrix.json").read_text())
    assert list(document) == ["org/m|x|B8|c2", "org/m|x|B8|c16"]
    assert list(document["org/m|x|B8|c2"]) == IN_ORDER
    assert document["org/m|x|B8|c16"]["B3"]["status"] == UNAVAILABLE_CAPACITY
    assert document["org/m|x|B8|c2"]["OURS"] == make_row("OURS", 2)


def test_matrix_csv_prints_every_baseline_of_every_cell_with_every_digit(tmp_path, rows):
    write_matrix_csv(tmp_path / "matrix.csv", aggregate_result_matrices(rows))
    with (tmp_path / "matrix.csv").open(newline="") as stream:
        table = list(csv.DictReader(stream))
    columns = list(table[0])
    assert columns[:7] == ["model", "draft", "block_size", "concurrency", "baseline", "repeat", "status"]
    assert columns[7:] == [*REQUIRED_METRICS, "exposed_seconds"]
    assert [(line["concurrency"], line["baseline"]) for line in table] == [
        (c, b) for c in ("2", "16") for b in IN_ORDER
    ]
    by_baseline = {line["baseline"]: line for line in table[:8]}
    assert by_baseline["B3"]["status"] == UNAVAILABLE_CAPACITY
    assert {by_baseline["B3"][name] for name in REQUIRED_METRICS} == {""}
    assert float(by_baseline["OURS"]["exposed_seconds"]) == 1 / 3
    assert float(by_baseline["OURS"]["ttft_seconds"]) == 0.1 * 2 + 2


def test_matrix_markdown_prints_every_baseline_and_names_missing_ones(tmp_path, rows):
    kept = [row for row in rows if (row["baseline"], row["concurrency"]) != ("B2", 16)]
    write_matrix_markdown(tmp_path / "matrix.md", aggregate_result_matrices(kept))
    text = (tmp_path / "matrix.md").read_text()
    first, second = text.split("## ")[1:]
    assert first.startswith("org/m\\|x, block size 8, concurrency 2\n")
    assert [line.split(" | ")[0][2:] for line in first.splitlines() if line.startswith("| ")][2:] == IN_ORDER
    assert f"| B3 | {UNAVAILABLE_CAPACITY} |" in first
    assert "Missing baselines" not in first
    assert "Missing baselines: B2." in second
    assert " | ".join([*REQUIRED_METRICS, "exposed_seconds"]) in first


def test_numpy_numbers_print_as_numbers(tmp_path):
    row = make_row("B0", 2) | {"exposed_seconds": np.float64(0.25), "visits": np.int64(7)}
    matrices = {("m", 8, 2): {"B0": row}}
    write_matrix_csv(tmp_path / "matrix.csv", matrices)
    header, line = (tmp_path / "matrix.csv").read_text().splitlines()
    assert header.endswith("exposed_seconds,visits")
    assert line.endswith(",0.25,7")


def test_the_same_rows_in_another_order_give_the_same_bytes(tmp_path, rows):
    for name, given in (("a", rows), ("b", rows[::-1])):
        matrices = aggregate_result_matrices(given)
        write_matrix_json(tmp_path / f"{name}.json", matrices)
        write_matrix_csv(tmp_path / f"{name}.csv", matrices)
        write_matrix_markdown(tmp_path / f"{name}.md", matrices)
    for suffix in ("json", "csv", "md"):
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()
