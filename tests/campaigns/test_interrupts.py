"""Ctrl-C while a matrix runs: one line, exit code 130, no half file, no traceback of a worker, no worker left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="workers are found through /proc"),
]

PATIENCE_SECONDS = 120
SENTENCE = "hideaway: interrupted; files already named are complete, nothing else was written\n"
MATRIX = ("matrix", "--requests", "512", "--workers", "2", "--out")
STARTED_CPU_SECONDS = 1.5
"""What a worker needs to load its modules and begin with a cell, more or less."""


def workers_of(pid: int) -> list[int]:
    """Return the processes that `pid` started to work for it."""
    found = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            words = Path(f"/proc/{child}/cmdline").read_bytes()
        except FileNotFoundError:
            continue
        if b"spawn_main" in words:
            found.append(int(child))
    return found


def cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"no {what} within {PATIENCE_SECONDS} s"
        time.sleep(0.02)


def start(folder: Path) -> subprocess.Popen[str]:
    """Start a long matrix as the leader of its own group, as a terminal would."""
    return subprocess.Popen(
        [sys.executable, "-m", "hideaway", *MATRIX, str(folder / "results")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize("to_all", [True, False], ids=["to the whole group", "to the parent alone"])
@pytest.mark.parametrize("moment", ["workers start", "workers work"])
def test_an_interrupted_matrix_says_one_line_and_leaves_nothing(moment, to_all, tmp_path):
    process = start(tmp_path)
    try:
        wait_until(lambda: bool(workers_of(process.pid)), "worker")
        if moment == "workers work":
            wait_until(
                lambda: all(cpu_seconds(worker) > STARTED_CPU_SECONDS for worker in workers_of(process.pid)),
                "worker that works",
            )
        workers = workers_of(process.pid)
        if to_all:
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert (process.returncode, out, err) == (130, "", SENTENCE)
    assert list(tmp_path.rglob("*")) == []
    wait_until(lambda: not any(map(is_running, workers)), "end of the workers")


def test_an_interrupt_while_modules_load_is_not_lost(tmp_path):
    """Some packages swallow any exception while they load: numpy is the first that the command's module needs."""
    process = start(tmp_path)
    wait_until(lambda: "numpy" in Path(f"/proc/{process.pid}/maps").read_text(), "numpy")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, out, err) == (130, "", SENTENCE)
