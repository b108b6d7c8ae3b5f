"""Every predictor's guess of a block: which experts each row will choose in each layer, and when that was known.

| predictor | looks at | made |
|---|---|---|
| exact | the rows' true choices: what a perfect guess would bring | - |
| stale-gate | the residual at layer l - d, through layer l's own norm and router | d layers ahead |
| late-gate | the same with layer l - d's experts added, known when that layer is done | d layers ahead, late |
| co-occurrence | what the row chose at layer l - d; frequencies of other texts | d layers ahead |
| embedding-gate | the tokens' embeddings, through layer l's norm and router | before verify |
| fitted-tokens | the tokens' embeddings, through a map fitted on other texts | before verify |
| drafter-features | the drafter's hidden states and the drafted tokens, through such maps | before verify |
| previous-token | what the row before the anchor chose | before verify |
| previous-rows | what the kept rows of the last round chose, all of it for every row | before verify |
| popularity | the k experts chosen most on other texts: knows nothing of the block | before verify |

Guesses made before verify are l + 1 layers ahead of layer l, counted from 0. All but `previous-rows` name k experts a
row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hideaway.hw.route_recall.fitted import Fitted, best
from hideaway.hw.route_recall.rounds import Chosen, Ids, Round, chosen

EXACT = "exact"
LATE = "late-gate"
"""Known too late for the layer at hand to hide anything: its experts are summed already."""
AHEAD = ("stale-gate", LATE, "co-occurrence")
"""Made at a layer, some layers ahead."""
BEFORE = (
    "embedding-gate", "fitted-tokens", "drafter-features", "previous-token", "previous-rows", "popularity",
)  # fmt: skip
"""Made once, before verify."""
BEFORE_VERIFY = 0
"""Stands for the distance of those made before verify."""


@dataclass(frozen=True, slots=True, eq=False)
class Guess:
    """A guess of one block.

    Parameters
    ----------
    predictor : str
        Its name.
    distance : int
        Layers ahead; `BEFORE_VERIFY` if made before all layers.
    experts : array of bool
        (L, B, E); nothing in layers below the distance.
    """

    predictor: str
    distance: int
    experts: Chosen


def guesses_of(one: Round, fitted: Fitted, num_experts: int) -> Iterator[Guess]:
    """Yield the guess of every predictor that has what it needs, `exact` first."""
    truth = chosen(one.ids, num_experts)
    yield Guess(EXACT, BEFORE_VERIFY, truth)
    for distance in range(1, len(one.stale) + 1):
        yield Guess("stale-gate", distance, chosen(one.stale[distance - 1], num_experts))
        yield Guess(LATE, distance, chosen(one.stale_after[distance - 1], num_experts))
        yield Guess("co-occurrence", distance, _cooccurring(truth, fitted, distance, one.ids.shape[2]))
    for name, ids in _before(one, fitted):
        yield Guess(name, BEFORE_VERIFY, chosen(ids, num_experts))


def _before(one: Round, fitted: Fitted) -> Iterator[tuple[str, Ids]]:
    """Yield ids (L, B, any number) of the predictors that guess before verify."""
    layers, rows, top_k = one.ids.shape
    yield "embedding-gate", one.embedded
    yield "fitted-tokens", fitted.token_map.top(one.embeddings, top_k)
    if one.inputs is not None and fitted.anchor_map is not None and fitted.draft_map is not None:
        anchor = fitted.anchor_map.top(one.inputs.anchor[None], top_k)
        yield (
            "drafter-features",
            np.concatenate([anchor, fitted.draft_map.top(one.inputs.drafts, top_k)], axis=1),
        )
    yield "previous-token", np.broadcast_to(one.last[:, None], one.ids.shape)
    kept = one.last_kept.reshape(layers, 1, -1)
    yield "previous-rows", np.broadcast_to(kept, (layers, rows, kept.shape[2]))
    yield "popularity", np.broadcast_to(fitted.popular[:, None], one.ids.shape)


def _cooccurring(truth: Chosen, fitted: Fitted, distance: int, top_k: int) -> Chosen:
    """Return the k experts with the highest summed frequency, given each row's experts `distance` layers below."""
    guessed = np.zeros_like(truth)
    for layer in range(distance, len(truth)):
        scores = truth[layer - distance].astype(np.float64) @ fitted.following[distance - 1, layer]
        guessed[layer] = chosen(best(scores, top_k), truth.shape[2])
    return guessed
