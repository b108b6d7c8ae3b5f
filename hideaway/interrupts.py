"""Ctrl-C held back where it would get lost or do harm: while modules load and while processes start.

Some packages swallow any exception while they load, and a process that dies of Ctrl-C while it starts prints a
traceback. What was held back is delivered at the end of the block.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Hold Ctrl-C back during the block; processes started in it never get it. Nothing where signals have no masks."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
