"""Many processes: results in order, and what happens when a task fails, a worker dies or the user interrupts."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time

import pytest

from hideaway.campaigns.workers import run_all
from hideaway.interrupts import interrupts_held_back
from hideaway.main import main
from hideaway.sim.errors import HideawayError, InputError
from hideaway.subcommands import simulate


def doubled(task: int) -> int:
    return 2 * task


def refused_at_three(task: int) -> int:
    if task == 3:
        raise InputError("three is not allowed; give another number")
    time.sleep(3600)
    return task


def killed(task: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return task


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_the_order_of_the_tasks(workers):
    assert run_all(doubled, [5, 1, 4], "numbers", workers=workers, cost=float) == [10, 2, 8]


def test_a_task_that_is_refused_ends_the_others():
    with pytest.raises(InputError, match="three is not allowed"):
        run_all(refused_at_three, [1, 3], "numbers", workers=2)
    assert multiprocessing.active_children() == []


def test_a_killed_worker_is_one_sentence():
    with pytest.raises(HideawayError, match=r"a worker process was killed, .*; ask for fewer --workers"):
        run_all(killed, [1, 2], "numbers", workers=2)


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (KeyboardInterrupt(), 130, "hideaway: interrupted; files already named are complete"),
        (MemoryError(), 1, "hideaway: there is not enough memory"),
        (HideawayError("the lock\nis gone; try again"), 1, "hideaway: the lock is gone; try again"),
    ],
)
def test_what_is_not_the_input_has_its_own_exit_code(error, code, sentence, monkeypatch, capsys):
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(simulate, "simulate", fail)
    assert main(["simulate", "--requests", "1"]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(sentence)
    assert captured.err.count("\n") == 1


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="no signal masks on this system")
def test_an_interrupt_that_is_held_back_comes_at_the_end():
    done = []

    def interrupted_work() -> None:
        with interrupts_held_back():
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        interrupted_work()
    assert done
