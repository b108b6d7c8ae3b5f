"""Flags of `hideaway hide`, and the scenario that they name.

A flag that was not given is None, so that what was given can replace what a scenario derives: that is done in
`hideaway.subcommands.hide_given`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any, TypeVar

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.models import load_model
from hideaway.sim.inputs.profiles import load_profile
from hideaway.sim.inputs.scenario.toml_file import read_scenario_mapping, scenario_from_mapping
from hideaway.sim.number_checks import finite_number, whole_number
from hideaway.subcommands.hide_terms import (
    MOST_BYTES,
    MOST_EXPERTS,
    MOST_LAYERS,
    MOST_ROWS,
    MOST_SECONDS,
    MOST_SEQUENCES,
    HideScenario,
)

NOMINAL_FLAGS = {
    "resident_fraction": "r, share of the needed experts that are resident, 0 to 1",
    "saturation": "s, share of all experts that a round needs, 0 to 1 (else min(1, c·B·k/E))",
    "total_expert_bytes": "M, bytes of all routed experts (else layers · experts · expert bytes)",
    "measured_h2d_bytes_per_second": "BW, measured host-to-device bandwidth of expert-sized copies",
    "draft_seconds": "t_draft, one draft forward",
    "router_seconds": "t_router, router pass over the block",
    "overlap_seconds": "overlap with the previous verify (default 0)",
}
TRANSFER_FLAGS = {
    "experts_per_layer": "mean distinct experts that a layer of a round reads",
    "latency_seconds": "fixed link cost of one copy (default 0)",
    "issue_seconds": "host cost of issuing one copy (default 0)",
    "batch_issue_seconds": "host cost of one batched issue of all copies (default 0)",
    "idle_link_seconds": "link idle while the previous verify ran, beyond the overlap (default 0)",
}
SPEED_FLAGS = {
    "verify_seconds": "t_verify, verify forward with every expert resident",
    "acceptance_length": "a, tokens committed per round, the target's own included",
    "b0_seconds_per_token": "seconds per token of B0, autoregressive and offloaded",
}
SHAPE_FLAGS = {
    "num_layers": "L, layers with routed experts",
    "expert_bytes": "w_e, bytes of one expert as stored",
    "num_experts": "E, routed experts of a layer",
    "top_k": "k, experts a token chooses",
}
ALL_TERM_FLAGS = NOMINAL_FLAGS | TRANSFER_FLAGS | SPEED_FLAGS
LINK_FLAGS = (
    "resident_fraction",
    "measured_h2d_bytes_per_second",
    "latency_seconds",
    "issue_seconds",
    "batch_issue_seconds",
)
"""Flags that hold for any block size, the one-row forward of B0 included."""
T = TypeVar("T")
SCENARIO_FLAGS = (
    "expert_format",
    "slot_fraction",
    "context_tokens",
    "router_exact_depth",
    "batched_issue",
    "routing",
    "acceptance",
)
"""Flags that mean something with a model and a profile only."""
FILE_KEYS = frozenset({*SCENARIO_FLAGS, "model", "profile", "block_size", "concurrency"})
"""Keys of a scenario file that the question uses."""
LIMITS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("resident_fraction", "saturation", "dense_share", "slot_fraction"), (0.0, 1.0)),
    **{name: (0.0, MOST_SECONDS) for name in ALL_TERM_FLAGS if name.endswith("_seconds")},
    "total_expert_bytes": (0.0, MOST_BYTES),
    "measured_h2d_bytes_per_second": (1.0, MOST_BYTES),
    "experts_per_layer": (0.0, MOST_EXPERTS),
    "acceptance_length": (1.0, MOST_ROWS),
    "num_layers": (1, MOST_LAYERS),
    "expert_bytes": (1, int(MOST_BYTES)),
    "num_experts": (1, MOST_EXPERTS),
    "top_k": (1, MOST_EXPERTS),
    "block_size": (1, MOST_ROWS),
    "concurrency": (1, MOST_SEQUENCES),
    "router_exact_depth": (1, MOST_LAYERS),
}
"""Least and most of each number, whether the question uses it or not."""
DEFAULT_DENSE_SHARE = 0.5
DEFAULT_BLOCK_SIZE = 8
DEFAULT_ACCEPTANCE = "mixture:default"
DEFAULT_CONTEXT_TOKENS = 1024
DEFAULT_SLOT_FRACTION = 0.5


def add_term_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that give terms one by one."""
    for title, flags, kind in (
        ("terms of the inequality", NOMINAL_FLAGS, float),
        ("transfers with their full costs", TRANSFER_FLAGS, float),
        ("what hiding is worth", SPEED_FLAGS, float),
        ("shapes, without --model", SHAPE_FLAGS, int),
    ):
        group = parser.add_argument_group(title)
        for name, text in flags.items():
            group.add_argument(
                f"--{name.replace('_', '-')}", type=kind, metavar="X" if kind is float else "N", help=text
            )
    parser.add_argument(
        "--dense-share",
        type=float,
        default=DEFAULT_DENSE_SHARE,
        metavar="X",
        help="share of --verify-seconds before a layer's experts: attention, router (default %(default)s)",
    )


