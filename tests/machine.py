"""A small machine for tests: link, scheduler and visitor with hand-made costs, and no requests."""

from __future__ import annotations

from dataclasses import dataclass

from hideaway.sim.batch import Batch, BatchOptions
from hideaway.sim.commands import Band
from hideaway.sim.costs import LinkCosts
from hideaway.sim.expert_cache import ExpertCache
from hideaway.sim.kv_pool import KvPool
from hideaway.sim.policies.admission.admit_all import AdmitAll
from hideaway.sim.policies.eviction.lru import Lru
from hideaway.sim.policies.prefetch.base import NoPrefetch, Want
from hideaway.sim.residency import Residency
from hideaway.sim.scheduler import Scheduler, SchedulerOptions
from hideaway.sim.world.copies import CopyEngine, LinkOptions
from hideaway.sim.world.link import Link
from hideaway.sim.world.visit import Visitor


@dataclass
class LayerCosts:
    """Costs of one layer, given outright: A, H and the work c of each arrival, also of one that came early."""

    dense_seconds: float
    hit_work_seconds: float
    each_seconds: float
    resident: int = 0
    router_seconds: float = 0.0
    round_trip_seconds: float = 0.0

    @property
    def before_experts_seconds(self) -> float:
        return self.dense_seconds + self.router_seconds

    def hits_seconds(self, hits: int, needed: int) -> float:
        return self.hit_work_seconds + self.each_seconds * (hits & ~self.resident).bit_count()

    def arrival_seconds(self, needed: int) -> float:
        return self.each_seconds


@dataclass
class Machine:
    """Visits `needed[l]` with `resident[l]` in slots, prefetching everything at time 0 if asked to."""

    num_experts: int
    slots: list[int]
    resident: list[int]
    needed: list[int]
    costs: list[LayerCosts]
    issue_seconds: float
    latency_seconds: float
    copy_bytes_seconds: float
    options: LinkOptions
    window_seconds: float = 0.0
    prefetch: bool = True
    staging_slots: int = 2

    def run(self) -> tuple[float, float, Visitor]:
        """Return the end of the last visit, the seconds waited for experts, and the visitor."""
        expert_bytes = 1000
        costs = LinkCosts(
            self.issue_seconds, 0.0, 0.0, self.latency_seconds, expert_bytes / self.copy_bytes_seconds, False
        )
        link = Link(CopyEngine(costs, expert_bytes, self.options), self.options)
        cache = ExpertCache(
            Residency(self.slots, self.resident),
            Lru(len(self.slots), self.num_experts),
            NoPrefetch(),
            num_experts=self.num_experts,
            top_k=1,
        )
        scheduler = Scheduler(
            SchedulerOptions(False, 1, expert_bytes),
            Batch(BatchOptions(1, 1, 1), KvPool(1, lambda tokens: 0)),
            cache,
            AdmitAll(),
        )
        visitor = Visitor(
            scheduler,
            link,
            num_experts=self.num_experts,
            staging_slots=self.staging_slots,
            compute_slowdown=0.0,
            timeline=None,
        )
        if self.prefetch:
            wants = [Want(layer, experts, Band.ROUTE_AHEAD) for layer, experts in enumerate(self.needed)]
            for fetch in cache.place_wants(wants):
                link.submit(fetch.layer, fetch.experts, fetch.band, 0.0)
        now = self.window_seconds
        for layer, needed in enumerate(self.needed):
            now = visitor.visit(now, layer, needed, (), self.costs[layer])
        return now, visitor.exposed_seconds + visitor.issue_idle_seconds, visitor
