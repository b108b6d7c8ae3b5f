"""One question of `hideaway hide`, from flags to everything that is printed and drawn.

Two ways in: terms given one by one (`ask_terms`), or a model on a card (`ask_scenario`), which adds
measured unions, chances and an estimate of B0.
"""

from __future__ import annotations

import argparse
import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from hideaway.sim.errors import InputError
from hideaway.sim.hide import nominal_saturation
from hideaway.sim.inputs.acceptance import load_acceptance
from hideaway.sim.inputs.profiles import Profile
from hideaway.sim.inputs.routing import RoutingTrace, load_routing
from hideaway.subcommands.hide_answer import answer, b0_seconds_per_token
from hideaway.subcommands.hide_chance import RoundSampler, UnionSample, mean_chance, round_chances
from hideaway.subcommands.hide_curves import VerdictCurve, block_candidates, block_curve, slot_curve
from hideaway.subcommands.hide_flags import ALL_TERM_FLAGS, LINK_FLAGS, scenario_from_arguments
from hideaway.subcommands.hide_given import terms_from_arguments, with_given_terms
from hideaway.subcommands.hide_terms import HideScenario, HideTerms, terms_from_scenario

_ROUNDS = 400
"""Rounds drawn for the chances: the proportion is known to 5 points at worst (two standard errors)."""
_CALIBRATION_DRAWS = 1000


@dataclass(frozen=True, slots=True)
class Asked:
    """The answer as plain data, and the terms and curves behind the picture."""

    result: dict[str, Any]
    terms: HideTerms
    blocks: VerdictCurve | None
    slots: VerdictCurve | None


def ask_terms(arguments: argparse.Namespace) -> Asked:
    """Return the answer for terms given one by one; over block sizes only the saturation changes."""
    terms = terms_from_arguments(arguments)
    blocks = None
    notes = []
    if terms.block is not None and arguments.saturation is None:
        blocks = block_curve(lambda size: _at_block(terms, size), block_candidates(terms.block.block_size))
        notes.append("Over block sizes only the saturation changes: the window is held at the terms given.")
    if terms.transfers is None:
        notes.append(
            "Left out, the forms that count transfers: "
            "give --num-layers, --expert-bytes and --experts-per-layer."
        )
    if terms.verify_seconds is None:
        notes.append("Left out, the exact forms and seconds per committed token: give --verify-seconds.")
    if terms.acceptance_length is None or terms.b0_seconds_per_token is None:
        notes.append("Left out, what hiding is worth: give --acceptance-length and --b0-seconds-per-token.")
    if terms.verify is not None:
        notes.append(
            f"Exact forms: layers alike, {arguments.dense_share:g} of verify before a layer's experts."
        )
    return _asked(terms, blocks, slot_curve(terms, None), notes)


def ask_scenario(arguments: argparse.Namespace) -> Asked:
    """Return the answer for a model on a card."""
    scenario = scenario_from_arguments(arguments)
    rounds = _Rounds(arguments, scenario)
    terms = rounds.terms()
    b0 = arguments.b0_seconds_per_token
    if b0 is None:
        b0 = b0_seconds_per_token(rounds.terms(block_size=1, names=LINK_FLAGS))
        terms.sources["b0_seconds_per_token"] = "estimate"
    if arguments.acceptance is not None:
        terms.sources["acceptance_length"] = f"mean of {arguments.acceptance}"
    terms = dataclasses.replace(
        terms, b0_seconds_per_token=b0, acceptance_length=_acceptance(arguments, scenario)
    )
    other = set(ALL_TERM_FLAGS) - {"experts_per_layer", "verify_seconds"}

    def at_block(block_size: int) -> HideTerms:
        return (
            terms if block_size == scenario.block_size else rounds.terms(block_size=block_size, names=other)
        )

    blocks = block_curve(at_block, block_candidates(scenario.block_size))
    sample = None if rounds.sampler is None else rounds.sampler.sample(scenario.block_size)
    asked = _asked(terms, blocks, slot_curve(terms, sample), _scenario_notes(arguments, rounds))
    asked.result["chances"] = _chances(rounds, terms, sample)
    return asked


class _Rounds:
    """The scenario's terms at any block size and profile, with unions looked up once for each block size."""

    def __init__(self, arguments: argparse.Namespace, scenario: HideScenario) -> None:
        self.arguments = arguments
        self.scenario = scenario
        model = scenario.model
        self.num_slots = round(scenario.slot_fraction * model.num_experts)
        self.trace: RoutingTrace | None = None
        self.sampler: RoundSampler | None = None
        if arguments.routing is not None:
            self.trace = load_routing(
                arguments.routing,
                num_layers=model.num_layers,
                num_experts=model.num_experts,
                top_k=model.top_k,
                rng=np.random.default_rng(arguments.seed),
            )
            self.sampler = RoundSampler(
                self.trace,
                num_sequences=scenario.num_sequences,
                longest_block=max(scenario.block_size, block_candidates(scenario.block_size)[-1]),
                num_slots=self.num_slots,
                num_rounds=_ROUNDS,
                rng=np.random.default_rng([arguments.seed, 1]),
            )
        self._means: dict[int, tuple[float, float]] = {}

    def means(self, block_size: int) -> tuple[float, float] | tuple[None, None]:
        """Return the mean measured union and its missing part at a block size, each looked up once."""
        if self.sampler is None:
            return None, None
        if block_size not in self._means:
            self._means[block_size] = self.sampler.means(block_size)
        return self._means[block_size]

    def terms(
        self,
        *,
        block_size: int | None = None,
        profile: Profile | None = None,
        names: set[str] | tuple[str, ...] | None = None,
    ) -> HideTerms:
        """Return the terms with the flags of `names` (all without it) in place of what is derived."""
        size = self.scenario.block_size if block_size is None else block_size
        changed = dataclasses.replace(
            self.scenario, block_size=size, profile=self.scenario.profile if profile is None else profile
        )
        union, missing = self.means(size)
        terms = terms_from_scenario(changed, experts_per_layer=union, missing_per_layer=missing)
        return with_given_terms(terms, self.arguments, ALL_TERM_FLAGS if names is None else names)


