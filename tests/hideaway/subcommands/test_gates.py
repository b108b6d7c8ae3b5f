"""`hideaway gates`: what it prints, what it writes, and one sentence for bad input."""

import json
import random

import pytest

from hideaway.main import main
from hideaway.sim.contract import REQUIRED_BASELINES, REQUIRED_METRICS, make_observation_row
from hideaway.sim.contract.writers import write_rows_json
from hideaway.sim.verdicts.published import (
    PUBLISHED_BM2,
    PUBLISHED_BM3,
    PUBLISHED_BM4,
    PUBLISHED_FOLDER,
    PUBLISHED_ROWS,
)


def run_json(capsys, *words):
    assert main(["gates", *map(str, words), "--json"]) == 0
    captured = capsys.readouterr()
    return json.loads(captured.out), captured.err


def outcomes(document):
    return {verdict["gate"]: verdict["outcome"] for verdict in document["gates"]}


@pytest.fixture
def row_file(tmp_path):
    rows = [
        make_observation_row(
            model="m",
            draft="d",
            baseline=baseline,
            block_size=8,
            concurrency=1,
            repeat=0,
            metrics=dict.fromkeys(REQUIRED_METRICS, 1.0) | {"t_router_seconds": 0.1, "t_verify_seconds": 0.4},
        )
        for baseline in REQUIRED_BASELINES
    ]
    write_rows_json(tmp_path / "rows.json", rows)
    return tmp_path / "rows.json"


def test_without_rows_the_published_ones_are_judged(capsys):
    document, _ = run_json(capsys)
    assert outcomes(document) == {
        "BM1": "pass",
        "BM2": "fail",
        "BM3": "fail",
        "BM4": "fail",
        "BM5": "not measured",
    }
    assert len(document["cells"]) == 3
    assert not any(hop["keep"] for hop in document["hops"].values())
    assert (document["format"], document["version"]) == ("hideaway-gates", 1)


def test_with_rows_only_what_is_given_counts(capsys, row_file):
    document, _ = run_json(capsys, row_file)
    assert outcomes(document) == {"BM1": "pass"} | dict.fromkeys(["BM2", "BM3", "BM4", "BM5"], "not measured")
    assert document["gates"][0]["value"] == 0.25
    assert document["cells"][0]["complete"] is True
    assert document["inputs"] == {"rows": [str(row_file)], "bm2": None, "bm3": None, "bm4": [], "bm5": None}


def test_every_benchmark_file_is_used(capsys, row_file, tmp_path):
    files = {
        "bm2": {"per_expert_us": 900.0, "batched_us": 100.0, "window_us": 500.0},
        "bm3": {"ship_priority_band": True},
        "bm5": {name: dict.fromkeys(REQUIRED_METRICS, 1.0) for name in ("python_row", "cpp_row")},
    }
    words = [row_file]
    for name, content in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
        words += [f"--{name}", tmp_path / f"{name}.json"]
    for path in PUBLISHED_BM4:
        words += ["--bm4", path]
    document, _ = run_json(capsys, *words)
    assert outcomes(document) == {"BM1": "pass", "BM2": "pass", "BM3": "pass", "BM4": "fail", "BM5": "pass"}
    assert all(hop["keep"] for hop in document["hops"].values())


def test_a_given_benchmark_replaces_the_published_one(capsys, tmp_path):
    (tmp_path / "bm2.json").write_text('{"per_expert_us": 900.0, "batched_us": 100.0, "window_us": 500.0}')
    document, _ = run_json(capsys, "--bm2", tmp_path / "bm2.json")
    assert outcomes(document) == {
        "BM1": "pass",
        "BM2": "pass",
        "BM3": "fail",
        "BM4": "fail",
        "BM5": "not measured",
    }


def test_a_folder_stands_for_the_row_files_in_it(capsys, row_file):
    document, _ = run_json(capsys, PUBLISHED_ROWS, row_file)
    assert [cell["source"] for cell in document["cells"]] == [
        "gptoss-bm4-46808a3.json",
        "gptoss-bm4-619d2a7.json",
        "gptoss-validate-619d2a7.json",
        "rows.json",
    ]


def test_blocked_baselines_may_be_allowed(capsys, tmp_path, row_file):
    rows = json.loads(row_file.read_text())
    rows[2] = {key: value for key, value in rows[2].items() if key not in REQUIRED_METRICS}
    rows[2]["status"] = "BLOCKED_UNTIL_2D_SCHEDULER"
    row_file.write_text(json.dumps(rows))
    assert run_json(capsys, row_file)[0]["cells"][0]["complete"] is False
    assert run_json(capsys, row_file, "--allow-blocked", "B2")[0]["cells"][0]["complete"] is True


