"""From a source of experts to a store on disk, on every core.

Experts are independent and may be written in any order, so the bytes of a store do not depend on the number of
workers. `synthetic.py` and `hf_experts.py` are the sources.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice, product

from hideaway.hw.store.reader import ExpertStore
from hideaway.hw.store.source import ExpertSource
from hideaway.hw.store.writer import StoreWriter
from hideaway.sim.number_checks import whole_number

_AHEAD = 2
"""Experts a worker may be ahead of the disk: bounds memory."""


def pack_experts(
    source: ExpertSource,
    path: str | os.PathLike[str],
    *,
    workers: int | None = None,
    progress: Callable[[], None] | None = None,
) -> ExpertStore:
    """Write all experts of a source and return the store, opened; nothing is left behind if it fails.

    Parameters
    ----------
    source : ExpertSource
        Asked for every expert once, from several threads.
    path : str or path
        The folder to make.
    workers : int, optional
        Threads that make experts; one a core by default. (numpy works without Python's lock.)
    progress : callable, optional
        Called after every expert.

    Raises
    ------
    InputError
        The source or the disk fails.
    """
    description = source.description
    count = whole_number("workers", workers or os.cpu_count() or 1, minimum=1)
    keys = product(range(description.num_layers), range(description.num_experts))
    with StoreWriter(path, description) as writer, ThreadPoolExecutor(count) as pool:

        def write(layer: int, expert: int) -> None:
            writer.write(layer, expert, source.expert(layer, expert))

        pending = {pool.submit(write, *key) for key in islice(keys, _AHEAD * count)}
        try:
            while pending:
                pending = _next(pool, write, pending, keys, progress)
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return ExpertStore(path)


def _next(
    pool: ThreadPoolExecutor,
    write: Callable[[int, int], None],
    pending: set[Future[None]],
    keys: Iterator[tuple[int, int]],
    progress: Callable[[], None] | None,
) -> set[Future[None]]:
    """Wait for some of the pending work, start as much anew, and return what is pending then."""
    done, rest = wait(pending, return_when=FIRST_COMPLETED)
    for future in done:
        future.result()
        if progress is not None:
            progress()
    return rest | {pool.submit(write, *key) for key in islice(keys, len(done))}
