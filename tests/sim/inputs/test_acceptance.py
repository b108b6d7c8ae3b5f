"""Acceptance models: means against closed forms, persistence, files, and what is refused."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.acceptance import (
    MixtureAcceptance,
    conditional_from_cumulative,
    load_acceptance,
    published_vector_names,
)

NUM_ROUNDS = 20_000
Z = 4.0
"""Standard errors that a sample mean may be off: 1 in 16,000 tests would fail by chance, and the seeds are fixed."""


def drawn(spec, block_size, seed=0, count=NUM_ROUNDS):
    draw = load_acceptance(spec).sequence(np.random.default_rng(seed))
    return np.array([draw(block_size) for _ in range(count)])


@pytest.mark.parametrize(
    ("spec", "block_size", "mean"),
    [
        ("constant:3", 8, 3.0),
        ("constant:3.4", 8, 3.4),
        ("constant:3.4", 3, 3.0),
        ("constant:9", 8, 8.0),
        ("constant:1", 1, 1.0),
        ("rate:0", 8, 1.0),
        ("rate:1", 8, 8.0),
        ("rate:0.8", 8, (1 - 0.8**8) / (1 - 0.8)),
        ("vector:0.8,0.7", 3, 1 + 0.8 + 0.56),
        ("vector:0.8,0.7", 5, 1 + 0.8 + 0.56 + 0.56 * 0.7 + 0.56 * 0.49),
        ("vector:0.5", 1, 1.0),
        ("mixture:0.9,0.6,0.3,0.7", 4, 0.3 * (1 - 0.9**4) / 0.1 + 0.7 * (1 - 0.6**4) / 0.4),
    ],
)
def test_means_are_the_closed_forms(spec, block_size, mean):
    assert load_acceptance(spec).mean_length(block_size) == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize("spec", ["constant:2.7", "rate:0.75", "vector:0.9,0.5,0.8", "mixture:0.9,0.6,0.3,0"])
@pytest.mark.parametrize("block_size", [2, 16])
def test_sample_means_agree_with_the_stated_mean(spec, block_size):
    lengths = drawn(spec, block_size)
    assert lengths.min() >= 1
    assert lengths.max() <= block_size
    error = max(lengths.std() / math.sqrt(NUM_ROUNDS), 1e-12)
    assert abs(lengths.mean() - load_acceptance(spec).mean_length(block_size)) < Z * error


def test_the_run_of_a_rate_is_geometric():
    lengths = drawn("rate:0.75", 6)
    for accepted in range(1, 6):
        expected = 0.75**accepted
        error = math.sqrt(expected * (1 - expected) / NUM_ROUNDS)
        assert abs((lengths > accepted).mean() - expected) < Z * error


def test_a_persistent_mixture_keeps_its_stationary_mean_over_requests():
    model = load_acceptance("mixture:0.9,0.3,0.4,0.9")
    firsts, means = [], []
    for generator in np.random.default_rng(11).spawn(2000):
        draw = model.sequence(generator)
        lengths = [draw(8) for _ in range(50)]
        firsts.append(lengths[0])
        means.append(np.mean(lengths))
    # Requests are independent, so the error comes from their spread; the first round is stationary too.
    for sample in (firsts, means):
        assert abs(np.mean(sample) - model.mean_length(8)) < Z * np.std(sample) / math.sqrt(2000)


def test_classes_of_neighbouring_rounds_have_the_stated_correlation():
    # Easy rounds accept everything and hard ones nothing, so lengths show the class.
    persistence, weight, count = 0.6, 0.3, 40_000
    model = MixtureAcceptance(1.0, 0.0, weight, persistence, "test")
    draw = model.sequence(np.random.default_rng(5))
    easy = np.array([draw(2) for _ in range(count)]) - 1.0
    centred = easy - weight
    products = centred[1:] * centred[:-1] / (weight * (1 - weight))
    # Products of neighbours are correlated over about 1 / (1 - p) rounds; batch means give an honest error.
    batches = products[: len(products) // 200 * 200].reshape(200, -1).mean(axis=1)
    assert abs(batches.mean() - persistence) < Z * batches.std() / math.sqrt(200)


def test_full_persistence_keeps_a_request_in_its_first_class():
    draw = MixtureAcceptance(1.0, 0.0, 0.5, 1.0, "test").sequence(np.random.default_rng(1))
    assert len({draw(4) for _ in range(1000)}) == 1


def test_draws_do_not_depend_on_the_block_sizes_asked_before():
    model = load_acceptance("mixture:default")
    wide, mixed = (model.sequence(np.random.default_rng(9)) for _ in range(2))
    for step in range(600):
        block_size = 1 + step % 7
        assert mixed(block_size) == min(wide(10_000), block_size)


def test_the_default_mixture_fits_the_published_curve():
    # GLM-5.2 with DSpark, vllm-project/vllm pull request 52992; the fit's error is 0.003 a position.
    published = load_acceptance("vector:glm-5.2-dspark")
    mixture = load_acceptance("mixture:default")
    for block_size in range(1, 18):
        assert mixture.mean_length(block_size) == pytest.approx(
            published.mean_length(block_size), abs=0.003 * block_size
        )
    assert "assumed" in mixture.origin


def test_published_vectors_have_their_published_mean_lengths():
    # 1 + sum of the cumulative rates as reported, recomputed by hand from the source rows.
    assert load_acceptance("vector:glm-5.2-dspark").mean_length(17) == pytest.approx(4.348, abs=5e-4)
    assert load_acceptance("vector:deepseek-v4-flash-dspark").mean_length(6) == pytest.approx(3.86, abs=5e-4)
    assert load_acceptance("vector:qwen3.8-27b-dflash2").mean_length(8) == pytest.approx(4.373, abs=5e-4)
    assert load_acceptance("vector:qwen3-8b-dflash").mean_length(9) == pytest.approx(1.761, abs=5e-4)
    for name in published_vector_names():
        assert "published in github.com/" in load_acceptance(f"vector:{name}").origin


def test_cumulative_rates_become_conditional_and_stop_where_nothing_arrives():
    assert conditional_from_cumulative([0.8, 0.4, 0.0, 0.0]) == pytest.approx((0.8, 0.5, 0.0))
    with pytest.raises(InputError, match=r"rises from 0\.4 to 0\.5 at position 2"):
        conditional_from_cumulative([0.4, 0.5])


@pytest.mark.parametrize(
    ("text", "name", "mean"),
    [
        ("[0.8, 0.5]", "v.json", 2.2),
        ('{"conditional": [0.8, 0.5]}', "v.json", 2.2),
        ('{"cumulative": [0.8, 0.4]}', "v.json", 2.2),
        ("position,accept_rate\n1,0.8\n2,0.5\n", "v.csv", 2.2),
        ("position,accept_rate,rate_kind\n1,0.8,cumulative\n2,0.4,cumulative\n", "v.csv", 2.2),
    ],
)
def test_vectors_are_read_from_files(tmp_path, text, name, mean):
    path = tmp_path / name
    path.write_text(text)
    assert load_acceptance(f"vector:{path}").mean_length(3) == pytest.approx(mean)


@pytest.mark.parametrize(
    "text",
    [
        "[1, 4, 2, 16]",
        "step,acceptance_length\n0,1\n1,4\n2,2\n3,16\n",
        "\ufeffacceptance_length\n1\n4\n2\n16\n",
    ],
)
def test_a_recording_is_replayed_in_order_from_a_random_round(tmp_path, text):
    path = tmp_path / "recording"
    path.write_text(text, encoding="utf-8")
    model = load_acceptance(f"replay:{path}")
    assert model.mean_length(8) == (1 + 4 + 2 + 8) / 4
    circle = [1, 4, 2, 8]
    starts = set()
    for seed in range(40):
        draw = model.sequence(np.random.default_rng(seed))
        lengths = [draw(8) for _ in range(9)]
        start = circle.index(lengths[0])
        starts.add(start)
        assert lengths == [circle[(start + step) % 4] for step in range(9)]
    assert starts == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", "is not known; give constant:A"),
        ("constant", "is not known"),
        ("constant:", "is not known"),
        ("median:3", "is not known"),
        ("constant:0.5", "counts the target's own token"),
        ("constant:nan", "finite number"),
        ("constant:1e9", "from 1 to 4096"),
        ("rate:1.2", "position 1 is 1.2; give a number from 0 to 1"),
        ("rate:-0.1", "from 0 to 1"),
        ("vector:0.5,x", "position 2 is 'x'"),
        ("vector:0.5,,0.4", "position 2 is ''"),
        ("vector:no-such-vector", "cannot read acceptance vector"),
        ("mixture:0.9,0.6", "has 2 numbers; give EASY,HARD,WEIGHT,PERSISTENCE"),
        ("mixture:0.9,0.6,0.3,1.5", "persistence of classes is 1.5"),
        ("replay:no-such-file", "cannot read acceptance recording"),
    ],
)
def test_bad_specs_are_refused(spec, message):
    with pytest.raises(InputError, match=message):
        load_acceptance(spec)


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("replay", "[]", "holds no round"),
        ("replay", "[0]", "add 1 to a count of accepted drafts"),
        ("replay", "[4.5]", "whole number"),
        ("replay", "[true]", "finite number"),
        ("replay", "tokens\n1\n", "has no column acceptance_length"),
        ("replay", "acceptance_length\n", "has no row"),
        ("vector", "[]", "is not a list of 1 to 4096 rates"),
        ("vector", "[2]", "from 0 to 1"),
        ("vector", '{"rates": [0.5]}', "give one key, conditional or cumulative"),
        ("vector", "position,accept_rate\n2,0.5\n", "has position 2 where 1 comes next"),
        ("vector", "position,accept_rate,rate_kind\n1,0.5,odds\n", "has rate_kind odds"),
        ("vector", "position,accept_rate\n1\n", "is cut short"),
    ],
)
def test_malformed_files_are_refused(tmp_path, kind, text, message):
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        load_acceptance(f"{kind}:{path}")


def test_a_block_without_a_row_is_refused():
    for spec in ("constant:2", "rate:0.5", "mixture:default"):
        with pytest.raises(InputError, match="block_size is 0"):
            load_acceptance(spec).mean_length(0)


VALID = {
    "replay": ["[1, 4, 2, 16]", "step,acceptance_length\n0,1\n1,4\n"],
    "vector": [
        json.dumps({"cumulative": [0.8, 0.4]}),
        "position,accept_rate,rate_kind\n1,0.8,cumulative\n2,0.4,cumulative\n",
    ],
}


def outcome(load):
    """Return what loading gives, or the sentence it is refused with."""
    try:
        return load()
    except InputError as error:
        return str(error)


@given(
    kind=st.sampled_from(["replay", "vector"]),
    which=st.integers(0, 1),
    cuts=st.lists(
        st.tuples(st.integers(0, 200), st.integers(0, 3), st.binary(max_size=3)), min_size=1, max_size=4
    ),
)
def test_mutilated_files_load_or_are_refused(tmp_path_factory, kind, which, cuts):
    data = VALID[kind][which].encode()
    for place, length, inserted in cuts:
        at = place % (len(data) + 1)
        data = data[:at] + inserted + data[at + length :]
    path = tmp_path_factory.mktemp("fuzz") / "file"
    path.write_bytes(data)
    result = outcome(lambda: load_acceptance(f"{kind}:{path}"))
    assert "\n" not in result if isinstance(result, str) else 1.0 <= result.mean_length(4) <= 4.0
