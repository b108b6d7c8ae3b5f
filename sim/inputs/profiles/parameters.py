"""The parameters of a hardware profile: their names, units, limits and meaning.

A profile file has all of `PARAMETERS` and may have those of `OPTIONAL_PARAMETERS`; `hideaway.sim.costs` turns them
into the seconds of an operation. Next:
`profile_file.py`, values with their errors, origins and sources.
"""

from __future__ import annotations

from typing import NamedTuple

BYTES_PER_SECOND = "bytes/second"
FLOPS_PER_SECOND = "flops/second"
SECONDS = "seconds"
BYTES = "bytes"
FRACTION = "fraction"

MIN_BYTES_PER_SECOND = 1e3
MIN_FLOPS_PER_SECOND = 1e6
"""Far below any machine: a slower one would be a slip in the unit, and its run would last for ages or overflow."""


class ParameterKind(NamedTuple):
    """Unit, least and most allowed value, and meaning of a parameter."""

    unit: str
    minimum: float
    maximum: float
    meaning: str


def _rate(meaning: str) -> ParameterKind:
    return ParameterKind(BYTES_PER_SECOND, MIN_BYTES_PER_SECOND, 1e18, meaning)


def _flops(meaning: str) -> ParameterKind:
    return ParameterKind(FLOPS_PER_SECOND, MIN_FLOPS_PER_SECOND, 1e21, meaning)


def _time(meaning: str) -> ParameterKind:
    return ParameterKind(SECONDS, 0.0, 3600.0, meaning)


def _bytes(meaning: str, minimum: float = 0.0) -> ParameterKind:
    return ParameterKind(BYTES, minimum, 1e18, meaning)


def _slowdown(meaning: str) -> ParameterKind:
    return ParameterKind(FRACTION, 0.0, 100.0, meaning)


PARAMETERS: dict[str, ParameterKind] = {
    "link.h2d_bytes_per_second": _rate("pinned host-to-device copies of the size of an expert"),
    "link.latency_seconds": _time("fixed device-side cost of one copy"),
    "link.pageable_bytes_per_second": _rate("copies from pageable memory, staging included"),
    "link.pageable_issue_seconds": _time("fixed host cost of one pageable copy"),
    "issue.seconds_per_call": _time("host cost of one copy call, one by one"),
    "issue.batch_seconds": _time("fixed host cost of one batched call"),
    "issue.batch_seconds_per_transfer": _time("host cost of each transfer in a batched call"),
    "host.round_trip_seconds": _time("routed ids to the host and back"),
    "host.iteration_seconds": _time("fixed host cost of one iteration"),
    "memory.device_bytes": _bytes("capacity of the device", 1.0),
    "memory.reserved_bytes": _bytes("runtime, activations, fragmentation"),
    "memory.read_bytes_per_second": _rate("read of device memory"),
    "compute.flops_per_second": _flops("dense bf16"),
    "compute.expert_flops_per_second": _flops("experts, in their stored format"),
    "compute.layer_launch_seconds": _time("eager launch of a layer's attention and dense part"),
    "compute.layer_launch_seconds_graph": _time("the same in a captured graph"),
    "router.launch_seconds": _time("launch of a router"),
    "expert.group_launch_seconds": _time("one grouped kernel of any number of experts"),
    "expert.launch_seconds": _time("added per expert in it"),
    "draft.launch_seconds": _time("fixed cost of a draft forward"),
    "contention.compute_slowdown": _slowdown("slowdown of compute while the link is busy"),
    "contention.link_slowdown": _slowdown("slowdown of a copy while compute is busy"),
    "host.memory_bytes_per_second": _rate("read of host memory"),
    "ssd.read_bytes_per_second": _rate("read of the SSD"),
    "ssd.latency_seconds": _time("first byte of an SSD read"),
}
"""All are required: there is no value that is harmless to assume silently."""

DENSE_READ = "memory.dense_read_bytes_per_second"
SERIAL_SHARE = "compute.serial_share"
CACHE_READ = "attention.cache_read_bytes_per_second"
ATTENTION_FLOPS = "attention.flops_per_second"

OPTIONAL_PARAMETERS: dict[str, ParameterKind] = {
    DENSE_READ: _rate("read of dense weights and caches, where it is not memory.read_bytes_per_second"),
    CACHE_READ: _rate("read of caches by attention, where the context is computed apart from the weights"),
    ATTENTION_FLOPS: _flops("scores and weighted sums of attention, likewise"),
    SERIAL_SHARE: ParameterKind(
        FRACTION,
        0.0,
        1.0,
        "share of the lesser of reading and computing dense work that the greater does not hide",
    ),
}
"""Where a profile has none, dense work reads at memory.read_bytes_per_second, the greater of reading and computing
hides the lesser, and attention to the context is part of the same reading and computing."""

ALL_PARAMETERS: dict[str, ParameterKind] = PARAMETERS | OPTIONAL_PARAMETERS
