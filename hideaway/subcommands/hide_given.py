"""Terms given as flags: all of them, or some in place of what a scenario derives.

The flags are in `hideaway.subcommands.hide_flags`, what follows from the terms in
`hideaway.subcommands.hide_answer`.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Collection

from hideaway.sim.errors import InputError
from hideaway.sim.hide import nominal_saturation
from hideaway.sim.number_checks import finite_number, whole_number
from hideaway.subcommands.hide_flags import (
    ALL_TERM_FLAGS,
    DEFAULT_BLOCK_SIZE,
    NOMINAL_FLAGS,
    SHAPE_FLAGS,
    given,
    value_or,
)
from hideaway.subcommands.hide_terms import (
    BlockTerms,
    HideTerms,
    NominalTerms,
    TransferTerms,
    VerifyTerms,
)


def terms_from_arguments(arguments: argparse.Namespace) -> HideTerms:
    """Return the terms that the flags give one by one.

    Raises
    ------
    InputError
        A term of the inequality is neither given nor follows from others.
    """
    shape = {name: int(value) for name, value in given(arguments, SHAPE_FLAGS).items()}
    for name, value in shape.items():
        whole_number(name, value, minimum=1)
    block = _block_terms(arguments, shape)
    nominal = given(arguments, NOMINAL_FLAGS)
    sources = dict.fromkeys(shape, "flag")
    if "overlap_seconds" not in nominal:
        nominal["overlap_seconds"], sources["overlap_seconds"] = 0.0, "default"
    if block is not None and "saturation" not in nominal:
        nominal["saturation"] = float(nominal_saturation(**dataclasses.asdict(block)))
        sources["saturation"] = "min(1, c·B·k/E)"
    if "total_expert_bytes" not in nominal and {"num_layers", "num_experts", "expert_bytes"} <= shape.keys():
        nominal["total_expert_bytes"] = shape["num_layers"] * shape["num_experts"] * shape["expert_bytes"]
        sources["total_expert_bytes"] = "layers · experts · expert bytes"
    missing = [f"--{name.replace('_', '-')}" for name in NOMINAL_FLAGS if name not in nominal]
    if missing:
        raise InputError(
            f"{', '.join(missing)} must be given; or name a scenario with --model and --profile, "
            "or a published case with --published bm4"
        )
    terms = HideTerms(nominal=NominalTerms(**nominal), block=block, sources=sources)
    if {"num_layers", "expert_bytes"} <= shape.keys() and (block or arguments.experts_per_layer is not None):
        union = 0.0 if block is None else terms.nominal.saturation * block.num_experts
        terms = dataclasses.replace(terms, transfers=_bare_transfers(shape, union))
        terms.sources["experts_per_layer"] = "s · experts"
    terms = dataclasses.replace(
        terms,
        acceptance_length=arguments.acceptance_length,
        b0_seconds_per_token=arguments.b0_seconds_per_token,
    )
    return with_given_terms(terms, arguments)


def with_given_terms(
    terms: HideTerms, arguments: argparse.Namespace, names: Collection[str] = ALL_TERM_FLAGS
) -> HideTerms:
    """Return the terms with every flag of `names` that was given in place of what was derived."""
    flags = {name: value for name, value in given(arguments, ALL_TERM_FLAGS).items() if name in names}
    nominal = dataclasses.replace(
        terms.nominal, **{name: value for name, value in flags.items() if name in NOMINAL_FLAGS}
    )
    sources = terms.sources | dict.fromkeys(flags, "flag")
    transfers = terms.transfers
    if transfers is not None:
        transfers = dataclasses.replace(
            _with_union(transfers, terms, nominal, flags),
            latency_seconds=flags.get("latency_seconds", transfers.latency_seconds),
            issue_seconds=flags.get("issue_seconds", transfers.issue_seconds),
            batch_issue_seconds=flags.get("batch_issue_seconds", transfers.batch_issue_seconds),
            idle_link_seconds=flags.get("idle_link_seconds", transfers.idle_link_seconds),
        )
    verify = terms.verify
    if "verify_seconds" in flags and transfers is not None:
        verify = _even_verify(flags["verify_seconds"], arguments.dense_share, transfers)
    return dataclasses.replace(
        terms,
        nominal=nominal,
        transfers=transfers,
        verify=verify,
        verify_seconds=flags.get("verify_seconds", terms.verify_seconds),
        sources=sources,
    )


def _with_union(
    transfers: TransferTerms, terms: HideTerms, nominal: NominalTerms, flags: dict[str, float]
) -> TransferTerms:
    """Let a given union, saturation or resident fraction decide how many experts must move."""
    union = transfers.experts_per_layer
    if "experts_per_layer" in flags:
        most = None if terms.block is None else terms.block.num_experts
        union = finite_number("experts_per_layer", flags["experts_per_layer"], maximum=most or math.inf)
    elif "saturation" in flags and terms.block is not None:
        union = nominal.saturation * terms.block.num_experts
    missing = transfers.missing_per_layer
    if not flags.keys().isdisjoint({"experts_per_layer", "saturation", "resident_fraction"}):
        missing = (1.0 - nominal.resident_fraction) * union
    return dataclasses.replace(transfers, experts_per_layer=union, missing_per_layer=missing)


def _bare_transfers(shape: dict[str, int], union: float) -> TransferTerms:
    return TransferTerms(
        num_layers=shape["num_layers"],
        expert_bytes=shape["expert_bytes"],
        experts_per_layer=union,
        missing_per_layer=union,
        latency_seconds=0.0,
        issue_seconds=0.0,
        batch_issue_seconds=0.0,
        idle_link_seconds=0.0,
    )


def _even_verify(verify_seconds: float, dense_share: float, transfers: TransferTerms) -> VerifyTerms:
    """Share a verify time out evenly: over layers, `dense_share` before the experts, the rest on them."""
    finite_number("verify_seconds", verify_seconds)
    share = finite_number("dense_share", dense_share, maximum=1.0)
    layer = verify_seconds / transfers.num_layers
    experts = transfers.experts_per_layer
    return VerifyTerms(
        before_experts_seconds=layer * (share if experts > 0 else 1.0),
        group_seconds=0.0,
        expert_seconds=layer * (1.0 - share) / experts if experts > 0 else 0.0,
        other_seconds=0.0,
    )


def _block_terms(arguments: argparse.Namespace, shape: dict[str, int]) -> BlockTerms | None:
    if not {"num_experts", "top_k"} <= shape.keys():
        return None
    return BlockTerms(
        num_sequences=value_or(arguments.concurrency, 1),
        block_size=value_or(arguments.block_size, DEFAULT_BLOCK_SIZE),
        top_k=shape["top_k"],
        num_experts=shape["num_experts"],
    )
