"""Fit the generative router to a routing trace: `python -m hideaway.calibrate.router_fit --help`.

Simulated moments: each layer's six parameters are moved until the overlaps and unions of generated traces equal those
of the trace (`router_moments.py`), by Levenberg-Marquardt steps on finite differences. The same random numbers serve
every evaluation, and all layers are simulated together, since they are independent. The two shipped fits were made by

    python -m hideaway.calibrate.router_fit gpt-oss-20b --name gpt-oss-20b --out gpt-oss-20b.json
    python -m hideaway.calibrate.router_fit qwen3-30b-a3b-top6 --name qwen3-30b-a3b --out qwen3-30b-a3b.json

Not here: the router (`hideaway.sim.inputs.routing.generative`) and the file of a fit
(`hideaway.sim.inputs.routing.router_fit_file`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtri

from hideaway.calibrate.router_moments import Moments, base_from_popularity, usable_moments
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.routing.generative import generate_ids
from hideaway.sim.inputs.routing.load import load_shipped_trace, routing_trace_names
from hideaway.sim.inputs.routing.npz import read_routing_file
from hideaway.sim.inputs.routing.router_fit_file import save_router_fit
from hideaway.sim.inputs.routing.router_parameters import LayerLocality, RouterFit
from hideaway.sim.inputs.routing.trace import RoutingTrace

_Floats = npt.NDArray[np.float64]

DEFAULT_SEED = 1408
POPULARITY_TO_LOCAL = 1.8
"""Variance of base scores over that of sequence-local ones, used where a trace has one sequence and cannot tell them
apart; the median over the layers of gpt-oss-20b fitted to 40 sequences."""
BASE_SKEW = 0.6
"""For one sequence base scores are 1 - exp(-BASE_SKEW * normal), standardised: a tail of experts that are hardly ever
chosen. The base scores of gpt-oss-20b are skewed that way too; of 0, 0.27, 0.6 and 0.85 this is the value with which
the Qwen3-30B-A3B fit comes nearest to the LRU hit rates of its trace."""
SEQUENCE_LENGTHS = (
    511, 418, 511, 511, 159, 511, 511, 511, 434, 357, 511, 511, 511, 511, 223, 511, 511, 241, 511, 511,
    299, 511, 511, 511, 511, 511, 511, 511, 281, 511, 511, 215, 287, 511, 511, 511, 511, 208, 511, 511,
)  # fmt: skip
"""Decode lengths of the gpt-oss-20b trace (cut at 511 by its source); used where a trace has one sequence."""
_QUANTILE_KNOTS = 32
_SIMULATED_TOKENS = 8_192
_STEPS = np.array([0.2, 0.2, 0.3, 0.3, 0.3, 0.15])
"""Finite differences: large enough that a step changes thousands of choices."""
_LOWEST = np.array([-5.0, -6.0, 0.7, -5.0, -4.0, -1.5])
_HIGHEST = np.array([5.0, 3.0, 6.0, 4.0, 2.5, 2.5])
_START = np.array([1.0, -1.5, 3.4, -0.3, -0.8, 0.4])
"""logit within, logit slow, log drift_tokens, logit boost, logit boost_decay, burstiness."""
_PRIOR_SCALE = 3.0
"""Spread of a weak prior around the start, in the units above; keeps what a layer does not show in place."""


class LayerSearch:
    """Simulated moments of all layers as a function of their parameters."""

    def __init__(self, trace: RoutingTrace, seed: int) -> None:
        self.moments: Moments = usable_moments(trace)
        self.target = self.moments.of(trace)
        self._trace = trace
        self._seed = seed
        rng = np.random.default_rng(seed)
        self._base = base_from_popularity(trace, rng) if len(trace.seq_lengths) > 1 else None
        repeats = max(1, round(_SIMULATED_TOKENS / trace.num_tokens))
        self._lengths = np.tile(trace.seq_lengths, repeats)

    def layers(self, parameters: _Floats) -> tuple[LayerLocality, ...]:
        """Return the layers that parameters (num_layers, 6) mean."""
        base = np.sort(self.base(parameters), axis=1)
        knots = min(_QUANTILE_KNOTS, base.shape[1])
        wanted = (np.arange(knots) + 0.5) / knots
        held = (np.arange(base.shape[1]) + 0.5) / base.shape[1]
        shares = expit(parameters)
        return tuple(
            LayerLocality(
                base_quantiles=tuple(np.interp(wanted, held, base[layer]).tolist()),
                within=float(shares[layer, 0]),
                slow=float(shares[layer, 1]),
                drift_tokens=float(np.exp(parameters[layer, 2])),
                boost=float(shares[layer, 3]),
                boost_decay=float(shares[layer, 4]),
                burstiness=float(parameters[layer, 5]),
            )
            for layer in range(len(parameters))
        )

    def base(self, parameters: _Floats) -> _Floats:
        """Return base scores, (num_layers, num_experts): from popularity, or of a stated shape for one sequence."""
        if self._base is not None:
            return self._base
        num_experts = self._trace.num_experts
        order = np.random.default_rng(self._seed).permutation(num_experts)
        shape = -np.exp(-BASE_SKEW * ndtri((order + 0.5) / num_experts))
        shape = (shape - shape.mean()) / shape.std()
        spread = np.sqrt(POPULARITY_TO_LOCAL * (1 - expit(parameters[:, 0])))
        return np.asarray(spread[:, None] * shape)

    def residuals(self, parameters: _Floats) -> _Floats:
        """Return simulated less wanted moments and the pull of the prior, (num_layers, num_moments + 6)."""
        trace = self._trace
        ids = generate_ids(
            self.layers(parameters),
            self.base(parameters),
            self._lengths.tolist(),
            trace.top_k,
            np.random.default_rng(self._seed + 1),
        )
        made = RoutingTrace("simulated", ids, trace.num_experts, trace.top_k, self._lengths, "simulated")
        difference = self.moments.of(made) - self.target
        return np.concatenate((difference, (parameters - _START) / _PRIOR_SCALE), axis=1)


def fit_router(
    trace: RoutingTrace,
    *,
    name: str,
    origin: str,
    seed: int = DEFAULT_SEED,
    num_iterations: int = 8,
    report: Callable[[str], None] = lambda _: None,
) -> RouterFit:
    """Return a router that reproduces the overlaps and unions of a trace.

    Parameters
    ----------
    trace
        At least one sequence of 64 tokens or more; several sequences are needed to tell what is popular everywhere from
        what is popular in a sequence (with one, `POPULARITY_TO_LOCAL` divides it).
    name, origin
        Of the fit.
    seed
        Of every random number: same trace and seed, same fit.
    num_iterations
        Steps of the search, each seven simulations.
    report
        Called with one line a step.

    Raises
    ------
    InputError
        The trace is too short to fit or the seed is negative.
    """
    if int(trace.seq_lengths.max()) < 64:
        raise InputError(
            f"routing trace {trace.name} has no sequence of 64 tokens, too short to fit a router to; record longer ones"
        )
    if seed < 0:
        raise InputError(f"seed is {seed}; give a whole number of at least 0")
    search = LayerSearch(trace, seed)
    parameters = _levenberg_marquardt(search, trace.num_layers, num_iterations, report)
    several = len(trace.seq_lengths) > 1
    lengths = tuple(trace.seq_lengths.tolist()) if several else SEQUENCE_LENGTHS
    return RouterFit(name, search.layers(parameters), lengths, origin)


def _levenberg_marquardt(
    search: LayerSearch, num_layers: int, num_iterations: int, report: Callable[[str], None]
) -> _Floats:
    """Return the parameters found, (num_layers, 6); a layer keeps a step only if its own cost falls."""
    parameters = np.tile(_START, (num_layers, 1))
    damping = np.full(num_layers, 1.0)
    residuals = search.residuals(parameters)
    for iteration in range(num_iterations):
        jacobian = _jacobian(search, parameters, residuals)
        normal = np.einsum("lpm,lqm->lpq", jacobian, jacobian)
        scale = np.einsum("lpp->lp", normal)
        damped = normal + np.einsum("lp,pq->lpq", damping[:, None] * scale + 1e-9, np.eye(len(_START)))
        step = np.linalg.solve(damped, -np.einsum("lpm,lm->lp", jacobian, residuals)[..., None])[..., 0]
        tried = np.clip(parameters + np.clip(step, -1.0, 1.0), _LOWEST, _HIGHEST)
        tried_residuals = search.residuals(tried)
        better = (tried_residuals**2).sum(axis=1) < (residuals**2).sum(axis=1)
        parameters[better], residuals[better] = tried[better], tried_residuals[better]
        damping = np.clip(np.where(better, damping / 4, damping * 4), 1e-3, 1e3)
        report(
            f"step {iteration + 1}: {int(better.sum())} layers improved, cost {float((residuals**2).mean()):.3f}"
        )
    return parameters


def _jacobian(search: LayerSearch, parameters: _Floats, residuals: _Floats) -> _Floats:
    """Return finite differences, (num_layers, 6, num_residuals)."""
    columns = []
    for index, size in enumerate(_STEPS):
        moved = parameters.copy()
        moved[:, index] += size
        columns.append((search.residuals(moved) - residuals) / size)
    return np.stack(columns, axis=1)


def main(argv: Sequence[str] | None = None) -> int:
    """Fit a router to a shipped trace or an .npz file and write it; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m hideaway.calibrate.router_fit",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("trace", help=f"{', '.join(routing_trace_names())} or the path of an .npz file")
    parser.add_argument("--name", required=True, help="name of the fit")
    parser.add_argument("--out", "-o", required=True, metavar="FILE", help="JSON file to write")
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED)
    parser.add_argument("--iterations", type=int, default=8)
    arguments = parser.parse_args(argv)
    try:
        shipped = arguments.trace in routing_trace_names()
        trace = load_shipped_trace(arguments.trace) if shipped else read_routing_file(arguments.trace)
        origin = f"a router fitted to {trace.origin}"
        fit = fit_router(
            trace,
            name=arguments.name,
            origin=origin,
            seed=arguments.seed,
            num_iterations=arguments.iterations,
            report=lambda line: print(line, file=sys.stderr, flush=True),
        )
        save_router_fit(arguments.out, fit)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
