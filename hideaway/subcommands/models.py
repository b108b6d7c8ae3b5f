"""List the models that are built in, or show one in full and how many of its experts fit on a card.

NAME is a built-in name or alias (any case), a model file, or a Hugging Face config.json or its folder. With
--profile the slots are counted that remain beside the weights that are always on the device, the cache of one
sequence and what the profile reserves. -o writes the model as a file that can be edited and given back.

example:
  hideaway models gpt-oss-20b --profile rtx-5090
"""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from hideaway.console import note, print_json, print_table
from hideaway.options import add_json_option, add_out_option
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.models import (
    WEIGHT_FORMATS,
    Architecture,
    ModelSpec,
    builtin_model_names,
    load_architecture,
    save_architecture,
    spec_from,
)
from hideaway.sim.inputs.profiles import Profile, load_profile
from hideaway.sim.units import GB, MB

_LISTED_CONTEXT_TOKENS = 1000
_CONTEXTS = (1000, 32_000)
_DEFAULT_CONTEXT_TOKENS = 8192
_MAX_CONTEXT_TOKENS = 10**9


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `hideaway models`."""
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="built-in name or path; without it all are listed"
    )
    parser.add_argument(
        "--expert-format",
        choices=WEIGHT_FORMATS,
        help="how the routed experts are stored (default: the published FP4 release, or the "
        "checkpoint's own)",
    )
    parser.add_argument("--profile", metavar="NAME", help="hardware profile to fit the experts on")
    parser.add_argument(
        "--context-tokens",
        type=int,
        default=_DEFAULT_CONTEXT_TOKENS,
        metavar="N",
        help="tokens of cache to leave room for with --profile (default %(default)s)",
    )
    add_json_option(parser)
    add_out_option(parser, "write the model as a model file")


def run(arguments: argparse.Namespace) -> int:
    """Print the list, or one model."""
    if not 0 <= arguments.context_tokens <= _MAX_CONTEXT_TOKENS:
        raise InputError(
            f"--context-tokens is {arguments.context_tokens}; give a whole number from 0 to "
            f"{_MAX_CONTEXT_TOKENS}"
        )
    if arguments.name is None:
        if arguments.profile is not None or arguments.out is not None:
            raise InputError(
                "--profile and --out need a NAME; give one of the models that `hideaway models` lists"
            )
        return _list(arguments)
    architecture = load_architecture(arguments.name, expert_format=arguments.expert_format)
    if arguments.expert_format is not None:
        stored = dataclasses.replace(architecture.stored, experts=arguments.expert_format)
        architecture = dataclasses.replace(architecture, stored=stored)
    spec = spec_from(architecture)
    fit = None
    if arguments.profile is not None:
        fit = _fit(spec, load_profile(arguments.profile), arguments.context_tokens)
    if arguments.out is not None:
        save_architecture(arguments.out, architecture)
        note(f"wrote {arguments.out}")
    if arguments.json:
        print_json({"model": _fields(spec, architecture), "fit": fit})
        return 0
    _show(spec, architecture, fit)
    return 0


def _list(arguments: argparse.Namespace) -> int:
    specs = [spec_from(load_architecture(name), arguments.expert_format) for name in builtin_model_names()]
    if arguments.json:
        models = [_fields(spec, load_architecture(spec.name)) for spec in specs]
        print_json({"models": models})
        return 0
    rows = [
        (
            spec.name,
            _layers(spec),
            spec.num_experts,
            spec.top_k,
            f"{spec.hidden_size} x {spec.expert_intermediate_size}",
            spec.expert_format,
            f"{spec.expert_bytes:,}",
            f"{spec.total_expert_bytes / GB:.2f}",
            f"{spec.dense_bytes / GB:.2f}",
            f"{spec.kv_bytes(_LISTED_CONTEXT_TOKENS) / MB:.1f}",
        )
        for spec in specs
    ]
    columns = (
        "model",
        "layers",
        "experts",
        "top k",
        "hidden x width",
        "format",
        "bytes an expert",
        "M GB",
        "dense GB",
        "KV MB/1k tokens",
    )
    print_table(columns, rows)
    return 0


def _layers(spec: ModelSpec) -> str:
    dense = f" + {spec.num_dense_layers} dense" if spec.num_dense_layers else ""
    return f"{spec.num_layers}{dense}"


def _fields(spec: ModelSpec, architecture: Architecture) -> dict[str, Any]:
    fields = dataclasses.asdict(spec)
    fields["kv_bytes_per_1000_tokens"] = spec.kv_bytes(_LISTED_CONTEXT_TOKENS)
    fields["fp4_release"] = architecture.fp4_release
    fields["source"] = architecture.source
    return fields


def _fit(spec: ModelSpec, profile: Profile, context_tokens: int) -> dict[str, Any]:
    """Return slots per layer and share of the experts that fit beside dense weights and cache."""
    device_bytes = int(profile.value("memory.device_bytes"))
    reserved_bytes = int(profile.value("memory.reserved_bytes"))
    cache_bytes = spec.kv_bytes(context_tokens)
    free_bytes = device_bytes - reserved_bytes - spec.dense_bytes - cache_bytes
    slots = max(0, min(spec.num_experts, free_bytes // (spec.num_layers * spec.expert_bytes)))
    return {
        "profile": profile.name,
        "context_tokens": context_tokens,
        "device_bytes": device_bytes,
        "reserved_bytes": reserved_bytes,
        "dense_bytes": spec.dense_bytes,
        "kv_bytes": cache_bytes,
        "free_bytes": free_bytes,
        "slots_per_layer": slots,
        "resident_fraction": slots / spec.num_experts,
    }


def _show(spec: ModelSpec, architecture: Architecture, fit: dict[str, Any] | None) -> None:
    kinds = ", ".join(f"{spec.layer_kinds.count(kind)} {kind}" for kind in dict.fromkeys(spec.layer_kinds))
    window = "" if spec.sliding_window_tokens is None else f" (window {spec.sliding_window_tokens} tokens)"
    rows: list[tuple[str, str]] = [
        ("also called", ", ".join(spec.aliases) or "-"),
        ("parameters", f"{spec.num_parameters / 1e9:.2f} billion"),
        ("layers", f"{_layers(spec)}; attention {kinds}{window}"),
        ("experts", f"{spec.num_experts} a layer, {spec.top_k} a token"),
        ("one expert", f"{spec.expert_bytes:,} bytes in {spec.expert_format}, 3 x {spec.hidden_size} x "
                       f"{spec.expert_intermediate_size} weights"),
        ("all routed experts (M)", f"{spec.total_expert_bytes / GB:.3f} GB"),
        ("always on the device", f"{spec.dense_bytes / GB:.3f} GB"),
        ("one MoE layer without experts", f"{spec.dense_bytes_per_layer / MB:.2f} MB, of which router "
                                          f"{spec.router_bytes_per_layer / MB:.3f} MB"),
        ("head", f"{spec.head_bytes / MB:.1f} MB"),
        ("KV of one sequence", "; ".join(f"{n:,} tokens {spec.kv_bytes(n) / MB:.0f} MB" for n in _CONTEXTS)),
        ("FP4 release", architecture.fp4_release or "none known"),
        ("source", architecture.source),
    ]  # fmt: skip
    if fit is not None:
        rows.append(
            (
                f"fits on {fit['profile']}",
                f"{fit['slots_per_layer']} of {spec.num_experts} experts a layer "
                f"({fit['resident_fraction']:.0%}) "
                f"beside {fit['kv_bytes'] / GB:.2f} GB of KV for {fit['context_tokens']:,} tokens and "
                f"{fit['reserved_bytes'] / GB:.2f} GB reserved",
            )
        )
    print_table(("", spec.name), rows)
