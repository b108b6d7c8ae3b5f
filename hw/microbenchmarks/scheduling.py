"""The host's own time in a visit and in an iteration: the whole engine, scheduler included, with nothing to do.

One sample is one run of a few short requests. Only what passes between the calls of the (idle) work is counted.
"""

from __future__ import annotations

import statistics
import time
from typing import ClassVar

import numpy as np

from hideaway.hw.engine.machine import Machine
from hideaway.hw.microbenchmarks.benchmark import COLD_CACHES, Axes, Benchmark, Operation, Readings, whole
from hideaway.hw.microbenchmarks.idle_engine import IdleWork, InstantDevice
from hideaway.hw.microbenchmarks.rig import Rig
from hideaway.sim.costs import CostModel
from hideaway.sim.inputs.acceptance.load import load_acceptance
from hideaway.sim.inputs.arrivals import RequestSpec
from hideaway.sim.inputs.profiles import load_profile
from hideaway.sim.inputs.routing import RoutingTrace, UnionTable
from hideaway.sim.inputs.scenario.baselines import BASELINES
from hideaway.sim.inputs.scenario.fields import Scenario
from hideaway.sim.world.inputs import Inputs
from hideaway.sim.world.memory import split_memory

_PROMPT_TOKENS, _OUTPUT_TOKENS = 16, 20
_TRACE_TOKENS = 512
_AMPLE_BYTES = 1e15
"""Nothing is held in memory here, so that any number of layers fits."""
PRIMARY = "answer"


class Scheduling(Benchmark):
    """The loop, the scheduler and the transfers' book-keeping."""

    name = "scheduling"
    informs = ("host.round_trip_seconds", "host.iteration_seconds")
    axes: ClassVar = {
        "shape": "model",
        "layers": "layers with routed experts",
        "baseline": "baseline row: which policies run",
        "concurrency": "sequences in a forward",
        "block_size": "rows of each",
    }
    cache = "cold"
    summary = "the host's own time: router's end to the scheduler's answer, between layers, between forwards"

    def points(self, *, quick: bool) -> list[Axes]:
        """Return baselines by concurrency; none where every expert has a slot."""
        if self.subject.spec.num_experts < 2:
            return []
        wanted = [("OURS", 1)] if quick else [(row, n) for row in ("B0", "B1", "OURS") for n in (1, 4)]
        return [
            {
                "shape": self.subject.name,
                "layers": self.subject.num_layers,
                "baseline": baseline,
                "concurrency": concurrency,
                "block_size": 8 if BASELINES[baseline].speculative else 1,
            }
            for baseline, concurrency in wanted
        ]

    def prepare(self, rig: Rig, axes: Axes) -> Operation:
        """Return a short run."""
        scenario, inputs = self._scenario(axes), self._inputs(rig, axes)
        baseline = BASELINES[scenario.baseline]
        memory = split_memory(scenario, baseline, inputs.costs)
        words = np.zeros(COLD_CACHES * self.subject.cache_bytes // 8)
        works: list[IdleWork] = []
        machines: list[Machine] = []

        def set_up() -> None:
            works[:] = [IdleWork(self.subject.num_layers, words.sum)]
            machines[:] = [
                Machine(
                    scenario,
                    inputs,
                    baseline,
                    memory,
                    device=InstantDevice(),
                    work=works[0],
                    make_clock=_Clock,
                )
            ]

        def readings() -> Readings:
            work = works[0]
            found = {
                PRIMARY: work.answers,
                "between_layers": work.between_visits,
                "between_forwards": work.between_forwards,
            }
            return {quantity: (statistics.fmean(each),) for quantity, each in found.items() if each}

        return Operation(
            lambda: machines[0].run(), set_up, readings=readings, activity="waits", primary=PRIMARY
        )

    def _scenario(self, axes: Axes) -> Scenario:
        concurrency = whole(axes, "concurrency")
        return Scenario(
            model=self.subject.shape,
            baseline=str(axes["baseline"]),
            requests=concurrency,
            concurrency=concurrency,
            block_size=max(2, whole(axes, "block_size")),
        )

    def _inputs(self, rig: Rig, axes: Axes) -> Inputs:
        """Return short requests over random routing."""
        spec = self.subject.spec
        order = np.argsort(rig.rng.random((_TRACE_TOKENS, spec.num_layers, spec.num_experts)), axis=2)
        trace = RoutingTrace(
            name="microbenchmark",
            expert_ids=order[:, :, : spec.top_k].astype(np.int16),
            num_experts=spec.num_experts,
            top_k=spec.top_k,
            seq_lengths=np.array([_TRACE_TOKENS]),
            origin="made for a microbenchmark",
        )
        profile = load_profile(Scenario().profile).with_values({"memory.device_bytes": _AMPLE_BYTES})
        costs = CostModel(spec, profile, drafter_parameters=self.subject.drafter_parameters)
        requests = tuple([RequestSpec(0.0, _PROMPT_TOKENS, _OUTPUT_TOKENS)] * whole(axes, "concurrency"))
        return Inputs(spec, costs, trace, UnionTable(trace), load_acceptance("constant:3"), requests)


class _Clock:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._origin = time.perf_counter()

    def now_seconds(self) -> float:
        return time.perf_counter() - self._origin

    def sleep_until(self, at_seconds: float) -> None:
        time.sleep(max(0.0, at_seconds - self.now_seconds()))