def test_tables_name_every_gate_hop_cell_and_default(capsys):
    assert main(["gates"]) == 0
    captured = capsys.readouterr()
    for word in (
        "BM1",
        "BM2",
        "BM3",
        "BM4",
        "BM5",
        "not measured",
        "batched_issuance",
        "gptoss-validate-619d2a7.json",
    ):
        assert word in captured.out
    assert "judging the rows and figures of the public experiment" in captured.err
    assert "bm5: no file" in captured.err
    assert "kv_occupancy_bytes fell back" in captured.err


def test_the_report_is_written_where_asked(capsys, tmp_path):
    document, error = run_json(capsys, "-o", tmp_path / "out" / "gates.json")
    assert json.loads((tmp_path / "out" / "gates.json").read_text()) == document
    assert "wrote" in error


def test_help_shows_an_example(capsys):
    assert main(["gates", "--help"]) == 0
    assert "hideaway gates rows.json --bm2 bm2.json" in capsys.readouterr().out


def refused(capsys, *words):
    code = main(["gates", *map(str, words)])
    captured = capsys.readouterr()
    assert code == 2
    assert captured.out == ""
    assert captured.err.startswith("hideaway: ")
    assert captured.err.count("\n") == 1
    return captured.err


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["absent.json"], "absent.json"),
        ([""], "does not exist"),
        (["x\0y"], "does not exist"),
        (["x" * 5000], "does not exist"),
        (["--bm2", ""], "cannot read BM2 file"),
        (["--bm2"], "--bm2"),
        (["--bm6", "x"], "--bm6"),
        (["--allow-blocked", "OURS"], "OURS"),
        (["-o", "/dev/null/x/y"], "cannot write"),
    ],
)
def test_bad_words_are_one_sentence(capsys, words, named):
    assert named in refused(capsys, *words)


def test_a_row_file_without_rows_and_a_folder_without_files_are_refused(capsys, tmp_path):
    assert "holds no .json file" in refused(capsys, tmp_path)
    (tmp_path / "rows.json").write_text("[]")
    assert "holds no rows" in refused(capsys, tmp_path)


MUTANTS = [
    None,
    True,
    -1,
    0,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "x",
    "\ud800",
    [],
    {},
    [[]],
    10**400,
    1e-320,
]


def mutate(value, draw):
    """Return a copy of a JSON value with one place replaced, removed or added."""
    if not isinstance(value, (dict, list)) or not value or draw.random() < 0.15:
        return draw.choice(MUTANTS)
    copy = value.copy()
    key = draw.choice(list(copy) if isinstance(copy, dict) else range(len(copy)))
    action = draw.random()
    if action < 0.2:
        del copy[key]
    elif action < 0.3 and isinstance(copy, dict):
        copy[draw.choice(["extra", "", "\ud800", "memcpys", "per_model"])] = draw.choice(MUTANTS)
    else:
        copy[key] = mutate(copy[key], draw)
    return copy


SOURCES = {
    "rows": sorted(PUBLISHED_ROWS.glob("*.json"))[0],
    "--bm2": PUBLISHED_BM2,
    "--bm3": PUBLISHED_BM3,
    "--bm4": PUBLISHED_BM4[0],
}


@pytest.mark.parametrize("flag", SOURCES)
def test_mutated_files_are_judged_or_refused_in_one_sentence(flag, capsys, tmp_path):
    valid = json.loads(SOURCES[flag].read_text())
    draw = random.Random(1408)
    refusals = 0
    for _ in range(60):
        path = tmp_path / "mutant.json"
        path.write_text(json.dumps(mutate(valid, draw)))
        code = main(["gates", str(path)] if flag == "rows" else ["gates", flag, str(path)])
        captured = capsys.readouterr()
        assert code in (0, 2)
        if code == 2:
            refusals += 1
            assert captured.out == ""
            assert captured.err.count("\n") == 1
            assert captured.err.startswith("hideaway: ")
    assert refusals > 0


def test_mutated_tables_are_judged_or_refused_in_one_sentence(capsys, tmp_path):
    valid = (PUBLISHED_FOLDER / "nvtx-range-summary-b766f8f.csv").read_text()
    draw = random.Random(1408)
    for _ in range(40):
        at = draw.randrange(len(valid))
        mutant = (
            valid[:at]
            + draw.choice([",", "\n", '"', "-", "e9", "\0", "", "é"])
            + valid[at + draw.randrange(3) :]
        )
        path = tmp_path / "mutant.csv"
        path.write_text(mutant)
        code = main(["gates", "--bm4", str(path), "--json"])
        captured = capsys.readouterr()
        assert code in (0, 2)
        if code == 2:
            assert captured.out == ""
            assert captured.err.count("\n") == 1
