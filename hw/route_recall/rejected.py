"""How rows after the first rejection are routed, against what truly comes at the same positions.

A simulation that knows only the true continuation's routing needs a stand-in for rejected rows; `rejected_routing` of a
scenario chooses it: true rows, rows from elsewhere in the same sequence, or from another one. Here all three are held
against recorded rejected rows, in two ways. *Overlap* is the share of what the true row at the same position chooses
that the stand-in chooses, too, by how far behind the first rejection the row is, and by layer. *Union* is how many
experts of a layer the block reads with the stand-in's rows in place of the rejected ones: what transfers depend on.
Surrogates are drawn as the simulator draws them: a run of consecutive rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hideaway.hw.route_recall.rounds import Ids, Played, Round, chosen, union
from hideaway.hw.route_recall.scores import Bootstrap, Estimate

STAND_INS = ("recorded", "same-sequence", "other-sequence", "true")
"""What can stand in the place of rejected rows; `recorded` is what they really chose."""


@dataclass(frozen=True, slots=True)
class RejectedRouting:
    """What was found; a mapping's keys are `STAND_INS`.

    Parameters
    ----------
    rounds : int
        With a rejection and with the truth known at all the rejected positions.
    by_offset, by_layer : mapping to tuple of Estimate or None
        Overlap with the true rows by rows behind the first rejection (0 is the first rejected row), and by layer.
    overlap : mapping to Estimate or None
        Over all of them. Of `true` it is 1 and left out.
    by_chance : float
        k / E.
    union : mapping to Estimate or None
        Distinct experts a layer visit reads, over these rounds.
    excess : mapping to Estimate or None
        How many more that is than recorded, round by round; of `recorded` it is 0 and left out.
    """

    rounds: int
    by_offset: dict[str, tuple[Estimate | None, ...]]
    by_layer: dict[str, tuple[Estimate | None, ...]]
    overlap: dict[str, Estimate | None]
    by_chance: float
    union: dict[str, Estimate | None]
    excess: dict[str, Estimate | None]


class _Counts:
    """Of one stand-in: hits (texts, B - 1, L), and union sizes (texts,)."""

    def __init__(self, played: Played) -> None:
        self.hits = np.zeros((played.num_sequences, played.block_size - 1, played.num_layers))
        self.union = np.zeros(played.num_sequences)


def compare_rejected(played: Played, bootstrap: Bootstrap, rng: np.random.Generator) -> RejectedRouting:
    """Return how rejected rows and their stand-ins are routed against the true continuation.

    Parameters
    ----------
    rng : numpy.random.Generator
        Draws the surrogates. Changes it.
    """
    counts = {name: _Counts(played) for name in STAND_INS}
    needed = np.zeros((played.num_sequences, played.block_size - 1))
    visits = np.zeros(played.num_sequences)
    texts = [np.stack([truth[position] for position in sorted(truth)]) for truth in played.truth]
    rounds = 0
    for one in played.rounds:
        rows = _rows_of(one, played, texts, rng)
        if rows is None:
            continue
        rounds += 1
        true = chosen(rows["true"], played.num_experts)
        kept = union(chosen(one.ids[:, : one.kept], played.num_experts))
        behind = true.shape[1]
        needed[one.sequence, :behind] += played.top_k
        visits[one.sequence] += played.num_layers
        for name, ids in rows.items():
            marks = chosen(ids, played.num_experts)
            counts[name].hits[one.sequence, :behind] += (marks & true).sum(axis=2).T
            counts[name].union[one.sequence] += (kept | union(marks)).sum()
    return _result(played, counts, needed, visits, rounds, bootstrap)


def _rows_of(one: Round, played: Played, texts: list[Ids], rng: np.random.Generator) -> dict[str, Ids] | None:
    """Return (L, rejected, k) of each stand-in; None without a rejection or without the truth."""
    behind = played.block_size - one.kept
    truth = played.truth[one.sequence]
    positions = range(one.position + one.kept, one.position + played.block_size)
    if behind == 0 or any(position not in truth for position in positions):
        return None
    return {
        "recorded": one.ids[:, one.kept :],
        "same-sequence": _run(texts[one.sequence], behind, rng),
        "other-sequence": _run(texts[_other(one.sequence, len(texts), rng)], behind, rng),
        "true": np.stack([truth[position] for position in positions], axis=1),
    }


def _run(text: Ids, rows: int, rng: np.random.Generator) -> Ids:
    """Return consecutive rows from anywhere in a text (tokens, L, k), (L, rows, k)."""
    first = int(rng.integers(max(1, len(text) - rows + 1)))
    return text[first : first + rows].swapaxes(0, 1)


def _other(sequence: int, count: int, rng: np.random.Generator) -> int:
    return (sequence + 1 + int(rng.integers(max(1, count - 1)))) % count


def _result(
    played: Played,
    counts: dict[str, _Counts],
    needed: npt.NDArray[np.float64],
    visits: npt.NDArray[np.float64],
    rounds: int,
    bootstrap: Bootstrap,
) -> RejectedRouting:
    layers = played.num_layers
    every = needed.sum(axis=1)
    compared = [name for name in STAND_INS if name != "true"]
    return RejectedRouting(
        rounds,
        {
            name: tuple(
                bootstrap.ratio(counts[name].hits[:, offset].sum(axis=1), needed[:, offset] * layers)
                for offset in range(needed.shape[1])
            )
            for name in compared
        },
        {
            name: tuple(
                bootstrap.ratio(counts[name].hits[:, :, layer].sum(axis=1), every) for layer in range(layers)
            )
            for name in compared
        },
        {name: bootstrap.ratio(counts[name].hits.sum(axis=(1, 2)), every * layers) for name in compared},
        played.top_k / played.num_experts,
        {name: bootstrap.ratio(counts[name].union, visits) for name in STAND_INS},
        {
            name: bootstrap.ratio(counts[name].union - counts["recorded"].union, visits)
            for name in STAND_INS
            if name != "recorded"
        },
    )
