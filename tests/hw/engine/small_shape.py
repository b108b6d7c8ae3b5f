"""A model, a routing trace and requests so small that a real run takes a fraction of a second."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from hideaway.hw.engine.open_device import DeviceOptions, open_slots
from hideaway.hw.engine.run import run_real
from hideaway.hw.engine.truncation import Truncated, truncate
from hideaway.hw.store.pack import pack_experts
from hideaway.hw.store.reader import ExpertStore
from hideaway.hw.store.synthetic import SyntheticExperts
from hideaway.sim.inputs.models import Architecture, save_architecture
from hideaway.sim.inputs.models.architecture import DenseLayers, RoutedExperts, SharedExperts
from hideaway.sim.inputs.models.attention import GroupedAttention, LatentAttention
from hideaway.sim.inputs.models.weight_formats import StoredFormats
from hideaway.sim.inputs.routing.npz import write_routing_file
from hideaway.sim.inputs.scenario import Scenario
from tests.tiny import random_trace

NUM_LAYERS, NUM_EXPERTS, TOP_K = 4, 8, 2
REQUESTS = ((0.0, 20, 9), (0.01, 30, 7), (0.02, 12, 11))

GROUPED = Architecture(
    name="test/small",
    source="made up by a test",
    hidden_size=64,
    vocab_size=200,
    layer_kinds=("full", "sliding", "full", "full", "full"),
    experts=RoutedExperts(NUM_EXPERTS, TOP_K, 32),
    stored=StoredFormats(experts="mxfp4"),
    sliding_window_tokens=8,
    grouped_attention=GroupedAttention(4, 2, 16, output_gate=True),
    shared_experts=SharedExperts(48),
    dense_layers=DenseLayers((0,), 96),
)
LATENT = replace(
    GROUPED,
    name="test/latent",
    layer_kinds=("mla",) * 5,
    sliding_window_tokens=None,
    grouped_attention=None,
    latent_attention=LatentAttention(4, 24, 16, 8, 12, query_rank=20),
)


def scenario_in(folder: Path, architecture: Architecture = GROUPED, **fields) -> Scenario:
    """Return a scenario whose model, routing and requests are files in `folder`."""
    model, routing, trace = folder / "model.json", folder / "routing.npz", folder / "requests.csv"
    save_architecture(model, architecture)
    write_routing_file(
        routing,
        random_trace(5, num_tokens=80, num_layers=NUM_LAYERS, num_experts=NUM_EXPERTS, top_k=TOP_K),
    )
    lines = [",".join(map(str, request)) for request in REQUESTS]
    trace.write_text("\n".join(["arrival_seconds,input_tokens,output_tokens", *lines]) + "\n")
    if not {"concurrency", "rate", "open_loop"} & set(fields):
        fields["concurrency"] = 1
    values = {
        "requests": len(REQUESTS),
        "block_size": 4,
        "drafter_parameters": 20_000.0,
        "acceptance": "constant:2.5",
        "prefill_chunk_tokens": 16,
        **fields,
    }
    return Scenario(model=str(model), routing=str(routing), trace=str(trace), **values)


def store_in(folder: Path, truncated: Truncated) -> ExpertStore:
    path = folder / "store"
    if path.exists():
        return ExpertStore(path)
    model = truncated.scenario.model
    return pack_experts(SyntheticExperts(model, seed=0), path, workers=1)


def run_in(folder: Path, *, num_layers=None, device="disk", make_device=open_slots, **fields):
    """Run a small scenario for real; `timeline` and `log` are passed on."""
    passed = {name: fields.pop(name) for name in ("timeline", "log") if name in fields}
    architecture = fields.pop("architecture", GROUPED)
    truncated = truncate(scenario_in(folder, architecture, **fields), num_layers)
    options = DeviceOptions(device, 1, 1e9 if device == "paced-memory" else None)
    return run_real(truncated, store_in(folder, truncated), options, make_device=make_device, **passed)


def masks(trace_ids: np.ndarray) -> int:
    return sum(1 << int(expert) for expert in set(trace_ids.reshape(-1).tolist()) if expert >= 0)
