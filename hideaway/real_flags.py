"""Flags of a real run on synthetic experts, and what they open: the cut scenario, the device's options, the store."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from hideaway.console import note, progress
from hideaway.hw.devices.choose import DEVICE_KINDS
from hideaway.hw.engine.torch_ready import make_torch_ready
from hideaway.sim.inputs.scenario.fields import Scenario
from hideaway.sim.number_checks import finite_number, whole_number
from hideaway.sim.units import GB

if TYPE_CHECKING:
    from hideaway.hw.engine.open_device import DeviceOptions
    from hideaway.hw.engine.truncation import Truncated
    from hideaway.hw.store.reader import ExpertStore

SIMULATED_ONLY = ("model", "pageable", "page_cache_bytes", "launch")
"""Scenario fields that mean nothing to a real run; `--shape` takes the place of the model."""


def add_real_flags(parser: argparse.ArgumentParser, title: str = "real run") -> None:
    """Add the flags that say what runs and where experts come from."""
    group = parser.add_argument_group(title)
    group.add_argument(
        "--shape", metavar="NAME", help="model whose shape is run: name, config.json or its folder"
    )
    group.add_argument(
        "--layers", type=int, metavar="N", help="keep the first N layers with experts (default all)"
    )
    group.add_argument(
        "--device", choices=DEVICE_KINDS, default="disk", help="where experts come from (default disk)"
    )
    group.add_argument(
        "--store", metavar="DIR", help="experts packed by `hideaway pack` instead of the cache's"
    )
    group.add_argument(
        "--link-rate",
        type=float,
        metavar="BYTES_PER_SECOND",
        help="paced-memory: set rate (default the profile's)",
    )
    group.add_argument(
        "--link-latency",
        type=float,
        metavar="SECONDS",
        help="paced-memory: set latency (default the profile's)",
    )
    group.add_argument("--threads", type=int, metavar="N", help="threads that compute (default all cores)")
    group.add_argument(
        "--verify-transfers",
        action="store_true",
        help="check the checksum of every expert moved (takes compute)",
    )


def device_options(arguments: argparse.Namespace, *, verify_transfers: bool = False) -> DeviceOptions:
    """Return the options of `--device`, `--link-rate`, `--link-latency` and `--threads`; torch is loaded.

    Raises
    ------
    InputError
        A flag is out of its range, or there is no torch.
    """
    make_torch_ready()
    from hideaway.hw.engine.open_device import DeviceOptions

    if arguments.link_rate is not None:
        finite_number("link_rate", arguments.link_rate, above_minimum=True)
    if arguments.link_latency is not None:
        finite_number("link_latency", arguments.link_latency)
    threads = _cores() if arguments.threads is None else arguments.threads
    threads = whole_number("threads", threads, minimum=1, maximum=1024)
    return DeviceOptions(
        arguments.device, threads, arguments.link_rate, arguments.link_latency, verify_transfers
    )


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def open_store(arguments: argparse.Namespace, scenario: Scenario) -> ExpertStore:
    """Return the store that `--store` names, or the cached one of the shape."""
    from hideaway.hw.store.reader import ExpertStore

    if arguments.store is not None:
        return ExpertStore(arguments.store)
    return shape_store(scenario.model, arguments.layers, scenario.expert_format)


def shape_store(shape: str, num_layers: int | None, expert_format: str | None) -> ExpertStore:
    """Return the cached store of a shape's random experts, made when it is not there."""
    from hideaway.hw.engine.store_cache import cached_store, store_path, synthetic_source

    source = synthetic_source(shape, num_layers, expert_format)
    description, path = source.description, store_path(source)
    verb = "reusing" if path.exists() else "making"
    note(f"{verb} {description.total_bytes / GB:.2f} GB of random experts in {path}")
    with progress(description.num_layers * description.num_experts, "making experts") as step:
        return cached_store(source, step)


def without_simulated_only(settings: dict[str, object]) -> None:
    """Drop from settings in force what a real run does not have. Changes `settings`."""
    for name in SIMULATED_ONLY:
        if name != "model":
            settings.pop(name, None)


def cut_facts(truncated: Truncated) -> dict[str, object]:
    """Return what a reader must know of a model that is cut to its first layers."""
    return {
        "share_of_layers": round(truncated.share, 6),
        "scaled_by_share_of_layers": "drafter, head and embedding",
    }
