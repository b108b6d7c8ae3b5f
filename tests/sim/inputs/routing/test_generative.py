"""The fitted router: it reproduces the locality of its trace within stated tolerances, in any shape."""

import math

import numpy as np
import pytest

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.routing import RoutingTrace
from hideaway.sim.inputs.routing.generative import base_scores, generate, generate_ids
from hideaway.sim.inputs.routing.load import load_shipped_trace
from hideaway.sim.inputs.routing.locality import lag_overlap, lru_hit_curve, membership, window_union
from hideaway.sim.inputs.routing.router_fit_file import load_router_fit
from hideaway.sim.inputs.routing.router_parameters import LayerLocality, RouterFit

LAGS = (1, 2, 8, 32)
WINDOWS = (1, 2, 4, 8, 16, 32)
FLAT = LayerLocality(
    (0.0, 0.0), within=1.0, slow=0.0, drift_tokens=30.0, boost=0.0, boost_decay=0.0, burstiness=0.0
)


def remade(name, lengths, top_k, num_experts, seed):
    """Return generated routing with the layers of a fit, in sequences of the given lengths."""
    fit = load_router_fit(name)
    rng = np.random.default_rng(seed)
    base = rng.permuted(base_scores(fit.layers, num_experts), axis=1)
    ids = generate_ids(fit.layers, base, lengths, top_k, rng)
    return RoutingTrace("remade", ids, num_experts, top_k, np.array(lengths), "made up")


def every_second_layer(trace):
    """Return half the trace, to halve the time."""
    return RoutingTrace(
        "half", trace.expert_ids[:, ::2], trace.num_experts, trace.top_k, trace.seq_lengths, ""
    )


@pytest.fixture(scope="module")
def gpt_oss():
    trace = load_shipped_trace("gpt-oss-20b")
    return trace, remade("gpt-oss-20b", trace.seq_lengths.tolist(), 4, 32, seed=3)


def test_gpt_oss_overlap_is_reproduced_within_one_hundredth(gpt_oss):
    recorded, made = gpt_oss
    for lag in LAGS:
        assert abs(lag_overlap(made, lag).mean() - lag_overlap(recorded, lag).mean()) < 0.01


def test_gpt_oss_overlap_is_reproduced_layer_by_layer_within_four_hundredths(gpt_oss):
    recorded, made = gpt_oss
    for lag in LAGS:
        assert np.abs(lag_overlap(made, lag) - lag_overlap(recorded, lag)).max() < 0.04


def test_gpt_oss_unions_are_reproduced_within_one_per_cent(gpt_oss):
    recorded, made = gpt_oss
    for window in WINDOWS:
        assert window_union(made, window).mean() == pytest.approx(
            window_union(recorded, window).mean(), rel=0.01
        )


@pytest.mark.parametrize("block_tokens", [1, 4, 8, 16])
def test_gpt_oss_lru_hit_curve_is_reproduced_within_one_hundredth_though_not_fitted(gpt_oss, block_tokens):
    recorded, made = (every_second_layer(trace) for trace in gpt_oss)
    slots = [4, 8, 12, 16, 20, 24, 28]
    difference = lru_hit_curve(made, block_tokens, slots) - lru_hit_curve(recorded, block_tokens, slots)
    assert np.abs(difference).max() < 0.01


@pytest.fixture(scope="module")
def qwen():
    """Return the recorded 128 tokens (one sequence, top-6 instead of 8) and 24 generated sequences of 128."""
    return load_shipped_trace("qwen3-30b-a3b-top6"), [
        remade("qwen3-30b-a3b", [128], 6, 128, seed=seed) for seed in range(24)
    ]


def test_qwen_overlap_is_reproduced_within_two_hundredths(qwen):
    recorded, made = qwen
    for lag in LAGS:
        mean = np.mean([lag_overlap(trace, lag).mean() for trace in made])
        assert abs(mean - lag_overlap(recorded, lag).mean()) < 0.02


def test_qwen_unions_are_reproduced_within_two_per_cent(qwen):
    recorded, made = qwen
    for window in WINDOWS:
        mean = np.mean([window_union(trace, window).mean() for trace in made])
        assert mean == pytest.approx(window_union(recorded, window).mean(), rel=0.02)


@pytest.mark.parametrize("block_tokens", [1, 8, 16])
def test_qwen_lru_hit_curve_is_reproduced_within_two_hundredths(qwen, block_tokens):
    recorded, made = qwen
    slots = [16, 32, 48, 64, 96]
    mean = np.mean([lru_hit_curve(trace, block_tokens, slots) for trace in made], axis=0)
    assert np.abs(mean - lru_hit_curve(recorded, block_tokens, slots)).max() < 0.02


def test_generation_gives_the_stated_shape_and_sequences_of_the_fits_lengths():
    fit = load_router_fit("gpt-oss-20b")
    trace = generate(
        fit, num_tokens=3000, num_layers=5, num_experts=40, top_k=3, rng=np.random.default_rng(0)
    )
    assert trace.expert_ids.shape == (3000, 5, 3)
    assert set(trace.seq_lengths[:-1].tolist()) <= set(fit.sequence_lengths)
    assert trace.seq_lengths.sum() == 3000
    assert "3000 tokens made up by a router fitted to" in trace.origin


