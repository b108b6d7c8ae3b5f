"""Files of fitted routers: round trip, and files that are wrong."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.routing.router_fit_file import load_router_fit, read_router_fit, save_router_fit
from hideaway.sim.inputs.routing.router_parameters import LayerLocality, RouterFit

FIT = RouterFit("mine", (LayerLocality((-1.0, 0.5), 0.6, 0.3, 20.0, 0.5, 0.4, 0.5),), (100, 200), "made up")


def saved(tmp_path):
    path = tmp_path / "fit.json"
    save_router_fit(path, FIT)
    return path


def test_a_fit_saved_is_read_back_and_can_be_named_by_its_path(tmp_path):
    path = saved(tmp_path)
    assert read_router_fit(path) == FIT
    assert load_router_fit(str(path)) == FIT


def test_shipped_fits_cite_their_trace():
    for name, layers in (("gpt-oss-20b", 24), ("qwen3-30b-a3b", 48)):
        fit = load_router_fit(name)
        assert fit.name == name
        assert len(fit.layers) == layers
        assert "recorded by" in fit.origin


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("format",), "other", "this program reads hideaway-router-fit version 1"),
        (("version",), 2, "version 2"),
        (("name",), 5, "must be text"),
        (("layers",), {}, "is not a list"),
        (("layers",), [], "at least one layer"),
        (("layers", 0), 3, "layer 0 of .* is not a JSON object"),
        (("layers", 0, "within"), 2, "within is 2.0"),
        (("layers", 0, "within"), True, "finite number"),
        (("layers", 0, "drift_tokens"), "long", "finite number"),
        (("layers", 0, "base_quantiles"), 1, "is not a list"),
        (("layers", 0, "extra"), 1, "unknown key 'extra'"),
        (("sequence_lengths",), [1.5], "whole number"),
        (("extra",), 1, "unknown key 'extra'"),
    ],
)
def test_wrong_values_are_refused_by_name(tmp_path, path, value, message):
    file = saved(tmp_path)
    content = json.loads(file.read_text())
    place = content
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    file.write_text(json.dumps(content))
    with pytest.raises(InputError, match=message):
        read_router_fit(file)


def test_missing_keys_are_named(tmp_path):
    file = saved(tmp_path)
    content = json.loads(file.read_text())
    del content["layers"][0]["boost"]
    file.write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"layer 0 of .* has no boost"):
        read_router_fit(file)


def outcome(load):
    """Return what loading gives, or the sentence it is refused with."""
    try:
        return load()
    except InputError as error:
        return str(error)


@given(
    cuts=st.lists(
        st.tuples(st.integers(0, 900), st.integers(0, 3), st.binary(max_size=3)), min_size=1, max_size=4
    )
)
def test_mutilated_files_load_or_are_refused(tmp_path_factory, cuts):
    path = tmp_path_factory.mktemp("fuzz") / "fit.json"
    save_router_fit(path, FIT)
    data = path.read_bytes()
    for place, length, inserted in cuts:
        at = place % (len(data) + 1)
        data = data[:at] + inserted + data[at + length :]
    path.write_bytes(data)
    result = outcome(lambda: read_router_fit(path))
    assert "\n" not in result if isinstance(result, str) else result.layers
