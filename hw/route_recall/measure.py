"""The whole measurement: play rounds on calibration texts, fit, play rounds on other texts, guess, count.

What comes out is a `RouteRecall`; tables and pictures of it are in `hideaway.report`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hideaway.hw.route_recall.drafting import Drafts
from hideaway.hw.route_recall.fitted import Fitted, fit
from hideaway.hw.route_recall.guesses import BEFORE_VERIFY, Guess, guesses_of
from hideaway.hw.route_recall.play import play
from hideaway.hw.route_recall.positions import Waste, WasteResult, waste_result
from hideaway.hw.route_recall.rejected import RejectedRouting, compare_rejected
from hideaway.hw.route_recall.replay import Replay, ReplayCosts, ReplayResult
from hideaway.hw.route_recall.rounds import Chosen, Played, chosen, union
from hideaway.hw.route_recall.scores import Bootstrap, Curve, Estimate, Tally, curves
from hideaway.hw.route_recall.served import WatchedModel
from hideaway.sim.masks import mask_of

NOBODY = "no guess"
"""The replay's row without any guess: the floor."""
_FLOOR = (NOBODY, BEFORE_VERIFY)

Prompts = Sequence[Sequence[int]]
MakeDrafts = Callable[[Prompts, int], Drafts]
"""From texts (prompts, and what follows where that is given) and a seed to what drafts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayOptions:
    """How rounds are played.

    Parameters
    ----------
    prompt_tokens : int
        Tokens of each text that are its prompt.
    rounds_each, block_size : int
        Rounds of a text, and rows of a block.
    """

    prompt_tokens: int
    rounds_each: int
    block_size: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteRecall:
    """What was found.

    Parameters
    ----------
    rounds, sequences : int
        Judged.
    calibration_rounds : int
        Fitted on.
    ridges : dict of str to float
        The ridge chosen for each linear map.
    mean_kept : Estimate or None
        Rows of a round whose token was committed: the acceptance length.
    union : Estimate or None
        Distinct experts that a block reads in a layer.
    rejections : tuple of int
        Rounds that rejected each row of the block.
    """

    rounds: int
    sequences: int
    calibration_rounds: int
    num_layers: int
    num_experts: int
    top_k: int
    block_size: int
    expert_bytes: int
    ridges: dict[str, float]
    mean_kept: Estimate | None
    union: Estimate | None
    rejections: tuple[int, ...]
    curves: tuple[Curve, ...]
    waste: tuple[WasteResult, ...]
    replay: tuple[ReplayResult, ...]
    rejected: RejectedRouting


def play_both(
    model: WatchedModel,
    make_drafts: MakeDrafts,
    calibration: Prompts,
    judged: Prompts,
    options: PlayOptions,
    progress: Callable[[], None] | None = None,
) -> tuple[Played, Played]:
    """Return the rounds of the calibration texts and of those that are judged; they share nothing but the model."""
    both = []
    for number, texts in enumerate((calibration, judged)):
        seed = options.seed + number
        played = play(
            model,
            make_drafts(texts, seed),
            [text[: options.prompt_tokens] for text in texts],
            rounds_each=options.rounds_each,
            block_size=options.block_size,
            seed=seed,
            progress=progress,
        )
        both.append(played)
    return both[0], both[1]


def judge(
    calibration: Played,
    played: Played,
    costs: ReplayCosts,
    expert_bytes: int,
    rng: np.random.Generator,
    progress: Callable[[], None] | None = None,
) -> RouteRecall:
    """Return what the played rounds say of every predictor.

    Parameters
    ----------
    expert_bytes : int
        Of one expert.
    rng : numpy.random.Generator
        Draws resampled texts and surrogate rows. Changes it.
    progress : callable, optional
        Called after every round.
    """
    fitted = fit(calibration)
    bootstrap = Bootstrap(played.num_sequences, rng)
    counts = _Counts(played, costs, expert_bytes)
    for one in played.rounds:
        truth = chosen(one.ids, played.num_experts)
        counts.add_floor(truth, one.kept)
        for guess in guesses_of(one, fitted, played.num_experts):
            counts.add(one.sequence, guess, truth, one.kept)
        if progress is not None:
            progress()
    return RouteRecall(
        rounds=len(played.rounds),
        sequences=played.num_sequences,
        calibration_rounds=len(calibration.rounds),
        num_layers=played.num_layers,
        num_experts=played.num_experts,
        top_k=played.top_k,
        block_size=played.block_size,
        expert_bytes=expert_bytes,
        ridges=_ridges(fitted),
        mean_kept=_mean(played, [one.kept for one in played.rounds], bootstrap),
        union=_mean(played, _unions(played), bootstrap),
        rejections=counts.rejections(),
        curves=tuple(curves(counts.tallies, bootstrap)),
        waste=tuple(waste_result(key, waste, bootstrap) for key, waste in counts.wastes.items()),
        replay=tuple(replay.result() for replay in counts.replays.values()),
        rejected=compare_rejected(played, bootstrap, rng),
    )


class _Counts:
    """What is counted of every predictor at every distance, made when first met."""

    def __init__(self, played: Played, costs: ReplayCosts, expert_bytes: int) -> None:
        self._played = played
        self._costs = costs
        self._expert_bytes = expert_bytes
        self.tallies: dict[tuple[str, int], Tally] = {}
        self.wastes: dict[tuple[str, int], Waste] = {}
        self.replays: dict[tuple[str, int], Replay] = {_FLOOR: self._replay(*_FLOOR)}

    def add_floor(self, truth: Chosen, kept: int) -> None:
        """Replay a block without a guess. Changes state."""
        nothing = [0] * len(truth)
        self.replays[_FLOOR].round(nothing, _masks(truth), _masks(truth[:, :kept]))

    def add(self, sequence: int, guess: Guess, truth: Chosen, kept: int) -> None:
        """Count a block's guess. Changes state."""
        key = guess.predictor, guess.distance
        played = self._played
        if key not in self.tallies:
            sizes = played.num_sequences, played.block_size
            self.tallies[key] = Tally(sizes[0], played.num_layers, sizes[1])
            self.wastes[key] = Waste(*sizes, played.num_experts, self._expert_bytes)
            self.replays[key] = self._replay(*key)
        self.tallies[key].add(sequence, guess, truth)
        self.wastes[key].add(sequence, guess, truth, kept)
        self.replays[key].round(_masks(guess.experts), _masks(truth), _masks(truth[:, :kept]))

    def rejections(self) -> tuple[int, ...]:
        """Return how many rounds rejected each row."""
        return next(iter(self.wastes.values())).rejections()

    def _replay(self, predictor: str, distance: int) -> Replay:
        played = self._played
        return Replay(
            predictor,
            distance,
            self._costs,
            num_layers=played.num_layers,
            num_experts=played.num_experts,
            top_k=played.top_k,
        )


def _masks(experts: Chosen) -> list[int]:
    """Return the union of rows (L, rows, E) as one mask a layer."""
    return [mask_of(np.flatnonzero(layer).tolist()) for layer in union(experts)]


def _ridges(fitted: Fitted) -> dict[str, float]:
    maps = {"tokens": fitted.token_map, "anchors": fitted.anchor_map, "drafts": fitted.draft_map}
    return {name: found.ridge for name, found in maps.items() if found is not None}


def _unions(played: Played) -> list[float]:
    """Return the mean distinct experts of a layer visit of each round."""
    return [float(union(chosen(one.ids, played.num_experts)).sum(axis=1).mean()) for one in played.rounds]


def mean_union(played: Played) -> float:
    """Return the mean distinct experts of a layer visit."""
    return float(np.mean(_unions(played)))


def _mean(played: Played, values: Sequence[float], bootstrap: Bootstrap) -> Estimate | None:
    sums, counts = np.zeros(played.num_sequences), np.zeros(played.num_sequences)
    for one, value in zip(played.rounds, values, strict=True):
        sums[one.sequence] += value
        counts[one.sequence] += 1
    return bootstrap.ratio(sums, counts)
