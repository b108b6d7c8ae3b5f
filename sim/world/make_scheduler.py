"""From a scenario to the scheduler that serves it: slots, policies, batch and budgets.

Both worlds make their scheduler here, so that a recorded event log can be replayed by a fresh one.
"""

from __future__ import annotations

from hideaway.sim.batch import Batch, BatchOptions
from hideaway.sim.event_log import EventLog, RecordingScheduler
from hideaway.sim.expert_cache import ExpertCache
from hideaway.sim.inputs.scenario.baselines import Baseline
from hideaway.sim.inputs.scenario.fields import Scenario
from hideaway.sim.kv_pool import KvPool
from hideaway.sim.residency import Residency
from hideaway.sim.scheduler import Scheduler, SchedulerOptions
from hideaway.sim.world.inputs import Inputs
from hideaway.sim.world.memory import MemorySplit
from hideaway.sim.world.policies import (
    initial_residency,
    make_admission,
    make_eviction,
    make_prefetch,
    route_depth,
)


def make_scheduler(
    scenario: Scenario,
    inputs: Inputs,
    baseline: Baseline,
    memory: MemorySplit,
    *,
    future: list[list[int]] | None = None,
    log: EventLog | None = None,
) -> Scheduler:
    """Return a fresh scheduler for one run; with `log`, one that keeps every exchange in it."""
    model = inputs.model
    slots = [memory.slots_per_layer] * model.num_layers
    cache = ExpertCache(
        Residency(slots, initial_residency(scenario, slots, inputs.table)),
        make_eviction(scenario, model.num_layers, model.num_experts, future),
        make_prefetch(scenario, baseline, model.num_layers),
        num_experts=model.num_experts,
        top_k=model.top_k,
    )
    batch = Batch(
        BatchOptions(
            max_sequences=scenario.most_sequences,
            block_size=scenario.block_size if baseline.speculative else 1,
            prefill_chunk_tokens=scenario.prefill_chunk_tokens,
        ),
        KvPool(memory.kv_bytes, model.kv_bytes),
    )
    depth = route_depth(scenario, baseline, model.num_layers)
    options = SchedulerOptions(baseline.speculative, depth, model.expert_bytes)
    admission = make_admission(scenario, baseline, inputs.costs)
    if log is not None:
        return RecordingScheduler(options, batch, cache, admission, log)
    return Scheduler(options, batch, cache, admission)