def add_scenario_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name a whole scenario."""
    group = parser.add_argument_group("a whole scenario", "flags win over the keys of --scenario FILE")
    group.add_argument(
        "--scenario", metavar="FILE", help="TOML file of `hideaway simulate`; keys that it uses are below"
    )
    group.add_argument("--model", metavar="NAME", help="built-in model, model file or config.json")
    group.add_argument("--profile", metavar="NAME", help="built-in hardware profile or profile file")
    group.add_argument(
        "--expert-format", metavar="FORMAT", help="mxfp4, nvfp4, fp8 or bf16 (default: as published)"
    )
    group.add_argument(
        "--slot-fraction", type=float, metavar="X", help="share of the experts with a slot (default 0.5)"
    )
    group.add_argument("--block-size", type=int, metavar="B", help="rows verified per round (default 8)")
    group.add_argument("--concurrency", type=int, metavar="C", help="sequences in one forward (default 1)")
    group.add_argument(
        "--context-tokens", type=int, metavar="N", help="context of each sequence (default 1024)"
    )
    group.add_argument(
        "--router-exact-depth",
        type=int,
        metavar="D",
        help="layers that the router pass works out exactly: 1 (default) runs routers alone",
    )
    group.add_argument(
        "--batched-issue", action="store_true", default=None, help="issue all copies as one batch"
    )
    group.add_argument(
        "--routing",
        metavar="SPEC",
        help="measured unions: replay:NAME, fitted:NAME or a path (default: nominal)",
    )
    group.add_argument(
        "--acceptance",
        metavar="SPEC",
        help="mean acceptance by block size: constant:A, rate:ALPHA, ... (default mixture:default)",
    )


def apply_scenario_file(arguments: argparse.Namespace) -> list[str]:
    """Fill flags that were not given from --scenario FILE; return the file's keys that this question has no use for.

    Raises
    ------
    InputError
        The file is no scenario.
    """
    if arguments.scenario is None:
        return []
    checked = scenario_from_mapping(read_scenario_mapping(arguments.scenario))
    unused = []
    for name in read_scenario_mapping(arguments.scenario):
        if name not in FILE_KEYS:
            unused.append(name)
        elif getattr(arguments, name) is None:
            setattr(arguments, name, getattr(checked, name))
    for name in ("model", "profile"):
        if getattr(arguments, name) is None:
            setattr(arguments, name, getattr(checked, name))
    return unused


def given(arguments: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """Return the values of those flags that were given."""
    return {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}


def check_given(arguments: argparse.Namespace) -> None:
    """Refuse numbers outside their limits, those that the question at hand passes over included."""
    for name, (least, most) in LIMITS.items():
        value = getattr(arguments, name)
        if isinstance(value, int):
            whole_number(name, value, minimum=int(least), maximum=int(most))
        elif value is not None:
            finite_number(name, value, minimum=least, maximum=most)


def scenario_from_arguments(arguments: argparse.Namespace) -> HideScenario:
    """Return the scenario that the flags name."""
    if arguments.model is None or arguments.profile is None:
        raise InputError("a scenario needs both a model and a profile; give --model NAME and --profile NAME")
    for name in ("total_expert_bytes", *SHAPE_FLAGS):
        if getattr(arguments, name) is not None:
            raise InputError(f"--{name.replace('_', '-')} comes from --model; leave one of the two out")
    return HideScenario(
        model=load_model(arguments.model, expert_format=arguments.expert_format),
        profile=load_profile(arguments.profile),
        slot_fraction=value_or(arguments.slot_fraction, DEFAULT_SLOT_FRACTION),
        block_size=value_or(arguments.block_size, DEFAULT_BLOCK_SIZE),
        num_sequences=value_or(arguments.concurrency, 1),
        context_tokens=value_or(arguments.context_tokens, DEFAULT_CONTEXT_TOKENS),
        router_exact_depth=value_or(arguments.router_exact_depth, 1),
        batched_issue=bool(arguments.batched_issue),
    )


def value_or(value: T | None, otherwise: T) -> T:
    """Return `value`, or `otherwise` where it is None."""
    return otherwise if value is None else value
