"""The scenario itself: one field a flag, a TOML key and a line among the printed defaults."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.prediction import DEFAULT_PRESET, PRESETS
from hideaway.sim.inputs.predictor_file import check_predictor_name
from hideaway.sim.inputs.scenario.baselines import BASELINES
from hideaway.sim.number_checks import shown

SURROGATE_ROUTING = ("same-sequence", "other-sequence", "true")
REJECTED_ROUTING = (*SURROGATE_ROUTING, "recorded")
DEFAULT_CONCURRENCY = 8
MIN_CHUNK_BYTES = 65536
"""Crosses PCIe 5.0 x16 in about a microsecond, less than the fixed cost of a copy; an expert has a few hundred."""

Range = tuple[float, float]
"""Least and most; what lies outside is no machine or load there is, and could make a run endless or meaningless."""
_SEQUENCES: Range = (1, 4096)
_SLOTS: Range = (1, 2**14)
_LAYERS: Range = (1, 4096)
_BYTES: Range = (1, 10**18)
_SECONDS: Range = (1e-6, 1e6)


def _option(
    default: object, help_text: str, *, choices: tuple[str, ...] = (), within: Range | None = None
) -> Any:  # noqa: ANN401
    return field(default=default, metadata={"help": help_text, "choices": choices, "within": within})


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Everything that decides a run. Checked when built; every field has a default that works."""

    model: str = _option("gpt-oss-20b", "built-in model name, or a Hugging Face config.json or its folder")
    expert_format: str | None = _option(
        None, "stored format of the experts", choices=("mxfp4", "nvfp4", "fp8", "bf16")
    )
    profile: str = _option("rtx-pro-6000", "hardware profile: a built-in name or a JSON file")
    parameters: Mapping[str, float] | tuple[tuple[str, float], ...] = field(
        default=(), metadata={"help": "profile parameters to override, name = value"}
    )
    baseline: str = _option("OURS", "baseline row", choices=tuple(BASELINES))
    trace: str = _option(
        "azure-conv", "requests: azure-conv, azure-code, mooncake-conversation, sharegpt or a file"
    )
    requests: int = _option(64, "number of requests", within=(1, 10**6))
    concurrency: int | None = _option(
        None,
        "requests in the system at once (closes the loop; only the trace's lengths count)",
        within=_SEQUENCES,
    )
    rate: float | None = _option(
        None, "Poisson arrivals at this many requests per second", within=(1e-6, 1e6)
    )
    open_loop: bool = _option(False, "keep the trace's own arrival times")
    max_sequences: int = _option(32, "most sequences that run at once in an open loop", within=_SEQUENCES)
    routing: str | None = _option(None, "expert routing: replay:NAME, fitted:NAME or an .npz file")
    rejected_routing: str = _option(
        "same-sequence",
        "experts of rows after the first rejection; recorded replays a recorded run whole, request by request",
        choices=REJECTED_ROUTING,
    )
    acceptance: str = _option(
        "mixture:default",
        "constant:A, rate:ALPHA, vector:…, mixture:EASY,HARD,WEIGHT,PERSISTENCE or replay:FILE",
    )
    slots: int | None = _option(None, "expert slots per layer; wins over the slot fraction", within=_SLOTS)
    slot_fraction: float = _option(0.5, "expert slots per layer as a share of its experts", within=(1e-5, 1))
    block_size: int = _option(8, "rows verified per round: one anchor and its drafts", within=(1, 4096))
    router_exact_depth: int | None = _option(
        None, "layers whose experts the route pass knows exactly (1: causal; all: oracle)", within=_LAYERS
    )
    lookahead: int = _option(
        1, "next layers whose experts are predicted at each layer visit", within=(0, 4096)
    )
    predictor: str = _option(
        DEFAULT_PRESET,
        f"recall and precision of predicted experts by layer distance: {', '.join(PRESETS)}, or a .json file of "
        "`hideaway route-recall --preset`",
    )
    recall: float | None = _option(
        None, "one recall for every distance, instead of the preset's", within=(0, 1)
    )
    precision: float | None = _option(
        None, "one precision for every distance, instead of the preset's", within=(1e-4, 1)
    )
    eviction: str = _option("lru", "eviction policy", choices=("lru", "aged-lfu", "static", "belady"))
    prefetch: str | None = _option(
        None,
        "prefetch policy instead of the baseline's",
        choices=("none", "previous-token", "previous-union", "route-ahead", "cross-round"),
    )
    admission: str | None = _option(
        None, "admission instead of the baseline's", choices=("all", "token-deficit", "deficit-2d")
    )
    token_budget: int | None = _option(
        None, "verify rows added per iteration, tau (default concurrency x block size)", within=(1, 10**9)
    )
    byte_budget: int | None = _option(
        None, "expert bytes added per iteration, beta (default bandwidth x achievable window)", within=_BYTES
    )
    prefill_chunk_tokens: int = _option(2048, "most prompt tokens per forward", within=(1, 10**7))
    issue: str = _option(
        "single", "copies issued one by one or a layer at a time", choices=("single", "batched")
    )
    submitted_depth: int = _option(
        2, "copies (or batches) on the device at once; those cannot be recalled", within=(1, 65536)
    )
    chunk_bytes: int = _option(
        0, "divide copies into chunks of this size; 0 keeps them whole", within=(0, 10**18)
    )
    copy_streams: int = _option(
        1, "copy streams: they share the bandwidth and hide each other's latency", within=(1, 16)
    )
    staging_slots: int = _option(2, "slots for experts that are streamed and not kept", within=_SLOTS)
    pageable: bool = _option(False, "the expert store is in pageable memory")
    page_cache_bytes: int | None = _option(
        None, "put the expert store on an SSD behind a page cache of this size", within=(0, 10**18)
    )
    launch: str = _option("eager", "how the dense part of a layer is launched", choices=("eager", "graph"))
    drafter_parameters: float = _option(
        0.8e9, "weights of the drafter (bf16; z-lab/gpt-oss-20b-DFlash has 0.8 B)", within=(1, 1e13)
    )
    verify_reuses_route: bool = _option(
        True, "verify does not repeat the attention that a deep route pass has done"
    )
    ttft_limit_seconds: float = _option(4.0, "goodput: longest time to first token", within=_SECONDS)
    tpot_limit_seconds: float = _option(0.2, "goodput: longest time per further token", within=_SECONDS)
    seed: int = _option(1408, "seed of every random draw", within=(0, 2**63 - 1))

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", tuple(sorted(dict(self.parameters).items())))
        for spec in fields(self):
            value = getattr(self, spec.name)
            if spec.name != "parameters" and not (value is None and spec.default is None):
                _check_kind(spec.name, value, str(spec.type).removesuffix(" | None"))
                _check(spec.name, value, spec.metadata["choices"], spec.metadata["within"])
        self._check_together()

    def _check_together(self) -> None:
        check_predictor_name(self.predictor)
        loops = [name for name in ("concurrency", "rate", "open_loop") if getattr(self, name)]
        if len(loops) > 1:
            raise InputError(
                f"{' and '.join(loops)} were given together; choose one way for requests to arrive"
            )
        if self.chunk_bytes and self.issue == "batched":
            raise InputError(
                "chunk_bytes and batched issue were given together; a batch is not divided, choose one of them"
            )
        if self.copy_streams > self.submitted_depth:
            raise InputError(
                f"copy_streams is {self.copy_streams} but only {self.submitted_depth} copies may be on the device; "
                "raise submitted_depth or use fewer streams"
            )
        if 0 < self.chunk_bytes < MIN_CHUNK_BYTES:
            raise InputError(
                f"chunk_bytes is {self.chunk_bytes}; give 0 for whole copies, or at least {MIN_CHUNK_BYTES}"
            )

    @property
    def closed_loop(self) -> int | None:
        """Requests in the system at once; `DEFAULT_CONCURRENCY` when no way of arriving was chosen."""
        if self.concurrency is not None:
            return self.concurrency
        return None if self.rate is not None or self.open_loop else DEFAULT_CONCURRENCY

    @property
    def most_sequences(self) -> int:
        """Most sequences that run at once."""
        return self.closed_loop or self.max_sequences


def scenario_field_help() -> dict[str, str]:
    """Return each field's name and help text, in order."""
    return {spec.name: str(spec.metadata["help"]) for spec in fields(Scenario)}


_KINDS: dict[str, tuple[type | types.UnionType, str]] = {
    "int": (int, "a whole number"),
    "float": (int | float, "a number"),
    "str": (str, "a text"),
    "bool": (bool, "true or false"),
}


def _check_kind(name: str, value: object, kind: str) -> None:
    wanted, words = _KINDS[kind]
    if not isinstance(value, wanted) or (isinstance(value, bool) and kind != "bool"):
        raise InputError(f"{name} is {shown(value)}; it must be {words}")


def _check(name: str, value: object, choices: tuple[str, ...], within: Range | None) -> None:
    if choices and value not in choices:
        raise InputError(f"{name} is {shown(value)}; it must be one of {', '.join(choices)}")
    if value == "":
        raise InputError(f"{name} is empty; give a name or leave it out for the default")
    if within is not None and isinstance(value, int | float) and not within[0] <= value <= within[1]:
        raise InputError(f"{name} is {shown(value)}; it must be a number from {within[0]:g} to {within[1]:g}")