def _at_block(terms: HideTerms, block_size: int) -> HideTerms:
    """Return terms given by flags at another block size: nominal saturation, same window."""
    if terms.block is None:
        raise ValueError("a block size changes nothing without num_experts and top_k")
    block = dataclasses.replace(terms.block, block_size=block_size)
    saturation = float(nominal_saturation(**dataclasses.asdict(block)))
    nominal = dataclasses.replace(terms.nominal, saturation=saturation)
    transfers = terms.transfers
    if transfers is not None and terms.sources.get("experts_per_layer") != "flag":
        union = saturation * block.num_experts
        transfers = dataclasses.replace(
            transfers, experts_per_layer=union, missing_per_layer=(1.0 - nominal.resident_fraction) * union
        )
    return HideTerms(nominal=nominal, transfers=transfers, block=block)


def _acceptance(arguments: argparse.Namespace, scenario: HideScenario) -> float | None:
    if arguments.acceptance is None:
        given: float | None = arguments.acceptance_length
        return given
    if arguments.acceptance_length is not None:
        raise InputError("--acceptance and --acceptance-length say the same thing; leave one of them out")
    return load_acceptance(arguments.acceptance).mean_length(scenario.block_size)


def _chances(rounds: _Rounds, terms: HideTerms, sample: UnionSample | None) -> dict[str, Any]:
    chances: dict[str, Any] = {"round_hidden": None, "mean_hidden": None, "varied_parameters": []}
    if sample is not None:
        chances["round_hidden"] = {
            form: dataclasses.asdict(chance)
            for form, chance in round_chances(terms, sample, rounds.num_slots).items()
        }
    result = mean_chance(
        lambda profile: rounds.terms(profile=profile),
        rounds.scenario.profile,
        np.random.default_rng([rounds.arguments.seed, 0]),
        num_draws=_CALIBRATION_DRAWS,
    )
    if result is not None:
        chance, varied = result
        chances["mean_hidden"] = {"measured_union": dataclasses.asdict(chance)}
        chances["varied_parameters"] = list(varied)
    return chances


def _scenario_notes(arguments: argparse.Namespace, rounds: _Rounds) -> list[str]:
    scenario = rounds.scenario
    notes = [
        f"{scenario.model.name} ({scenario.model.expert_format} experts) on {scenario.profile.name}: "
        f"slot fraction {scenario.slot_fraction:g}, block size {scenario.block_size}, "
        f"concurrency {scenario.num_sequences}, context {scenario.context_tokens} tokens, router exact depth "
        f"{scenario.router_exact_depth}, "
        f"copies issued {'as one batch' if scenario.batched_issue else 'one by one'}."
    ]
    if scenario.router_exact_depth > 1:
        notes.append("Verify does not reuse the attention that the router pass has computed.")
    if rounds.trace is None:
        notes.append(
            "Unions are nominal, min(E, c·B·k); real ones are 40 to 60 % of that. "
            "Give --routing to measure them and the chance that a round is hidden."
        )
    else:
        notes.append(
            f"Unions of {rounds.trace.name}: {rounds.trace.origin.rstrip('.')}. Rows are the recorded "
            f"continuation (rejected rows would need more); residents are the {rounds.num_slots} most "
            "popular experts of each layer, chosen with hindsight."
        )
    if arguments.b0_seconds_per_token is None:
        notes.append(
            "B0 is estimated as a depth-1 forward of one row without its prefetcher, so on the slow side."
        )
    if arguments.acceptance is None and arguments.acceptance_length is None:
        notes.append("Left out, seconds per committed token: give --acceptance or --acceptance-length.")
    return notes


def _asked(
    terms: HideTerms, blocks: VerdictCurve | None, slots: VerdictCurve | None, notes: list[str]
) -> Asked:
    result = answer(terms)
    result["sources"] = terms.sources
    result["sets"] = {"block_size": _plain_set(blocks), "slots_per_layer": _plain_set(slots)}
    result["chances"] = None
    if terms.verify is not None:
        notes.append(
            "Exact forms: no contention, no other traffic on the link, slots never block a transfer."
        )
    result["notes"] = notes
    return Asked(result, terms, blocks, slots)


def _plain_set(curve: VerdictCurve | None) -> dict[str, Any] | None:
    if curve is None:
        return None
    by_union = curve.hiding_by_union
    return {
        "candidates": [curve.candidates[0], curve.candidates[-1]],
        "hiding": list(curve.hiding),
        "hiding_text": curve.as_text(curve.hiding),
        "hiding_by_union": None if by_union is None else list(by_union),
        "hiding_by_union_text": None if by_union is None else curve.as_text(by_union),
    }
