"""Measurement files made from the cost model itself: known parameters and noise, the points of a full measurement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hideaway.sim.costs import CostModel
from hideaway.sim.inputs.measurements import ELAPSED, AxisValue, Measurement, MeasurementFile
from hideaway.sim.inputs.models import load_model
from hideaway.sim.inputs.profiles import Profile, load_profile

DRAFTER_PARAMETERS = 33_000_000
TRUTH = {
    "link.h2d_bytes_per_second": 2.4e9,
    "link.latency_seconds": 120e-6,
    "issue.seconds_per_call": 60e-6,
    "issue.batch_seconds": 90e-6,
    "issue.batch_seconds_per_transfer": 25e-6,
    "host.round_trip_seconds": 700e-6,
    "host.iteration_seconds": 1.5e-3,
    "memory.read_bytes_per_second": 6e9,
    "memory.dense_read_bytes_per_second": 3e9,
    "compute.flops_per_second": 4e10,
    "compute.expert_flops_per_second": 2.5e10,
    "compute.layer_launch_seconds": 2e-3,
    "router.launch_seconds": 80e-6,
    "expert.group_launch_seconds": 60e-6,
    "expert.launch_seconds": 90e-6,
    "draft.launch_seconds": 3e-3,
    "contention.compute_slowdown": 0.25,
    "contention.link_slowdown": 0.15,
}
"""A slow machine, every parameter large enough to be seen."""


def true_profile(**changes: float) -> Profile:
    return load_profile("rtx-pro-6000").with_values(
        TRUTH | {k.replace("__", "."): v for k, v in changes.items()}
    )


def lognormal(spread: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    return lambda rng, count: np.exp(spread * rng.standard_normal(count))


def heavy_tailed(spread: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    """Return noise of median 1 with the tails of t with three degrees of freedom."""
    return lambda rng, count: np.exp(spread * rng.standard_t(3, count))


_GAP = 20e-6
_ANSWER, _IDS = 640e-6, 60e-6
_SUM, _BETWEEN = 90e-6, 30e-6
USUAL_NOISE = lognormal(0.03)
ENVIRONMENT = {
    "device": "planted", "driver": "1.0", "clocks_mhz": {"processor": 2000.0}, "threads": 2,
    "dense_dtype": "float32", "link": {"kind": "disk"}, "model": "Qwen3-30B-A3B", "expert_format": "nvfp4",
    "cuda": None, "started_unix_seconds": 1e9, "interrupted": False,
}  # fmt: skip


@dataclass
class Planted:
    """Collects series; `file` puts noise on them."""

    profile: Profile = field(default_factory=true_profile)
    model_name: str = "qwen3-30b-a3b"
    series: list[Measurement] = field(default_factory=list)

    def __post_init__(self) -> None:
        model = load_model(self.model_name)
        self.costs = CostModel(model, self.profile, drafter_parameters=DRAFTER_PARAMETERS)
        self.model = model

    def add(self, benchmark: str, seconds: float, quantity: str = ELAPSED, *, num_bytes: float | None = None,
            flops: float | None = None, **axes: AxisValue) -> None:  # fmt: skip
        self.series.append(
            Measurement(
                benchmark=benchmark, quantity=quantity, axes=axes, samples_seconds=(seconds,),
                stop_reason="converged", bytes=None if num_bytes is None else round(num_bytes),
                flops=None if flops is None else round(flops),
            )
        )  # fmt: skip

    def link(self) -> Planted:
        value = self.profile.value
        expert = 2658304
        for size in (2**16, 2**18, 2**20, 2**22, 2**24, expert):
            seconds = value("link.latency_seconds") - _GAP + size / value("link.h2d_bytes_per_second")
            axes = dict(
                transfers=4, transfer_bytes=size, chunk_bytes=0, streams=1, submitted_depth=2, batched=False
            )
            self.add("link", seconds, "copy", num_bytes=size, **axes)
            self.add("link", _GAP, "gap", **axes)
        for count in (1, 2, 4, 8, 16):
            for batched in (False, True):
                self.add(
                    "issue",
                    self.costs.issue_seconds(count, batched=batched),
                    transfers=count,
                    batched=batched,
                )
        return self

    def experts(self) -> Planted:
        costs, size = self.costs, self.model.expert_bytes
        for experts in (1, 4, 16):
            for rows in (1, 2, 4, 8, 16, 32, 64, 128):
                pairs = experts * rows
                self.add("experts", costs.experts_seconds(experts, pairs), num_bytes=experts * size,
                         flops=pairs * self.model.expert_flops_per_row, experts=experts, rows_each=rows)  # fmt: skip
        for rows in (1, 4, 16):
            self.add("arrival", costs.experts_seconds(1, rows), num_bytes=size,
                     flops=rows * self.model.expert_flops_per_row, rows=rows)  # fmt: skip
        read = 2**24
        self.add(
            "memory", read / self.profile.value("memory.read_bytes_per_second"), num_bytes=read, call="read"
        )
        return self

    def dense(self) -> Planted:
        self.attention()
        model, costs = self.model, self.costs
        router = model.router_bytes_per_layer
        for rows in (1, 8, 64, 256):
            for routers in (1, 2):
                self.add("router", routers * costs.router_seconds(rows), num_bytes=2 * routers * router,
                         flops=routers * router * rows, rows=rows, routers=routers)  # fmt: skip
        head = model.vocab_size * model.hidden_size
        for rows in (1, 4, 8, 16, 32, 64):
            self.add("head", costs.head_seconds(rows), num_bytes=4 * head, flops=2 * head * rows, rows=rows)
        for sequences in (1, 4, 8):
            for block in (4, 8, 16):
                weights, rows = DRAFTER_PARAMETERS + head, sequences * block
                self.add("draft", costs.draft_seconds(sequences, block), num_bytes=4 * weights,
                         flops=2 * weights * rows, sequences=sequences, block_size=block,
                         drafter_parameters=DRAFTER_PARAMETERS)  # fmt: skip
        return self

    def attention(self) -> Planted:
        """Add attention, with the ends of a visit taken out of a layer's launch, and whole dense visits."""
        model, costs = self.model, self.costs
        num_layers = len(model.layer_kinds)
        ends = _SUM + _BETWEEN
        for sequences, rows, context in [(1, r, c) for r in (1, 4, 8, 16) for c in (128, 1024, 4096)] + [
            (4, 8, 1024), (8, 8, 512), (1, 64, 1), (1, 256, 1), (1, 512, 1)]:  # fmt: skip
            total, tokens = sequences * rows, context - 1 + rows
            weights = model.dense_bytes_per_layer - model.router_bytes_per_layer
            size = weights + sequences * model.kv_read_bytes_per_row(tokens) / num_layers
            flops = (model.dense_flops_per_row - model.router_bytes_per_layer) * total
            flops += model.attention_flops_per_row_per_context_token * total * tokens
            seconds = costs.dense_seconds(total, [(rows, tokens)] * sequences) - ends
            axes = dict(layer_kind="full", sequences=sequences, rows_each=rows, context_tokens=context)
            self.add("attention", seconds, num_bytes=2 * size, flops=flops, **axes)
            if total in (8, 64):
                router = model.router_bytes_per_layer
                self.add("dense", seconds + costs.router_seconds(total), num_bytes=2 * (size + router),
                         flops=flops + router * total, **axes)  # fmt: skip
        self.add("visit_ends", _SUM, part="sum", rows=8, layers=4)
        self.add("scheduling", _BETWEEN, "between_layers", concurrency=1, block_size=8)
        return self

    def host(self) -> Planted:
        for rows in (1, 8, 64):
            self.add("visit_ends", _IDS, part="ids", rows=rows, layers=4)
        for concurrency in (1, 4):
            axes = dict(concurrency=concurrency, block_size=8)
            self.add("scheduling", self.profile.value("host.round_trip_seconds") - _IDS, "answer", **axes)
            self.add("scheduling", self.profile.value("host.iteration_seconds"), "between_forwards", **axes)
        return self

    def contention(self) -> Planted:
        value = self.profile.value
        for compute, seconds in (("experts-1", 5e-3), ("experts-8", 9e-3), ("attention", 20e-3)):
            self.add("contention", seconds, compute=compute, link="idle")
            slowed = seconds * (1 + value("contention.compute_slowdown"))
            self.add("contention", slowed, compute=compute, link="busy")
            copy = 1.2e-3 * (1 + value("contention.link_slowdown"))
            self.add("contention", copy, "copy", compute=compute, link="busy")
        self.add("contention", 1.2e-3, "copy", compute="none", link="busy")
        return self

    def everything(self) -> Planted:
        return self.link().experts().dense().host().contention()

    def file(
        self,
        seed: int,
        *,
        samples: int = 24,
        noise: Callable[[np.random.Generator, int], np.ndarray] = USUAL_NOISE,
        level: Callable[[np.ndarray], np.ndarray] = np.ones_like,
        seconds: float = 100.0,
        environment: dict[str, object] | None = None,
    ) -> MeasurementFile:
        """Return the file: every sample at a time of its own, times noise, times the machine's `level` at that time."""
        rng = np.random.default_rng(seed)
        noisy = []
        for series in self.series:
            started = np.sort(rng.uniform(0.0, seconds, samples))
            times = series.samples_seconds[0] * noise(rng, samples) * level(started)
            noisy.append(
                replace(
                    series, samples_seconds=tuple(times.tolist()), started_seconds=tuple(started.tolist())
                )
            )
        return MeasurementFile(ENVIRONMENT | (environment or {}), tuple(noisy))


def truth_of(profile: Profile, names: Sequence[str]) -> dict[str, float]:
    return {name: profile.value(name) for name in names}
