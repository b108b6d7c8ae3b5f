"""`hideaway matrix --real`: every cell as often as asked, files of the contract, resumable, beside the simulation."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("torch")

from hideaway.campaigns.real_matrix import RealCell, planned_cells
from hideaway.campaigns.repeats import mean_rows, repeated_figures
from hideaway.main import main
from hideaway.report.repeat_table import separated_pairs
from hideaway.sim.contract import evaluate_matrix, load_observations
from hideaway.sim.contract.rows import observation_key
from tests.hw.engine.small_shape import scenario_in


@pytest.fixture
def words(tmp_path, monkeypatch):
    """Return the words of a small real matrix."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    scenario = scenario_in(tmp_path)
    return [
        "matrix", "--real", "--shape", scenario.model, "--routing", scenario.routing, "--trace", scenario.trace,
        "--requests", "3", "--concurrency", "1", "--block-size", "2", "4", "--slot-fraction", "0.5",
        "--drafter-parameters", "20000", "--layers", "3", "--threads", "1", "--baselines", "B0", "OURS",
        "--repeats", "2", "--out", str(tmp_path / "out"),
    ]  # fmt: skip


def test_a_real_matrix_writes_every_repeat_and_goes_on_where_it_stopped(words, tmp_path, capsys) -> None:
    folder = tmp_path / "out"
    assert main([*words, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    rows = load_observations(folder / "rows.json")
    places = {(row["baseline"], row["block_size"], row["repeat"]) for row in rows}
    assert places == {
        (name, block, repeat) for name, block in (("B0", 2), ("OURS", 2), ("OURS", 4)) for repeat in (0, 1)
    }
    assert sorted(map(observation_key, rows)) == sorted(map(observation_key, result["rows"]))
    cells = json.loads((folder / "matrix.json").read_text())
    assert all("OURS" in evaluate_matrix(cell)[1]["present"] for cell in cells.values())
    figures = json.loads((folder / "repeats.json").read_text())["figures"]
    speeds = [figure for figure in figures if figure["metric"] == "output_tokens_per_second"]
    assert all(figure["real_low"] < figure["real_mean"] < figure["real_high"] for figure in speeds)
    assert all(figure["simulated"] > 0 and figure["repeats"] == 2 for figure in speeds)
    for name in result["files"]:
        assert json.loads(json.dumps(name)).startswith(str(folder))

    kept = rows[1:]
    (folder / "rows.json").write_text(json.dumps(kept))
    assert main(words) == 0
    shown = capsys.readouterr()
    assert "5 of 6 runs are there already" in shown.err
    assert "real mean" in shown.out
    again = load_observations(folder / "rows.json")
    assert again[:5] == kept
    assert observation_key(again[5]) == observation_key(rows[0])


def test_rows_of_other_settings_are_not_gone_on_with(words, tmp_path, capsys) -> None:
    assert main([*words[:-2], "--repeats", "1", "--out", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    assert main([*words, "--seed", "3"]) == 2
    assert "holds the rows of other settings" in capsys.readouterr().err


def test_repeats_are_interleaved_in_an_order_drawn_anew() -> None:
    cells = planned_cells(["B0", "B1", "OURS"], [4, 8], [1, 4], 3, np.random.default_rng(0))
    per_repeat = len(cells) // 3
    assert per_repeat == 2 + 2 * 2 * 2  # B0 does not draft: at the first block size only
    rounds = [cells[at : at + per_repeat] for at in range(0, len(cells), per_repeat)]
    assert [{cell.repeat for cell in part} for part in rounds] == [{0}, {1}, {2}]
    orders = [[(cell.baseline, cell.block_size, cell.concurrency) for cell in part] for part in rounds]
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(orders[2])
    assert len({tuple(order) for order in orders}) == 3
    assert cells == planned_cells(["B0", "B1", "OURS"], [4, 8], [1, 4], 3, np.random.default_rng(0))
    assert RealCell("B0", 8, 1, 0) not in cells


def row(baseline: str, repeat: int, speed: float) -> dict[str, object]:
    figures = {
        "exposed_share": 0.2, "exposed_seconds": 1.0, "per_round_latency_seconds": 0.1,
        "expert_cache_hit_rate": 0.5, "moved_bytes_per_committed_token": 1e6, "output_tokens_per_second": speed,
    }  # fmt: skip
    place = {
        "model": "m",
        "draft": "",
        "baseline": baseline,
        "block_size": 8,
        "concurrency": 1,
        "repeat": repeat,
    }
    return {**place, **figures, "cost_terms": {"t_verify_seconds": speed / 10}}


def test_intervals_means_and_separated_pairs() -> None:
    real = [row("B0", at, speed) for at, speed in enumerate((10.0, 11.0, 12.0))]
    real += [row("B1", at, speed) for at, speed in enumerate((20.0, 21.0, 22.0))]
    real += [row("OURS", at, speed) for at, speed in enumerate((11.0, 12.0, 20.0))]
    figures = repeated_figures(real, [row("B0", 0, 22.0)])
    speeds = {figure.place[2]: figure for figure in figures if figure.metric == "output_tokens_per_second"}
    # t(0.975, 2) = 4.302653, standard error 1 / sqrt(3)
    assert speeds["B0"].real.high == pytest.approx(11.0 + 4.302653 / 3**0.5, rel=1e-6)
    assert speeds["B0"].relative_error == pytest.approx(1.0)
    assert speeds["B1"].relative_error is None
    assert separated_pairs(figures, "output_tokens_per_second") == [((8, 1, "B0"), (8, 1, "B1"))]
    means = {mean["baseline"]: mean for mean in mean_rows(real)}
    assert means["B1"]["output_tokens_per_second"] == 21.0
    assert means["B1"]["cost_terms"] == {"t_verify_seconds": pytest.approx(2.1)}
    assert means["OURS"]["repeat"] == 0
