"""What predictors learn on texts of their own beforehand: popularity, co-occurrence, linear maps of a drafter's states.

Everything is in closed form and float64. A linear map is ridge regression of the indicators "row chose expert e of
layer l" on the inputs: B = (X'X + lambda I)^-1 X'Y of centred inputs X and indicators Y (Hoerl and Kennard,
"Ridge regression", Technometrics 12(1), 1970); the k largest predicted indicators are the guess. Indicators are
regressed, and not router logits, because only which experts are among the k largest is asked: on a trained model of 4
layers, 16 experts and k = 2, maps to logits named 0.701 of a drafted row's experts where these named 0.724. Lambda is
the one of `RIDGES` (times the mean of the diagonal of X'X) with the best recall on every fourth calibration text, after
a fit on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hideaway.hw.route_recall.rounds import Chosen, Ids, Played, Round, chosen

Doubles = npt.NDArray[np.float64]
RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
_HELD_BACK = 4
"""Every so many texts judge lambda."""
_Rows = tuple[npt.NDArray[np.floating], slice]
"""Inputs (rows, width), and which rows of the block they are of."""
_Pick = Callable[[Round], _Rows]


@dataclass(frozen=True, slots=True, eq=False)
class LinearMap:
    """A fitted map from inputs (rows, width) to scores (L, rows, E).

    Parameters
    ----------
    weights : array
        (width, L * E).
    mean, offset : array
        Of the inputs (width,) and of the indicators (L * E,).
    ridge : float
        The chosen one of `RIDGES`.
    num_rows : int
        Rows it was fitted on.
    """

    weights: Doubles
    mean: Doubles
    offset: Doubles
    ridge: float
    num_rows: int
    num_layers: int

    def top(self, inputs: npt.NDArray[np.floating], top_k: int) -> Ids:
        """Return the guessed experts of rows (rows, width), (L, rows, k)."""
        scores = (inputs - self.mean) @ self.weights + self.offset
        return best(scores.reshape(len(inputs), self.num_layers, -1).swapaxes(0, 1), top_k)


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """All that was learnt.

    Parameters
    ----------
    popular : array
        Of each layer the k experts chosen most, (L, k).
    following : array
        following[d - 1, l, e] is P(row chose e' at l | it chose e at l - d) over e', (D, L, E, E).
    token_map : LinearMap
        Of every row's token embedding.
    anchor_map, draft_map : LinearMap or None
        Of an anchor's and of drafted rows' `DraftInputs`; None without a drafter.
    """

    popular: Ids
    following: Doubles
    token_map: LinearMap
    anchor_map: LinearMap | None
    draft_map: LinearMap | None


def best(scores: Doubles, top_k: int) -> Ids:
    """Return the k highest-scored experts, (..., k), of scores (..., E); the lower id among equals."""
    order = np.argsort(-scores, axis=-1, kind="stable")
    return order[..., :top_k].astype(np.int16)


def fit(played: Played) -> Fitted:
    """Return what the rounds of calibration texts teach."""
    experts, top_k = played.num_experts, played.top_k
    marks = np.concatenate([chosen(one.ids, experts) for one in played.rounds], axis=1).astype(np.float64)
    anchor_map = draft_map = None
    if played.rounds[0].inputs is not None:
        anchor_map = _linear_map(played, _anchors)
        draft_map = _linear_map(played, _drafts)
    return Fitted(
        best(marks.mean(axis=1), top_k),
        _following(marks, len(played.rounds[0].stale)),
        _linear_map(played, _tokens),
        anchor_map,
        draft_map,
    )


def _tokens(one: Round) -> _Rows:
    return one.embeddings, slice(None)


def _anchors(one: Round) -> _Rows:
    assert one.inputs is not None
    return one.inputs.anchor[None], slice(1)


def _drafts(one: Round) -> _Rows:
    assert one.inputs is not None
    return one.inputs.drafts, slice(1, None)


def _following(marks: Doubles, farthest: int) -> Doubles:
    """Return conditional frequencies of marks (L, rows, E); where an expert was never seen, the layer's own."""
    layers, _, experts = marks.shape
    frequencies = np.zeros((farthest, layers, experts, experts))
    for distance in range(1, farthest + 1):
        for layer in range(distance, layers):
            before, here = marks[layer - distance], marks[layer]
            times = before.sum(axis=0)[:, None]
            together = before.T @ here
            frequencies[distance - 1, layer] = np.where(
                times > 0, together / np.maximum(times, 1.0), here.mean(axis=0)
            )
    return frequencies


def _linear_map(played: Played, pick: _Pick) -> LinearMap:
    """Return the map with the ridge that does best on texts held back, fitted on all."""
    held_back = [one for one in played.rounds if one.sequence % _HELD_BACK == 0]
    others = [one for one in played.rounds if one.sequence % _HELD_BACK != 0]
    ridge = RIDGES[len(RIDGES) // 2]
    if held_back and others:
        inputs, marks = _examples(held_back, played, pick)
        truth = marks.reshape(len(inputs), played.num_layers, -1).swapaxes(0, 1)
        problem = _Problem(others, played, pick)
        hits = [_hits(problem.solve(candidate).top(inputs, played.top_k), truth) for candidate in RIDGES]
        ridge = RIDGES[int(np.argmax(hits))]
    return _Problem(played.rounds, played, pick).solve(ridge)


def _hits(ids: Ids, truth: Doubles) -> float:
    return float(np.take_along_axis(truth, ids.astype(np.int64), axis=-1).sum())


class _Problem:
    """The sums of a regression, made once for every lambda.

    With fewer rows than inputs the smaller system is solved: (X'X + lambda I)^-1 X'Y = X'(XX' + lambda I)^-1 Y.
    """

    def __init__(self, rounds: Sequence[Round], played: Played, pick: _Pick) -> None:
        inputs, marks = _examples(rounds, played, pick)
        self._mean, self._offset = inputs.mean(axis=0), marks.mean(axis=0)
        self._centred, self._marks = inputs - self._mean, marks - self._offset
        self._num_layers = played.num_layers
        rows, width = inputs.shape
        self._wide = rows < width
        across = self._centred if self._wide else self._centred.T
        self._gram = across @ across.T
        self._scale = max(float(np.trace(self._gram)) / width, np.finfo(np.float64).tiny)

    def solve(self, ridge: float) -> LinearMap:
        """Return the map; lambda is `ridge` times the mean of the diagonal of X'X."""
        gram = self._gram + ridge * self._scale * np.eye(len(self._gram))
        if self._wide:
            weights = self._centred.T @ np.linalg.solve(gram, self._marks)
        else:
            weights = np.linalg.solve(gram, self._centred.T @ self._marks)
        return LinearMap(weights, self._mean, self._offset, ridge, len(self._centred), self._num_layers)


def _examples(rounds: Sequence[Round], played: Played, pick: _Pick) -> tuple[Doubles, Doubles]:
    """Return inputs (rows, width) and indicators (rows, L * E) of the picked rows."""
    inputs: list[npt.NDArray[np.floating]] = []
    marks: list[Chosen] = []
    for one in rounds:
        mine, rows = pick(one)
        inputs.append(mine)
        marks.append(chosen(one.ids[:, rows], played.num_experts).swapaxes(0, 1))
    stacked = np.concatenate(marks).astype(np.float64)
    return np.concatenate(inputs).astype(np.float64), stacked.reshape(len(stacked), -1)
