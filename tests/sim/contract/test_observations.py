"""Rows in a file: appended, never overwritten, never lost, refused when malformed."""

import json
import os
import subprocess
import sys

import pytest

from hideaway.sim.contract import (
    BLOCKED_STATUS,
    REQUIRED_METRICS,
    UNAVAILABLE_CAPACITY,
    append_observation,
    load_observations,
    make_observation_row,
)
from hideaway.sim.contract.file_lock import exclusive_lock
from hideaway.sim.errors import InputError

METRICS = dict.fromkeys(REQUIRED_METRICS, 1.0)


def make_row(**changes):
    identity = {"model": "m", "draft": "d", "baseline": "B0", "block_size": 8, "concurrency": 1, "repeat": 0}
    return make_observation_row(**{**identity, "metrics": METRICS, **changes})


def test_rows_come_back_as_they_were_appended(tmp_path):
    path = tmp_path / "new" / "rows.json"
    first = make_row(cost_terms={"recall": 0.1 + 0.2}) | {"note": "é", "ranges": [1, None, {"x": True}]}
    second = make_row(baseline="B3", metrics={}, status=UNAVAILABLE_CAPACITY)
    append_observation(path, first)
    append_observation(str(path), second)
    assert load_observations(path) == [first, second]
    assert list(load_observations(path)[0]) == list(first)
    assert sorted(os.listdir(path.parent)) == ["rows.json"]


@pytest.mark.parametrize(
    "change",
    [
        {"model": "n"},
        {"draft": "e"},
        {"baseline": "B1"},
        {"block_size": 16},
        {"concurrency": 2},
        {"repeat": 1},
    ],
    ids=str,
)
def test_each_identity_key_tells_rows_apart(tmp_path, change):
    path = tmp_path / "rows.json"
    append_observation(path, make_row())
    append_observation(path, make_row(**change))
    assert len(load_observations(path)) == 2


def test_an_existing_row_is_never_overwritten(tmp_path):
    path = tmp_path / "rows.json"
    append_observation(path, make_row())
    before = path.read_bytes()
    with pytest.raises(ValueError, match="refusing to overwrite"):
        append_observation(path, make_row(metrics=dict.fromkeys(REQUIRED_METRICS, 2.0)))
    assert path.read_bytes() == before


def test_a_blocked_row_is_read_but_not_written_anew(tmp_path):
    path = tmp_path / "rows.json"
    blocked = make_row(baseline="B2", metrics={}, status=BLOCKED_STATUS)
    with pytest.raises(InputError, match="read from old files only"):
        append_observation(path, blocked)
    path.write_text(json.dumps([blocked]))
    append_observation(path, make_row())
    assert load_observations(path)[0] == blocked


def test_an_absent_or_empty_file_has_no_rows(tmp_path):
    assert load_observations(tmp_path / "absent.json") == []
    (tmp_path / "empty.json").write_bytes(b"")
    assert load_observations(tmp_path / "empty.json") == []


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("{}", "must be a list of rows"),
        ("[1, 2", "is not JSON"),
        ("null", "must be a list of rows"),
        ("[3]", "row 0 of .* is 3"),
        ('[{"model": "m"}]', "row 0 of .* has no 'draft'"),
        (json.dumps([make_row() | {"ttft_seconds": 1e999}]), r"row 0 of .*ttft_seconds"),
        (json.dumps([make_row() | {"extra": float("nan")}]), r"row 0 of .*extra"),
        (json.dumps([make_row(), make_row() | {"block_size": "8"}]), r"row 1 of .*block_size"),
        ("[" + "9" * 5000 + "]", "row file"),
        ("[" * 100_000, "is not JSON"),
        ("[" * 200 + "]" * 200, "row 0 of"),
    ],
)
def test_malformed_files_are_refused_in_one_sentence(tmp_path, content, named):
    path = tmp_path / "rows.json"
    path.write_text(content)
    with pytest.raises(InputError, match=named) as caught:
        load_observations(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=named):
        append_observation(path, make_row())
    assert path.read_text() == content


def test_a_file_that_is_not_text_or_is_a_folder_is_refused(tmp_path):
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not UTF-8"):
        load_observations(tmp_path / "binary.json")
    with pytest.raises(InputError, match="cannot read row file"):
        load_observations(tmp_path)


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="choose a folder you can write to"):
        append_observation(tmp_path / "file" / "rows.json", make_row())


APPENDER = """
import sys
from hideaway.sim.contract import REQUIRED_METRICS, append_observation, make_observation_row
path, draft = sys.argv[1:]
for repeat in range(25):
    append_observation(path, make_observation_row(
        model="m", draft=draft, baseline="B0", block_size=8, concurrency=1, repeat=repeat,
        metrics=dict.fromkeys(REQUIRED_METRICS, 1.0)))
"""


def test_processes_that_append_at_once_lose_and_double_nothing(tmp_path):
    path = tmp_path / "rows.json"
    drafts = ("a", "b", "c")
    processes = [subprocess.Popen([sys.executable, "-c", APPENDER, str(path), draft]) for draft in drafts]
    assert [process.wait(timeout=120) for process in processes] == [0, 0, 0]
    rows = load_observations(path)
    assert sorted((row["draft"], row["repeat"]) for row in rows) == [
        (d, r) for d in drafts for r in range(25)
    ]
    assert os.listdir(tmp_path) == ["rows.json"]


def fail_while_locked(path):
    with exclusive_lock(path):
        assert os.listdir(path.parent) == [".rows.json.lock"]
        raise KeyError


def test_the_lock_is_released_when_the_block_raises(tmp_path):
    path = tmp_path / "rows.json"
    with pytest.raises(KeyError):
        fail_while_locked(path)
    with exclusive_lock(path):
        pass
    assert os.listdir(tmp_path) == []
