"""Every benchmark by name. A new family is one file and one line here."""

from __future__ import annotations

from collections.abc import Sequence

from hideaway.hw.microbenchmarks.attention import Attention
from hideaway.hw.microbenchmarks.benchmark import Benchmark
from hideaway.hw.microbenchmarks.contention import Contention
from hideaway.hw.microbenchmarks.cuda_copies import CudaCopies
from hideaway.hw.microbenchmarks.dense import Dense
from hideaway.hw.microbenchmarks.draft import Draft
from hideaway.hw.microbenchmarks.expert import Arrival, Experts
from hideaway.hw.microbenchmarks.head import Head, LayerEnd
from hideaway.hw.microbenchmarks.host import Memory
from hideaway.hw.microbenchmarks.issue import Issue
from hideaway.hw.microbenchmarks.link import Link
from hideaway.hw.microbenchmarks.router import Route, Router
from hideaway.hw.microbenchmarks.scheduling import Scheduling
from hideaway.hw.microbenchmarks.subject import Subject
from hideaway.hw.microbenchmarks.timer import Timer
from hideaway.sim.errors import InputError


def all_benchmarks(subject: Subject) -> dict[str, Benchmark]:
    """Return every benchmark of a subject by name."""
    every: list[Benchmark] = [
        Timer(subject),
        Memory(subject),
        Link(subject),
        Issue(subject),
        CudaCopies(subject),
        Experts(subject),
        Arrival(subject),
        Attention(subject),
        Router(subject),
        Dense(subject),
        LayerEnd(subject),
        Route(subject),
        Scheduling(subject),
        Draft(subject),
        Head(subject),
        Contention(subject),
    ]
    return {benchmark.name: benchmark for benchmark in every}


def chosen_benchmarks(subject: Subject, names: Sequence[str] | None) -> list[Benchmark]:
    """Return the benchmarks of these names, all of them where none is named.

    Raises
    ------
    InputError
        There is none of a name.
    """
    every = all_benchmarks(subject)
    if not names:
        return list(every.values())
    for name in names:
        if name not in every:
            raise InputError(f"there is no benchmark {name!r}; the benchmarks are {', '.join(every)}")
    return [every[name] for name in dict.fromkeys(names)]
