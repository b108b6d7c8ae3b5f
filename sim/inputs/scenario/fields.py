"""The scenario itself: one field a flag, a TOML key and a line among the printed defaults."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.prediction import DEFAULT_PRESET, PRESETS
from hideaway.sim.inputs.scenario.baselines import BASELINES

REJECTED_ROUTING = ("same-sequence", "other-sequence", "true")
DEFAULT_CONCURRENCY = 8
MAX_COUNT = 10**9


def _option(
    default: Any, help_text: str, *, choices: tuple[str, ...] = (), above: float | None = None
) -> Any:  # noqa: ANN401
    return field(default=default, metadata={"help": help_text, "choices": choices, "above": above})


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
    requests: int = _option(64, "number of requests", above=0)
    concurrency: int | None = _option(
        None, "requests in the system at once (closes the loop; only the trace's lengths count)", above=0
    )
    rate: float | None = _option(None, "Poisson arrivals at this many requests per second", above=0)
    open_loop: bool = _option(False, "keep the trace's own arrival times")
    max_sequences: int = _option(32, "most sequences that run at once in an open loop", above=0)
    routing: str | None = _option(None, "expert routing: replay:NAME, fitted:NAME or an .npz file")
    rejected_routing: str = _option(
        "same-sequence", "experts of rows after the first rejection", choices=REJECTED_ROUTING
    )
    acceptance: str = _option(
        "mixture:default",
        "constant:A, rate:ALPHA, vector:…, mixture:EASY,HARD,WEIGHT,PERSISTENCE or replay:FILE",
    )
    slots: int | None = _option(None, "expert slots per layer", above=0)
    slot_fraction: float = _option(0.5, "expert slots per layer as a share of its experts", above=0)
    block_size: int = _option(8, "rows verified per round: one anchor and its drafts", above=0)
    router_exact_depth: int | None = _option(
        None, "layers whose experts the route pass knows exactly (1: causal; all: oracle)", above=0
    )
    lookahead: int = _option(1, "next layers whose experts are predicted at each layer visit", above=-1)
    predictor: str = _option(
        DEFAULT_PRESET,
        "published recall and precision of predicted experts by layer distance",
        choices=tuple(PRESETS),
    )
    recall: float | None = _option(None, "one recall for every distance, instead of the preset's", above=-1)
    precision: float | None = _option(
        None, "one precision for every distance, instead of the preset's", above=0
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
        None, "verify rows added per iteration, tau (default concurrency x block size)", above=0
    )
    byte_budget: int | None = _option(
        None, "expert bytes added per iteration, beta (default bandwidth x achievable window)", above=0
    )
    prefill_chunk_tokens: int = _option(2048, "most prompt tokens per forward", above=0)
    issue: str = _option(
        "single", "copies issued one by one or a layer at a time", choices=("single", "batched")
    )
    submitted_depth: int = _option(
        2, "copies (or batches) on the device at once; those cannot be recalled", above=0
    )
    chunk_bytes: int = _option(0, "divide copies into chunks of this size; 0 keeps them whole", above=-1)
    staging_slots: int = _option(2, "slots for experts that are streamed and not kept", above=0)
    pageable: bool = _option(False, "the expert store is in pageable memory")
    page_cache_bytes: int | None = _option(
        None, "put the expert store on an SSD behind a page cache of this size", above=-1
    )
    launch: str = _option("eager", "how the dense part of a layer is launched", choices=("eager", "graph"))
    drafter_parameters: float = _option(
        0.8e9, "weights of the drafter (bf16; z-lab/gpt-oss-20b-DFlash has 0.8 B)", above=0
    )
    verify_reuses_route: bool = _option(False, "verify does not repeat a deep route pass's attention")
    ttft_limit_seconds: float = _option(4.0, "goodput: longest time to first token", above=0)
    tpot_limit_seconds: float = _option(0.2, "goodput: longest time per further token", above=0)
    seed: int = _option(1408, "seed of every random draw", above=-1)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", tuple(sorted(dict(self.parameters).items())))
        for spec in fields(self):
            value = getattr(self, spec.name)
            if spec.name != "parameters" and value is not None:
                _check(spec.name, value, spec.metadata["choices"], spec.metadata["above"])
        self._check_together()

    def _check_together(self) -> None:
        loops = [name for name in ("concurrency", "rate", "open_loop") if getattr(self, name)]
        if len(loops) > 1:
            raise InputError(
                f"{' and '.join(loops)} were given together; choose one way for requests to arrive"
            )
        if self.slot_fraction > 1:
            raise InputError(f"slot_fraction is {self.slot_fraction}; it must be above 0 and at most 1")
        for name in ("recall", "precision"):
            value = getattr(self, name)
            if value is not None and value > 1:
                raise InputError(f"{name} is {value}; it must be at most 1")

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


def _check(name: str, value: object, choices: tuple[str, ...], above: float | None) -> None:
    if choices and value not in choices:
        raise InputError(f"{name} is {value!r}; it must be one of {', '.join(choices)}")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    if (
        not math.isfinite(value)
        or abs(value) > 1e18
        or (isinstance(value, int) and name in _COUNTS and value > MAX_COUNT)
    ):
        raise InputError(f"{name} is {value}; give a finite number of sensible size")
    if above is not None and value <= above:
        limit = "at least 0" if above == -1 else f"above {above:g}"
        raise InputError(f"{name} is {value}; it must be {limit}")


_COUNTS = frozenset(
    {"requests", "concurrency", "max_sequences", "slots", "block_size", "lookahead", "staging_slots"}
)
