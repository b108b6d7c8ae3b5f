"""The valid inputs that cases start from, small so that reading them takes milliseconds."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from hideaway.sim.contract import REQUIRED_METRICS
from hideaway.sim.inputs import models

DATA = Path(models.__file__).parent.parent / "data"
PROFILES = {path.stem: json.loads(path.read_text()) for path in sorted((DATA / "profiles").glob("*.json"))}
MODELS = {path.stem: json.loads(path.read_text()) for path in sorted((DATA / "models").glob("*.json"))}

TINY_LAYERS, TINY_EXPERTS, TINY_TOP_K = 4, 8, 2
TINY_MODEL: dict[str, Any] = {
    "format": "hideaway-model",
    "version": 1,
    "name": "example/tiny",
    "source": "made for tests",
    "hidden_size": 256,
    "vocab_size": 1000,
    "layer_kinds": ["full"] * TINY_LAYERS,
    "grouped_attention": {"num_heads": 4, "num_kv_heads": 2, "head_dim": 64},
    "experts": {"count": TINY_EXPERTS, "top_k": TINY_TOP_K, "intermediate_size": 128},
    "stored": {"experts": "mxfp4"},
}
HF_CONFIG: dict[str, Any] = {
    "model_type": "gpt_oss",
    "hidden_size": 256,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "layer_types": ["sliding_attention", "full_attention"] * 2,
    "sliding_window": 128,
    "head_dim": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
    "attention_bias": True,
    "quantization_config": {"quant_method": "mxfp4"},
}

ROWS: list[dict[str, Any]] = [
    {
        "model": "openai/gpt-oss-20b",
        "draft": "" if baseline == "B0" else "a drafter",
        "baseline": baseline,
        "block_size": 8,
        "concurrency": 4,
        "repeat": 0,
        **{metric: 1.5 + place for place, metric in enumerate(REQUIRED_METRICS)},
        "cost_terms": {"t_router_seconds": 0.01, "t_verify_seconds": 0.04},
    }
    for baseline in ("B0", "B1", "B2", "B3")
]
BM2 = {
    "per_expert_us": 1132.1,
    "batched_us": 101.5,
    "cpp_internal_us": 90.0,
    "window_us": 500.0,
}
BM3 = {
    "medians": {
        band: {"exposed_fetch_seconds": 0.02, "tokens_per_second": 100.0}
        for band in ("background", "route-ahead", "on-demand")
    }
}
BM4 = {
    "total_h2d_bytes": 18e9,
    "overlapped_h2d_bytes": 1e9,
    "measured_h2d_bytes_per_second": 57.5e9,
    "t_draft_seconds": 0.127,
    "t_router_seconds": 0.141,
    "t_verify_seconds": 0.3,
    "overlap_with_prev_verify_seconds": 0.017,
    "num_rounds": 5,
    "num_expert_copies": 584,
    "expert_bytes": 13236480,
}
BM5 = {"python_row": dict(ROWS[2]), "cpp_row": dict(ROWS[2]), "rel_tol": 1e-6}
BM4_RANGES = (
    "range_name,count,total_duration_ms\n:dflash_draft,5,127.1\n:target_verify,5,300.2\ncpu_to_gpu,584,250\n"
)
BM4_COPIES = "memcpy_kind,count,total_MB\n[CUDA memcpy Host-to-Device],822,18035.2\n"

ARRIVALS = {
    "hideaway": "arrival_seconds,input_tokens,output_tokens\n0,20,5\n0.5,30,4\n1.25,10,6\n2,40,3\n",
    "lengths": "input_tokens,output_tokens\n20,5\n30,4\n10,6\n40,3\n",
    "azure": "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.97,20,5\n2023-11-16 18:17:04.03,30,4\n"
    "2023-11-16 18:17:04.33,10,6\n",
    "burstgpt": "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,20,5,25,API\n"
    "45,ChatGPT,30,4,34,API\n90,GPT-4,10,6,16,API\n",
}
MOONCAKE = [
    {"timestamp": 0, "input_length": 20, "output_length": 5, "hash_ids": [46, 47]},
    {"timestamp": 27482, "input_length": 30, "output_length": 4, "hash_ids": [46]},
    {"timestamp": 30000, "input_length": 10, "output_length": 6, "hash_ids": []},
]
SHAREGPT = [
    {
        "id": f"chat-{index}",
        "conversations": [
            {"from": "human", "value": "Summarise the main ideas of this talk."},
            {"from": "gpt", "value": "Here is a short summary."},
        ],
    }
    for index in range(3)
]

RECORDING = [1, 3, 2, 5, 1, 4, 2]
RECORDING_CSV = "round,acceptance_length\n" + "".join(
    f"{index},{length}\n" for index, length in enumerate(RECORDING)
)
RATES = [0.8, 0.75, 0.7, 0.72]
CUMULATIVE = [0.8, 0.6, 0.42, 0.3]
RATES_CSV = "position,accept_rate\n" + "".join(
    f"{place},{rate}\n" for place, rate in enumerate(RATES, start=1)
)

ROUTER_FIT: dict[str, Any] = {
    "format": "hideaway-router-fit",
    "version": 1,
    "name": "tiny",
    "origin": "made for tests",
    "sequence_lengths": [512, 700],
    "layers": [
        {
            "base_quantiles": [-0.5, 0.0, 0.6],
            "within": 0.5,
            "slow": 0.3,
            "drift_tokens": 30.0,
            "boost": 0.5,
            "boost_decay": 0.6,
            "burstiness": 0.4,
        }
    ]
    * 2,
}

SCENARIO = """# what a run is made of
model = "gpt-oss-20b"
profile = "rtx-pro-6000"
baseline = "OURS"
trace = "azure-conv"
requests = 2
concurrency = 2
acceptance = "constant:3"
slot_fraction = 0.5
block_size = 8
lookahead = 1
pageable = false
seed = 7

[parameters]
"link.latency_seconds" = 1.2e-5
"""

TIMELINE = (
    '{"format": "hideaway-timeline", "version": 1, "seed": 1408}\n'
    '{"start_seconds": 0.0, "end_seconds": 0.25, "track": "link", "kind": "copy", "step": 0, "seq_ids": [0], '
    '"layer": 3, "experts": "0x20", "bytes": 13236480, "band": 0}\n'
    '{"start_seconds": 0.25, "end_seconds": 0.25, "track": "counter", "kind": "slots_used", "step": -1, '
    '"seq_ids": [], "layer": -1, "experts": "0x0", "bytes": 0, "band": -1, "value": 17.0}\n'
)


def routing_arrays() -> dict[str, np.ndarray]:
    """Return the arrays of a routing trace in the shape of the tiny model."""
    rng = np.random.default_rng(0)
    ids = np.array([
        [rng.permutation(TINY_EXPERTS)[:TINY_TOP_K] for _ in range(TINY_LAYERS)] for _ in range(40)
    ])  # fmt: skip
    return {
        "expert_ids": ids.astype(np.int8),
        "num_experts": np.int64(TINY_EXPERTS),
        "top_k": np.int64(TINY_TOP_K),
        "seq_lengths": np.array([25, 15], dtype=np.int32),
    }


def archive(arrays: dict[str, Any], *, compressed: bool = False) -> bytes:
    stream = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(stream, **arrays)
    return stream.getvalue()


def text_of(value: object) -> bytes:
    return json.dumps(value, indent=1).encode()


def lines_of(values: list[Any]) -> bytes:
    return "".join(json.dumps(value) + "\n" for value in values).encode()
