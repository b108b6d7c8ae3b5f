"""A router that makes up routing with the locality of a recorded trace, for a model of any shape.

Every expert has a score for every token, and the top_k highest are chosen. In a layer the score of expert e is

    score(e, t) = base(e) + sqrt(1 - within) * local(e, sequence)
                + sqrt(within) * (sqrt(slow(e)) * drift(e, t) + sqrt(1 - slow(e)) * quick(e, t))

with unit normal processes: `local` is drawn once a sequence (the long-lag floor of the overlap), `drift` changes over
tens of tokens (the topic), `quick` is part memory of a few tokens (the short boost) and part fresh noise. All
but `base` sum to variance 1, so the correlation of a score at a lag is

    rho(lag) = (1 - within) + within * (slow * exp(-lag / drift_tokens)
             + (1 - slow) * boost * boost_decay**lag)

and the overlap at a lag is a function of rho and of the spread of `base`. Experts that are rare in a sequence come
in bursts: slow(e) = slow * exp(burstiness * (threshold - persistent score of e)), capped, where the threshold
is the top_k-th persistent score. Without it windows of 16 tokens and more touch too many experts.

Layers are independent given their parameters: the agreement between neighbouring layers that a trace also has is not
made up.

Not here: the parameters by layer (`router_parameters.py`), where they come from (`hideaway.calibrate.router_fit`) and
their files (`router_fit_file.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.routing.router_parameters import LayerLocality, RouterFit
from hideaway.sim.inputs.routing.trace import RoutingTrace

_Floats = npt.NDArray[np.float32]

DRIFT_STEP_TOKENS = 4
"""Drift is renewed this often: its memory is tens of tokens, and a draw for every token would cost as much as quick."""
MAX_SLOW = 0.95
"""Cap of slow(e): some fresh noise is left to the rarest expert."""
MAX_SCORES_AT_ONCE = 2**25
"""Scores of all sequences side by side, of which eight arrays are held: 1 GiB."""


def generate(
    fit: RouterFit,
    *,
    num_tokens: int,
    num_layers: int,
    num_experts: int,
    top_k: int,
    rng: np.random.Generator,
) -> RoutingTrace:
    """Return a trace of `num_tokens` tokens in a model's shape, in sequences with lengths drawn from the fit's.

    Experts are numbered at random in every layer. Draws 1.3 normals a score: 8,192 tokens of 48 layers of 128
    experts take about two seconds.

    Raises
    ------
    InputError
        A count is below 1 or top_k above num_experts.
    """
    if min(num_tokens, num_layers, num_experts, top_k) < 1 or top_k > num_experts:
        raise InputError(
            f"a routing trace of {num_tokens} tokens, {num_layers} layers and {top_k} of {num_experts} experts was"
            " asked for; give at least 1 of each and top_k up to num_experts"
        )
    lengths: list[int] = []
    while sum(lengths) < num_tokens:
        drawn = int(rng.choice(np.array(fit.sequence_lengths)))
        lengths.append(min(drawn, num_tokens - sum(lengths)))
    if len(lengths) * num_layers * num_experts > MAX_SCORES_AT_ONCE:
        raise InputError(
            f"router fit {fit.name!r} has sequences of about {num_tokens // len(lengths)} tokens, too short to make up"
            f" {num_tokens} tokens of {num_layers} layers of {num_experts} experts; raise its sequence_lengths"
        )
    layers = fit.at_depths(num_layers)
    base = base_scores(layers, num_experts)
    ids = generate_ids(layers, rng.permuted(base, axis=1), lengths, top_k, rng)
    return RoutingTrace(
        f"fitted:{fit.name}",
        ids,
        num_experts,
        top_k,
        np.array(lengths),
        f"{num_tokens} tokens made up by {fit.origin}",
    )


def base_scores(layers: Sequence[LayerLocality], num_experts: int) -> npt.NDArray[np.float64]:
    """Return base scores by interpolating each layer's quantiles, ascending, (num_layers, num_experts)."""
    wanted = (np.arange(num_experts) + 0.5) / num_experts
    rows = []
    for layer in layers:
        knots = (np.arange(len(layer.base_quantiles)) + 0.5) / len(layer.base_quantiles)
        rows.append(np.interp(wanted, knots, np.array(layer.base_quantiles)))
    return np.array(rows)


