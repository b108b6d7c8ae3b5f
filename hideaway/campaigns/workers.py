"""Run many independent pieces of work on every core, results in the order asked for.

Workers are fresh processes (spawn: the same everywhere, no inherited threads). Ctrl-C reaches the parent alone:
workers start with the signal held back and then ignore it, and the parent ends them. Progress goes to stderr.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TypeVar

from hideaway.console import progress
from hideaway.interrupts import interrupts_held_back
from hideaway.sim.errors import HideawayError

Task = TypeVar("Task")
Result = TypeVar("Result")


def run_all(
    work: Callable[[Task], Result],
    tasks: Sequence[Task],
    label: str,
    *,
    workers: int | None = None,
    cost: Callable[[Task], float] | None = None,
) -> list[Result]:
    """Return `work(task)` for every task, in the order of the tasks.

    Parameters
    ----------
    work : callable
        A module-level function, so that a worker can import it.
    workers : int, optional
        Processes; one a core by default. One worker runs in this process.
    cost : callable, optional
        Guess of a task's cost: dear tasks start first, which evens out the end.

    Raises
    ------
    InputError
        Whatever a task raised; what still runs is ended.
    HideawayError
        A worker was killed from outside.
    """
    count = min(workers or os.cpu_count() or 1, len(tasks))
    results: dict[int, Result] = {}
    order = sorted(range(len(tasks)), key=lambda index: -cost(tasks[index])) if cost else range(len(tasks))
    with progress(len(tasks), label) as step:
        if count <= 1:
            for index in order:
                results[index] = work(tasks[index])
                step()
        else:
            with _pool(count) as pool:
                with interrupts_held_back():
                    futures = {pool.submit(work, tasks[index]): index for index in order}
                for future in as_completed(futures):
                    results[futures[future]] = future.result()
                    step()
    return [results[index] for index in range(len(tasks))]


@contextmanager
def _pool(count: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of processes that are ended, whatever they do, when the block fails."""
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, context, initializer=_ignore_interrupts) as pool:
        try:
            yield pool
        except BaseException as error:
            pool.shutdown(wait=False, cancel_futures=True)
            workers = set(multiprocessing.active_children()) - others
            for worker in workers:
                worker.terminate()
            while any(worker.is_alive() for worker in workers):  # join() may return early: the pool waits too
                time.sleep(0.01)
            if isinstance(error, BrokenProcessPool):
                raise HideawayError(
                    "a worker process was killed, most likely for lack of memory; ask for fewer --workers"
                ) from error
            raise


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
