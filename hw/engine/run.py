"""Run one scenario for real: `run_real(truncated, store, options) -> RealRun`.

Scale without a checkpoint: synthetic FP4 experts of a model's full shape, routing and acceptance replayed exactly
as the simulator replays them. Every transfer and every computation is real and whole; only the numbers are random.
Real models: `run_model.py`, around the same `run_parts`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch

from hideaway.hw.devices.worker_device import WorkerDevice
from hideaway.hw.engine.content import Content
from hideaway.hw.engine.machine import Machine, num_slots_needed
from hideaway.hw.engine.open_device import (
    DeviceOptions,
    Expert,
    compute_device,
    environment,
    open_expert,
    open_slots,
    slots_at_once,
)
from hideaway.hw.engine.store_cache import WEIGHT_SEED
from hideaway.hw.engine.synthetic_layers import SyntheticTrunk, Weights
from hideaway.hw.engine.torch_work import TorchWork
from hideaway.hw.engine.truncation import Truncated
from hideaway.hw.engine.work import Work
from hideaway.hw.fp4.layouts import ExpertLayout
from hideaway.hw.store.reader import ExpertStore
from hideaway.sim.costs import LinkCosts
from hideaway.sim.errors import HideawayError, InputError
from hideaway.sim.event_log import EventLog
from hideaway.sim.inputs.scenario.baselines import BASELINES
from hideaway.sim.inputs.scenario.fields import Scenario
from hideaway.sim.metrics import Meter
from hideaway.sim.scheduler import Scheduler
from hideaway.sim.timeline import Timeline
from hideaway.sim.world.memory import MemorySplit, split_memory
from hideaway.sim.world.policies import make_prefetch
from hideaway.sim.world.serving import Serving
from hideaway.sim.world.summary import offloading, summarise


@dataclass(frozen=True, slots=True)
class RealRun:
    """One finished real run; `metrics`, `warnings`, `meter` and `timeline` as of a simulated one.

    Attributes
    ----------
    environment : dict
        Where it was made.
    failures : tuple of str
        One sentence for each request that failed; no figure counts those.
    """

    truncated: Truncated
    memory: MemorySplit
    metrics: dict[str, float]
    warnings: tuple[str, ...]
    meter: Meter
    environment: dict[str, object]
    failures: tuple[str, ...]
    timeline: Timeline | None = None


class RunClock:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._origin = time.perf_counter()

    def now_seconds(self) -> float:
        """Return the time."""
        return time.perf_counter() - self._origin

    def sleep_until(self, at_seconds: float) -> None:
        """Let the time come."""
        left = at_seconds - self.now_seconds()
        if left > 0:
            time.sleep(left)


def check_runnable(truncated: Truncated) -> MemorySplit:
    """Return how memory is split, after refusing what no real run can do.

    Raises
    ------
    InputError
        The scenario asks for something that only a simulation has.
    """
    scenario, inputs = truncated.scenario, truncated.inputs
    if scenario.eviction == "belady":
        raise InputError(
            "eviction belady looks into the future, which a real run cannot; take lru or aged-lfu"
        )
    if scenario.pageable or scenario.page_cache_bytes is not None:
        raise InputError(
            "pageable and page_cache_bytes describe a simulated host; a real run has its own, leave them out"
        )
    baseline = BASELINES[scenario.baseline]
    memory = split_memory(scenario, baseline, inputs.costs)
    if not baseline.resident and memory.slots_per_layer >= inputs.model.num_experts:
        raise InputError(
            f"{scenario.baseline} is an offloaded baseline but all {inputs.model.num_experts} experts of a layer have "
            "slots, so nothing is offloaded; lower --slots or --slot-fraction, or ask for B3"
        )
    return memory


def check_store(store: ExpertStore, truncated: Truncated) -> None:
    """Refuse a store that does not hold the experts of this run.

    Raises
    ------
    InputError
        Saying what differs.
    """
    model, held = truncated.inputs.model, store.description
    for name in ("num_experts", "hidden_size", "expert_intermediate_size", "expert_format", "expert_bytes"):
        if getattr(held, name) != getattr(model, name):
            raise InputError(
                f"store {store.path} has {name} {getattr(held, name)} but {model.name} has {getattr(model, name)}; "
                "pack one of this shape"
            )
    if held.num_layers < model.num_layers:
        raise InputError(
            f"store {store.path} has {held.num_layers} layers but the run needs {model.num_layers}; lower --layers"
        )


MakeDevice = Callable[[DeviceOptions, ExpertStore, Scenario, int, LinkCosts], WorkerDevice]
MakeContent = Callable[[Serving, Scheduler], Content]
MakeParts = Callable[[WorkerDevice, Expert], tuple[Work, MakeContent | None]]
"""From an open device and what computes its experts to a run's compute and what its forwards hold (replays where
None)."""


@dataclass(frozen=True, slots=True)
class Observers:
    """Who is told of a run while it goes on, and where its device comes from."""

    timeline: Timeline | None = None
    log: EventLog | None = None
    on_progress: Callable[[int], None] = lambda ended: None
    make_device: MakeDevice = open_slots


def run_real(
    truncated: Truncated,
    store: ExpertStore,
    options: DeviceOptions,
    *,
    timeline: Timeline | None = None,
    log: EventLog | None = None,
    on_progress: Callable[[int], None] = lambda ended: None,
    make_device: MakeDevice = open_slots,
) -> RealRun:
    """Run one scenario of a synthetic model to its end on a device over `store`.

    Raises
    ------
    HideawayError
        Every request failed, or the run could not start.
    InputError
        The scenario, the store or the device does not allow it.
    """

    def parts(device: WorkerDevice, expert: Expert) -> tuple[Work, MakeContent | None]:
        return _work(truncated, device, expert, options), None

    observers = Observers(timeline, log, on_progress, make_device)
    return run_parts(truncated, store, options, parts, observers)


def run_parts(
    truncated: Truncated,
    store: ExpertStore,
    options: DeviceOptions,
    make_parts: MakeParts,
    observers: Observers,
    *,
    invariant: bool = False,
) -> RealRun:
    """Run one scenario to its end with the compute that `make_parts` makes; errors as `run_real`.

    Parameters
    ----------
    invariant : bool
        Experts compute a row to the same bits whatever the number of rows.
    """
    memory = check_runnable(truncated)
    check_store(store, truncated)
    scenario, inputs = truncated.scenario, truncated.inputs
    num_slots = num_slots_needed(scenario, inputs, memory)
    with (
        torch.inference_mode(),
        warnings.catch_warnings(record=True) as caught,
        observers.make_device(options, store, scenario, num_slots, inputs.costs.link) as device,
    ):
        expert = open_expert(options, ExpertLayout.of(inputs.model), invariant=invariant)
        work, make_content = make_parts(device, expert)
        machine = Machine(
            scenario,
            inputs,
            BASELINES[scenario.baseline],
            memory,
            device=device,
            work=work,
            make_clock=RunClock,
            make_content=make_content,
            timeline=observers.timeline,
            log=observers.log,
            on_progress=observers.on_progress,
        )
        machine.run()
        facts = environment(options, device, expert)
    failures = tuple(machine.failures.sentences.values())
    if not machine.meter.requests:
        raise HideawayError(f"every request failed; the first: {failures[0]}")
    metrics, found = summarise(scenario, machine, inputs.model.expert_bytes)
    metrics |= offloading(metrics, inputs.costs.experts.group_seconds)
    remarks = _remarks(machine, failures, [str(warning.message) for warning in caught])
    return RealRun(
        truncated, memory, metrics, (*found, *remarks), machine.meter, facts, failures, observers.timeline
    )


def _work(truncated: Truncated, device: WorkerDevice, expert: Expert, options: DeviceOptions) -> TorchWork:
    """Return the compute of a synthetic model, weights made."""
    scenario, inputs = truncated.scenario, truncated.inputs
    baseline = BASELINES[scenario.baseline]
    parameters = scenario.drafter_parameters if baseline.speculative else 0
    weights = Weights(WEIGHT_SEED, compute_device(options))
    trunk = SyntheticTrunk(truncated.architecture, parameters, weights)
    return TorchWork(
        trunk,
        inputs.trace,
        compute_expert=expert.forward,
        slot_tensor=device.slot_tensor,
        lookahead=make_prefetch(scenario, baseline, inputs.model.num_layers).lookahead,
        compute_slots=slots_at_once(expert, device),
    )


def _remarks(machine: Machine, failures: tuple[str, ...], warned: list[str]) -> list[str]:
    remarks = list(dict.fromkeys(warned))
    if failures:
        remarks.append(f"{len(failures)} requests failed and are counted in no figure; {failures[0]}")
    if machine.transfers.failed_prefetches:
        remarks.append(f"{machine.transfers.failed_prefetches} prefetches failed before anybody needed them")
    return remarks