def test_locality_depends_on_the_sequence_and_not_on_its_neighbours_lengths():
    layers = (LayerLocality((-1.0, 1.0), 0.6, 0.3, 20.0, 0.5, 0.4, 0.5),)
    base = base_scores(layers, 16)
    one = generate_ids(layers, base, [40, 40, 40], 2, np.random.default_rng(1))
    assert one.shape == (120, 1, 2)
    assert generate_ids(layers, base, [3], 2, np.random.default_rng(1)).shape == (3, 1, 2)


def test_without_locality_choices_are_uniform_and_overlap_is_chance():
    num_tokens, num_experts, top_k = 6000, 20, 5
    ids = generate_ids(
        (FLAT,), base_scores((FLAT,), num_experts), [num_tokens], top_k, np.random.default_rng(0)
    )
    trace = RoutingTrace("flat", ids, num_experts, top_k, np.array([num_tokens]), "made up")
    share = top_k / num_experts
    # A token chooses top_k without replacement: the frequency of one expert has variance p (1 - p) / n.
    frequency = membership(trace).mean(axis=0)[0]
    assert np.abs(frequency - share).max() < 4.5 * math.sqrt(share * (1 - share) / num_tokens)
    # Overlap of two independent choices is hypergeometric: variance of the share is (1-p)^2 k / (k^2 (1 - 1/E)) * p.
    variance = share * (1 - share) ** 2 * num_experts / (num_experts - 1) / top_k
    for lag in (1, 7):
        assert abs(lag_overlap(trace, lag)[0] - share) < 4.5 * math.sqrt(variance / (num_tokens - lag))


@pytest.mark.parametrize("field", ["slow", "boost"])
def test_quick_and_drifting_parts_have_the_stated_correlation(field):
    # Two experts, one choice: the sign of a unit Gaussian process, for which P(same sign) = 1/2 + asin(rho) / pi.
    changes = {"slow": {"slow": 0.8, "drift_tokens": 40.0}, "boost": {"boost": 0.7, "boost_decay": 0.6}}[
        field
    ]
    names = LayerLocality.__dataclass_fields__
    layer = LayerLocality(**({name: getattr(FLAT, name) for name in names} | changes))
    ids = generate_ids((layer,), np.zeros((1, 2)), [500] * 60, 1, np.random.default_rng(2))
    trace = RoutingTrace("two", ids, 2, 1, np.array([500] * 60), "made up")
    for lag in (1, 4, 12):
        if field == "slow":
            # Drift moves every 4 tokens, so a lag of 1 crosses a step in a quarter of the cases.
            whole, part = divmod(lag, 4)
            rhos = [0.8 * math.exp(-4 * steps / 40) for steps in (whole, whole + 1)]
            same = [0.5 + math.asin(rho) / math.pi for rho in rhos]
            expected = same[0] * (1 - part / 4) + same[1] * part / 4
        else:
            expected = 0.5 + math.asin(0.7 * 0.6**lag) / math.pi
        # Sequences are independent: the error is that of 60 sequence means.
        hits = (ids[:, 0, 0].reshape(60, 500)[:, lag:] == ids[:, 0, 0].reshape(60, 500)[:, :-lag]).mean(
            axis=1
        )
        assert abs(lag_overlap(trace, lag)[0] - expected) < 4 * hits.std() / math.sqrt(60)


def test_depths_are_interpolated_between_the_layers_of_the_fit():
    low = LayerLocality((-1.0, 1.0), 0.2, 0.1, 10.0, 0.3, 0.2, 0.0)
    high = LayerLocality((-3.0, 3.0), 0.6, 0.5, 30.0, 0.5, 0.4, 1.0)
    fit = RouterFit("two", (low, high), (100,), "made up")
    first, middle, last = fit.at_depths(3)
    assert (first, last) == (low, high)
    assert middle.within == pytest.approx(0.4)
    assert middle.drift_tokens == pytest.approx(20.0)
    assert middle.base_quantiles == pytest.approx((-2.0, 2.0))
    assert fit.at_depths(1) == (low,)


@pytest.mark.parametrize(
    "changes",
    [
        {"within": 1.5},
        {"boost_decay": 1.0},
        {"drift_tokens": 0.0},
        {"burstiness": 9.0},
        {"base_quantiles": ()},
    ],
)
def test_parameters_out_of_range_are_refused(changes):
    values = {name: getattr(FLAT, name) for name in LayerLocality.__dataclass_fields__}
    with pytest.raises(InputError, match="router parameter"):
        LayerLocality(**(values | changes))


def test_fits_without_layers_lengths_or_with_uneven_quantiles_are_refused():
    for layers, lengths in (((), (5,)), ((FLAT,), ()), ((FLAT,), (0,))):
        with pytest.raises(InputError, match="at least one layer"):
            RouterFit("bad", layers, lengths, "")
    uneven = LayerLocality((0.0, 0.0, 1.0), 1.0, 0.0, 30.0, 0.0, 0.0, 0.0)
    with pytest.raises(InputError, match="number of base_quantiles"):
        RouterFit("bad", (FLAT, uneven), (5,), "")


def test_shapes_that_cannot_be_made_are_refused():
    fit = RouterFit("flat", (FLAT,), (10,), "made up")
    for shape in ((0, 1, 4, 1), (10, 0, 4, 1), (10, 1, 4, 5), (10, 1, 4, 0)):
        with pytest.raises(InputError, match="top_k up to num_experts"):
            generate(
                fit,
                num_tokens=shape[0],
                num_layers=shape[1],
                num_experts=shape[2],
                top_k=shape[3],
                rng=np.random.default_rng(0),
            )
