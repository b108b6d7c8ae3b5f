"""Measured unions from a routing trace, and the two probabilities of hiding that follow.

Rounds are drawn from the trace: their unions against a static hot set give P(a round is hidden). The
profile's standard errors give P(mean hidden). The two are never mixed (`hideaway.sim.hide.probabilistic`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hideaway.sim.hide import (
    HiddenProbability,
    evaluate_union,
    mean_hidden_probability,
    round_hidden_probability,
)
from hideaway.sim.hide.checks import FloatArray
from hideaway.sim.inputs.profiles import ALL_PARAMETERS, Profile
from hideaway.sim.inputs.routing import RoutingTrace, UnionTable
from hideaway.subcommands.hide_layers import build_layers, union_form
from hideaway.subcommands.hide_terms import HideTerms, TransferTerms

_MOST_RANGES = 200_000
"""Blocks looked up for one sample of rounds; large batches are sampled fewer times."""


@dataclass(frozen=True, slots=True)
class UnionSample:
    """Unions of sampled rounds, experts ordered by popularity within each layer.

    `needed` is (num_rounds, num_layers, num_experts) bool; entry e is the e-th most popular expert of that
    layer, so a static hot set of n slots holds entries 0 to n-1.
    """

    needed: npt.NDArray[np.bool_]

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Distinct experts of each round and layer (num_rounds, num_layers)."""
        sizes: npt.NDArray[np.int64] = self.needed.sum(axis=2)
        return sizes

    def missing(self, num_slots: int) -> npt.NDArray[np.int64]:
        """Return how many experts of each round and layer are not among the `num_slots` most popular."""
        missing: npt.NDArray[np.int64] = self.needed[:, :, num_slots:].sum(axis=2)
        return missing