def generate_ids(
    layers: Sequence[LayerLocality],
    base: npt.NDArray[np.float64],
    seq_lengths: Sequence[int],
    top_k: int,
    rng: np.random.Generator,
) -> npt.NDArray[np.int16]:
    """Return choices for sequences of the given lengths, int16 (sum of lengths, num_layers, top_k), highest first.

    Parameters
    ----------
    layers, base
        Parameters and base scores by layer; base is (num_layers, num_experts).
    seq_lengths
        Tokens of each sequence.
    """
    lengths = np.array(seq_lengths)
    longest_first = np.argsort(-lengths, kind="stable")
    ordered = lengths[longest_first]
    scores = _Scores(layers, base, len(ordered), top_k, rng)
    steps = []
    for position in range(int(ordered[0])):
        active = int(np.searchsorted(-ordered, -position, side="left"))
        steps.append(_highest(scores.step(position, active), top_k))
    starts = np.cumsum(lengths) - lengths
    ids = np.empty((int(lengths.sum()), *steps[0].shape[1:]), dtype=np.int16)
    for position, chosen in enumerate(steps):
        ids[starts[longest_first[: len(chosen)]] + position] = chosen
    return ids


class _Scores:
    """The processes of all sequences side by side, advanced one token at a time; changes its state at every step."""

    def __init__(
        self,
        layers: Sequence[LayerLocality],
        base: npt.NDArray[np.float64],
        num_sequences: int,
        top_k: int,
        rng: np.random.Generator,
    ) -> None:
        shape = (num_sequences, *base.shape)
        within, slow = _column(layers, "within"), _column(layers, "slow")
        burstiness = _column(layers, "burstiness")
        persistent = base.astype(np.float32) + np.sqrt(1 - within) * _normals(rng, shape)
        threshold = -np.partition(-persistent, top_k - 1, axis=2)[:, :, top_k - 1 : top_k]
        slow_of_expert = np.minimum(MAX_SLOW, slow * np.exp(burstiness * (threshold - persistent)))
        self._rng = rng
        self._persistent = persistent
        self._drift_scale = np.sqrt(within * slow_of_expert)
        self._quick_scale = np.sqrt(within * (1 - slow_of_expert))
        self._keep = np.exp(-DRIFT_STEP_TOKENS / _column(layers, "drift_tokens"))
        self._renew = np.sqrt(1 - self._keep**2)
        self._decay = _column(layers, "boost_decay")
        self._average, self._innovation = _quick_coefficients(_column(layers, "boost"), self._decay)
        self._drift = _normals(rng, shape)
        self._noise = self._innovation * _normals(rng, shape)
        self._quick = _normals(rng, shape)
        self._slow_score = self._persistent + self._drift_scale * self._drift

    def step(self, position: int, active: int) -> _Floats:
        """Return the scores of the first `active` sequences at the next token, (active, num_layers, num_experts)."""
        if position and position % DRIFT_STEP_TOKENS == 0:
            self._advance_drift(active)
        before = self._noise[:active]
        before *= self._average
        quick = self._quick[:active]
        quick *= self._decay
        quick += before
        self._noise = _normals(self._rng, quick.shape)
        self._noise *= self._innovation
        quick += self._noise
        score: _Floats = quick * self._quick_scale[:active]
        score += self._slow_score[:active]
        return score

    def _advance_drift(self, active: int) -> None:
        drift = self._drift[:active]
        drift *= self._keep
        drift += self._renew * _normals(self._rng, drift.shape)
        self._slow_score = self._persistent[:active] + self._drift_scale[:active] * drift


def _quick_coefficients(boost: _Floats, decay: _Floats) -> tuple[_Floats, _Floats]:
    """Return (theta, sigma) of the ARMA(1, 1) process that equals memory plus fresh noise.

    A unit process with autocovariance r(h) = boost * decay**h for h >= 1 satisfies x_t - decay x_(t-1) = e_t +
    theta e_(t-1) with var e = sigma**2, where c0 = 1 + decay**2 - 2 boost decay**2 = (1 + theta**2) sigma**2 and
    c1 = -decay (1 - boost) = theta sigma**2 (the autocovariances of the left side at lags 0 and 1). One draw a
    token instead of two.
    """
    c0 = 1 + decay**2 - 2 * boost * decay**2
    c1 = -decay * (1 - boost)
    sigma_squared = (c0 + np.sqrt(np.maximum(c0**2 - 4 * c1**2, 0))) / 2
    return c1 / sigma_squared, np.sqrt(sigma_squared)


def _highest(scores: _Floats, top_k: int) -> npt.NDArray[np.int16]:
    """Return the ids of the top_k highest scores of the last axis, highest first."""
    found = np.argpartition(scores, scores.shape[-1] - top_k, axis=-1)[..., -top_k:]
    order = np.argsort(-np.take_along_axis(scores, found, axis=-1), axis=-1)
    return np.take_along_axis(found, order, axis=-1).astype(np.int16)


def _normals(rng: np.random.Generator, shape: tuple[int, ...]) -> _Floats:
    return rng.standard_normal(shape, dtype=np.float32)


def _column(layers: Sequence[LayerLocality], name: str) -> _Floats:
    """Return one parameter of all layers in a shape that broadcasts, (num_layers, 1)."""
    return np.array([getattr(layer, name) for layer in layers], dtype=np.float32)[:, None]
