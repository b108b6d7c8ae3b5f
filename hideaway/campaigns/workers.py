"""Run many independent pieces of work on every core, results in the order asked for.

Workers are fresh processes (spawn: the same everywhere, no inherited threads). A worker that is interrupted says
nothing; the parent reports. Progress goes to stderr.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TypeVar

from hideaway.console import progress

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
        Whatever a task raised.
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
            context = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(count, context, initializer=_ignore_interrupts) as pool:
                futures = {pool.submit(work, tasks[index]): index for index in order}
                try:
                    for future in as_completed(futures):
                        results[futures[future]] = future.result()
                        step()
                except BaseException:
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise
    return [results[index] for index in range(len(tasks))]


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