class RoundSampler:
    """Random rounds of a trace: blocks that start at the same tokens whatever their length.

    The rows of a block are the recorded continuation, as if every draft were right: rejected rows would route
    elsewhere and need more. Blocks of different lengths are nested, so unions grow with the length.
    """

    def __init__(
        self,
        trace: RoutingTrace,
        *,
        num_sequences: int,
        longest_block: int,
        num_slots: int,
        num_rounds: int,
        rng: np.random.Generator,
    ) -> None:
        self._table = UnionTable(trace)
        self._order = np.argsort(-self._table.popularity(), axis=1, kind="stable")
        num_rounds = max(16, min(num_rounds, _MOST_RANGES // num_sequences))
        self._starts = rng.choice(_block_starts(trace, longest_block), (num_rounds, num_sequences))
        hot = self._order[:, :num_slots].tolist()
        self._not_hot = [~sum(1 << expert for expert in layer) for layer in hot]

    def means(self, block_size: int) -> tuple[float, float]:
        """Return the mean union of a layer, and how many of it a static hot set does not hold."""
        size = missing = 0
        unions = self._unions(block_size)
        for masks in unions:
            size += sum(mask.bit_count() for mask in masks)
            missing += sum((mask & cold).bit_count() for mask, cold in zip(masks, self._not_hot, strict=True))
        visits = len(unions) * len(self._not_hot)
        return size / visits, missing / visits

    def sample(self, block_size: int) -> UnionSample:
        """Return the unions of every round, expert by expert."""
        unions = self._unions(block_size)
        num_experts = self._table.num_experts
        needed = [np.take_along_axis(_as_bits(masks, num_experts), self._order, axis=1) for masks in unions]
        return UnionSample(np.stack(needed))

    def _unions(self, block_size: int) -> list[list[int]]:
        counts = np.full(self._starts.shape[1], block_size)
        return [self._table.unions(starts, counts) for starts in self._starts]


def round_chances(terms: HideTerms, sample: UnionSample, num_slots: int) -> dict[str, HiddenProbability]:
    """Return P(a round is hidden) over sampled rounds, by the measured union and by the staggered form."""
    nominal, transfers, verify = terms.nominal, _transfers(terms), terms.verify
    if verify is None:
        raise ValueError("chances need verify; make the terms from a scenario")
    missing, sizes = sample.missing(num_slots), sample.sizes.astype(np.float64)
    window = nominal.draft_seconds + nominal.router_seconds + nominal.overlap_seconds
    exposed = [
        build_layers(nominal, transfers, verify, needed=needed, missing=moved).staggered(window)
        for needed, moved in zip(sizes, missing, strict=True)
    ]
    return {
        "measured_union": round_hidden_probability(
            union_form(nominal, transfers, missing.sum(axis=1)).slack_seconds
        ),
        "staggered": round_hidden_probability(-np.array(exposed)),
    }


def mean_chance(
    terms_on: Callable[[Profile], HideTerms], profile: Profile, rng: np.random.Generator, *, num_draws: int
) -> tuple[HiddenProbability, tuple[str, ...]] | None:
    """Return P(mean hidden) by the measured union over the profile's standard errors, and what was varied.

    None when no parameter of the profile has a standard error.
    """
    estimates = {
        name: (parameter.value, parameter.standard_error)
        for name, parameter in sorted(profile.parameters.items())
        if parameter.standard_error
    }
    if not estimates:
        return None

    def slack(draws: Mapping[str, FloatArray]) -> FloatArray:
        columns = {
            name: np.clip(values, ALL_PARAMETERS[name].minimum, ALL_PARAMETERS[name].maximum).tolist()
            for name, values in draws.items()
        }
        changed = [{name: column[index] for name, column in columns.items()} for index in range(num_draws)]
        return _union_slack([terms_on(profile.with_values(values)) for values in changed])

    return mean_hidden_probability(slack, estimates, rng, num_draws=num_draws), tuple(estimates)


def _union_slack(all_terms: list[HideTerms]) -> FloatArray:
    """Return the slack of the measured union for each of many terms, in one evaluation."""
    nominal = [terms.nominal for terms in all_terms]
    transfers = [_transfers(terms) for terms in all_terms]
    return evaluate_union(
        num_transfers=[each.num_layers * each.missing_per_layer for each in transfers],
        expert_bytes=[each.expert_bytes for each in transfers],
        measured_h2d_bytes_per_second=[each.measured_h2d_bytes_per_second for each in nominal],
        latency_seconds=[each.latency_seconds for each in transfers],
        issue_seconds=[each.issue_seconds for each in transfers],
        batch_issue_seconds=[each.batch_issue_seconds for each in transfers],
        draft_seconds=[each.draft_seconds for each in nominal],
        router_seconds=[each.router_seconds for each in nominal],
        overlap_seconds=[each.overlap_seconds for each in nominal],
    ).slack_seconds


def _transfers(terms: HideTerms) -> TransferTerms:
    if terms.transfers is None:
        raise ValueError("chances need transfers; make the terms from a scenario")
    return terms.transfers


def _block_starts(trace: RoutingTrace, block_size: int) -> npt.NDArray[np.int64]:
    """Return the tokens from which a whole block lies within one sequence; all tokens when none does."""
    ends = np.repeat(np.cumsum(trace.seq_lengths), trace.seq_lengths)
    tokens = np.arange(trace.num_tokens, dtype=np.int64)
    whole = tokens[tokens + block_size <= ends]
    return whole if whole.size else tokens


def _as_bits(masks: list[int], num_experts: int) -> npt.NDArray[np.bool_]:
    """Return bitmasks as (num_layers, num_experts) bool."""
    num_bytes = -(-num_experts // 8)
    packed = np.frombuffer(b"".join(mask.to_bytes(num_bytes, "little") for mask in masks), dtype=np.uint8)
    bits = np.unpackbits(packed.reshape(len(masks), num_bytes), axis=1, count=num_experts, bitorder="little")
    return bits.astype(np.bool_)
