"""Router fitting: planted locality is found again, shipped fits are what the command gives, bad traces are refused."""

import json

import numpy as np
import pytest

from hideaway.calibrate.router_fit import (
    BASE_SKEW,
    POPULARITY_TO_LOCAL,
    SEQUENCE_LENGTHS,
    LayerSearch,
    fit_router,
    main,
)
from hideaway.calibrate.router_moments import Moments, base_from_popularity, usable_moments
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.routing import RoutingTrace
from hideaway.sim.inputs.routing.generative import base_scores, generate_ids
from hideaway.sim.inputs.routing.load import load_shipped_trace
from hideaway.sim.inputs.routing.locality import lag_overlap, membership, window_union
from hideaway.sim.inputs.routing.npz import write_routing_file
from hideaway.sim.inputs.routing.router_fit_file import load_router_fit, read_router_fit
from hideaway.sim.inputs.routing.router_parameters import LayerLocality

PLANTED = (
    LayerLocality(tuple(np.linspace(-0.8, 0.8, 16)), 0.85, 0.15, 40.0, 0.5, 0.3, 0.3),
    LayerLocality(tuple(np.linspace(-1.2, 1.2, 16)), 0.6, 0.3, 60.0, 0.6, 0.5, 0.6),
)
LENGTHS = [150] * 24


def planted(seed, lengths=LENGTHS):
    rng = np.random.default_rng(seed)
    ids = generate_ids(PLANTED, rng.permuted(base_scores(PLANTED, 16), axis=1), lengths, 3, rng)
    return RoutingTrace("planted", ids, 16, 3, np.array(lengths), "planted")


@pytest.fixture(scope="module")
def found():
    trace = planted(seed=1)
    return trace, fit_router(
        trace, name="found", origin="a router fitted to planted routing", num_iterations=4
    )


def test_planted_locality_is_reproduced_on_a_fresh_draw(found):
    trace, fit = found
    rng = np.random.default_rng(9)
    ids = generate_ids(fit.layers, rng.permuted(base_scores(fit.layers, 16), axis=1), LENGTHS * 2, 3, rng)
    made = RoutingTrace("made", ids, 16, 3, np.array(LENGTHS * 2), "made")
    # Spread of the figures between planted traces, by layer: what a fit to one of them cannot beat.
    others = [planted(seed=seed) for seed in range(20, 32)]
    for lag in (1, 2, 8, 32):
        spread = np.std([lag_overlap(other, lag) for other in others], axis=0)
        difference = lag_overlap(made, lag) - lag_overlap(trace, lag)
        assert (np.abs(difference) < 4 * spread + 0.005).all()
    for window in (4, 16, 32):
        spread = np.std([window_union(other, window) for other in others], axis=0)
        assert (np.abs(window_union(made, window) - window_union(trace, window)) < 4 * spread + 0.05).all()


def test_planted_shares_are_recovered(found):
    _, fit = found
    # Fits to 16 other planted traces spread by 0.029 and 0.054 (standard deviation) around 0.834 and 0.603; z = 3.
    assert fit.layers[0].within == pytest.approx(0.85, abs=0.09)
    assert fit.layers[1].within == pytest.approx(0.6, abs=0.16)
    assert fit.sequence_lengths == tuple(LENGTHS)


def test_the_same_trace_and_seed_give_the_same_fit():
    trace = planted(seed=2, lengths=[100, 90])
    one, two = (fit_router(trace, name="n", origin="o", num_iterations=1) for _ in range(2))
    assert one == two


def test_base_scores_give_the_popularity_of_the_trace():
    trace = planted(seed=3)
    base = base_from_popularity(trace, np.random.default_rng(0))
    noise = np.random.default_rng(1).standard_normal((40_000, 16))
    for layer in range(2):
        chosen = np.argsort(-(base[layer] + noise), axis=1)[:, :3]
        frequency = np.bincount(chosen.ravel(), minlength=16) / 40_000
        wanted = membership(trace)[:, layer].mean(axis=0)
        # Both the fit (4,000 draws) and the check (40,000) have binomial errors.
        error = np.sqrt(wanted * (1 - wanted) * (1 / 4_000 + 1 / 40_000))
        assert (np.abs(frequency - wanted) < 4 * error + 3e-4).all()


def test_one_sequence_cannot_tell_popularity_so_a_stated_shape_is_taken():
    trace = planted(seed=4, lengths=[200])
    search = LayerSearch(trace, seed=0)
    parameters = np.tile([0.0, -1.0, 3.0, 0.0, -1.0, 0.3], (2, 1))
    base = search.base(parameters)
    assert np.allclose(base.var(axis=1), 1.8 * 0.5)
    assert (((base - base.mean(axis=1, keepdims=True)) ** 3).mean(axis=1) < 0).all()
    assert BASE_SKEW > 0
    assert fit_router(trace, name="n", origin="o", num_iterations=0).sequence_lengths == SEQUENCE_LENGTHS


def test_moments_are_those_the_trace_is_long_enough_for():
    moments = usable_moments(planted(seed=5, lengths=[130]))
    assert moments == Moments((1, 2, 3, 4, 8, 16, 32, 64), (2, 4, 8, 16, 32))
    assert moments.of(planted(seed=5, lengths=[130])).shape == (2, 13)


def test_borrowed_sequence_lengths_and_popularity_are_those_of_gpt_oss_20b():
    fit = load_router_fit("gpt-oss-20b")
    assert (
        fit.sequence_lengths
        == SEQUENCE_LENGTHS
        == tuple(load_shipped_trace("gpt-oss-20b").seq_lengths.tolist())
    )
    ratios = [np.var(layer.base_quantiles) / (1 - layer.within) for layer in fit.layers]
    assert np.median(ratios) == pytest.approx(POPULARITY_TO_LOCAL, abs=0.05)


def test_short_traces_are_refused():
    with pytest.raises(InputError, match="no sequence of 64 tokens"):
        fit_router(planted(seed=6, lengths=[63, 20]), name="n", origin="o")


def test_negative_seeds_are_refused():
    with pytest.raises(InputError, match="seed is -1"):
        fit_router(planted(seed=6), name="n", origin="o", seed=-1)


def test_the_command_fits_a_file_and_writes_a_fit(tmp_path, capsys):
    write_routing_file(tmp_path / "trace.npz", planted(seed=7, lengths=[90, 80]))
    out = tmp_path / "fit.json"
    assert main([str(tmp_path / "trace.npz"), "--name", "mine", "--out", str(out), "--iterations", "1"]) == 0
    fit = read_router_fit(out)
    assert fit.name == "mine"
    assert len(fit.layers) == 2
    assert "a router fitted to the routing recorded in" in fit.origin
    assert json.loads(out.read_text())["version"] == 1
    assert "step 1:" in capsys.readouterr().err


def test_the_command_answers_bad_input_with_exit_code_2(tmp_path, capsys):
    assert main([str(tmp_path / "absent.npz"), "--name", "mine", "--out", str(tmp_path / "fit.json")]) == 2
    assert "error: cannot read routing trace" in capsys.readouterr().err
