"""Two independent replays of a round to hold the closed forms against: a list scheduler and a SimPy model.

Both know servers and what waits for what; neither knows a formula. Durations are multiples of 1/8 below
2**10, so that every sum is exact and results can be compared with ==.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
import simpy
from hypothesis import strategies as st


@dataclass(frozen=True)
class Round:
    """One verify: window; by layer dense work, hits' work and (issue, copy, work) of each missing expert."""

    window: float
    dense: list[float]
    hits: list[float]
    misses: list[list[tuple[float, float, float]]]

    def part(self, index):
        return [[miss[index] for miss in layer] for layer in self.misses]

    @property
    def works(self):
        return self.part(2)

    @property
    def flat(self):
        return [miss for layer in self.misses for miss in layer]

    @property
    def counts(self):
        return [len(layer) for layer in self.misses]


@dataclass
class Replay:
    """What a replay saw: stall of each layer's compute, and when each copy ended, layer by layer."""

    stalls: list[float]
    arrivals: list[list[float]] = field(default_factory=list)

    @property
    def exposed(self):
        return sum(self.stalls)


def list_schedule(
    round_, *, barrier=False, blocking=False, num_slots=None, released="expert", depth_one=False
):
    """Run ordered jobs on three servers; a job starts when its server is free and what it awaits is done."""
    host, link, compute = [], [], [("window", round_.window, [])]
    releases = []
    for layer, misses in enumerate(round_.misses):
        first = len(releases)
        own = [("copy", n) for n in range(first, first + len(misses))]
        compute.append((("dense", layer), round_.dense[layer], []))
        compute.append((("hits", layer), round_.hits[layer], own if barrier else []))
        for n, (issue, copy, work) in enumerate(misses, start=first):
            host_waits = [("dense", layer)] if depth_one else []
            host_waits += [("copy", n - 1)] if blocking and n > 0 else []
            host.append((("issue", n), issue, host_waits))
            slot_waits = [releases[n - num_slots]] if num_slots is not None and n >= num_slots else []
            link.append((("copy", n), copy, [("issue", n), *slot_waits]))
            compute.append((("work", n), work, [("copy", n)]))
            releases.append(("work", n) if released == "expert" else ("end", layer))
        compute.append((("end", layer), 0.0, []))
    starts, ends = _run([host, link, compute])
    stalls, free_at, layer = [0.0] * len(round_.misses), round_.window, -1
    for key, duration, _ in compute[1:]:
        layer += key[0] == "dense"
        stalls[layer] += starts[key] - free_at
        free_at = starts[key] + duration
    return Replay(stalls, _split([ends[("copy", n)] for n in range(len(releases))], round_.counts))


def _run(servers):
    """Return when each job started and ended; refuses a deadlock."""
    queues = [list(reversed(jobs)) for jobs in servers]
    running = [None] * len(queues)
    starts, ends, now = {}, {}, 0.0
    while any(queues) or any(running):
        progressed = True
        while progressed:
            progressed = False
            for index, queue in enumerate(queues):
                if running[index] and running[index][1] <= now:
                    ends[running[index][0]] = now
                    running[index], progressed = None, True
                if queue and not running[index] and all(wait in ends for wait in queue[-1][2]):
                    key, duration, _ = queue.pop()
                    starts[key] = now
                    running[index], progressed = (key, now + duration), True
        unfinished = [job[1] for job in running if job]
        if not unfinished and any(queues):
            raise RuntimeError("deadlock")
        now = min(unfinished, default=now)
    return starts, ends


def simpy_round(round_, *, barrier=False, depth_one=False):
    """The same round as three SimPy processes that pass events to each other."""
    env = simpy.Environment()
    arrived = [[env.event() for _ in layer] for layer in round_.misses]
    routed = [env.event() for _ in round_.misses]
    issued = simpy.Store(env)
    stalls = [0.0] * len(round_.misses)

    def host():
        for layer, misses in enumerate(round_.misses):
            if depth_one:
                yield routed[layer]
            for (issue, copy, _), event in zip(misses, arrived[layer], strict=True):
                yield env.timeout(issue)
                yield issued.put((copy, event))

    def link():
        while True:
            copy, event = yield issued.get()
            yield env.timeout(copy)
            event.succeed(env.now)

    def wait(layer, event):
        before = env.now
        yield event
        stalls[layer] += env.now - before

    def compute():
        yield env.timeout(round_.window)
        for layer, misses in enumerate(round_.misses):
            yield env.timeout(round_.dense[layer])
            routed[layer].succeed()
            if barrier:
                yield from wait(layer, env.all_of(arrived[layer]))
            yield env.timeout(round_.hits[layer])
            for (_, _, work), event in zip(misses, arrived[layer], strict=True):
                if not event.processed:
                    yield from wait(layer, event)
                yield env.timeout(work)

    env.process(host())
    env.process(link())
    env.run(env.process(compute()))
    return Replay(stalls, [[event.value for event in layer] for layer in arrived])


def _split(flat, counts):
    parts, at = [], 0
    for count in counts:
        parts.append(flat[at : at + count])
        at += count
    return parts


_seconds = st.integers(0, 40).map(lambda eighths: eighths / 8)


@st.composite
def _rounds(draw, *, issue=True, max_layers=5, max_misses=5):
    num_layers = draw(st.integers(1, max_layers))
    miss = st.tuples(_seconds if issue else st.just(0.0), _seconds, _seconds)
    layers = st.lists(_seconds, min_size=num_layers, max_size=num_layers)
    misses = st.lists(st.lists(miss, max_size=max_misses), min_size=num_layers, max_size=num_layers)
    window = draw(st.one_of(_seconds, st.integers(0, 400).map(lambda eighths: eighths / 8)))
    return Round(window, draw(layers), draw(layers), draw(misses))


@pytest.fixture(scope="session")
def rounds() -> Callable[..., st.SearchStrategy[Round]]:
    """Strategy maker of random rounds."""
    return _rounds


@pytest.fixture(scope="session")
def replays():
    """The two replays, by name."""
    return {"list": list_schedule, "simpy": simpy_round}
