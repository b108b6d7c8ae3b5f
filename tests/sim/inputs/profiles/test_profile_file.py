"""Profiles: what they hold, how they are changed and saved, and the sentences for wrong ones."""

import json
import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.profiles import (
    ALL_PARAMETERS,
    OPTIONAL_PARAMETERS,
    PARAMETERS,
    Parameter,
    Profile,
    builtin_profile_names,
    load_profile,
)
from hideaway.sim.inputs.profiles.load import PROFILE_FOLDER
from hideaway.sim.inputs.schemas import check_schema, load_schema

LATENCY = "link.latency_seconds"


def shipped_value(name="rtx-5090"):
    return json.loads((PROFILE_FOLDER / f"{name}.json").read_text())


def load_changed(tmp_path, change):
    value = shipped_value()
    change(value)
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(value))
    return load_profile(str(path))


def test_the_cards_are_built_in():
    assert {"rtx-pro-6000", "rtx-5090"} <= set(builtin_profile_names())


@pytest.mark.parametrize("name", builtin_profile_names())
def test_a_shipped_profile_is_complete_and_obeys_the_schema(name):
    profile = load_profile(name)
    assert tuple(profile.parameters) == tuple(PARAMETERS)
    assert profile.name == name
    check_schema(shipped_value(name), "profile", name)


def test_the_schema_and_the_code_name_the_same_parameters_in_the_same_units():
    schema = load_schema("profile")
    entries = schema["properties"]["parameters"]
    assert set(entries["required"]) == set(PARAMETERS)
    assert set(entries["properties"]) == set(ALL_PARAMETERS) == {*PARAMETERS, *OPTIONAL_PARAMETERS}
    for name, entry in entries["properties"].items():
        limits = schema["$defs"][entry["$ref"].rsplit("/")[-1]]["properties"]
        assert limits["unit"]["const"] == ALL_PARAMETERS[name].unit
        assert limits["value"]["maximum"] == ALL_PARAMETERS[name].maximum
        assert limits["value"]["minimum"] == (
            0 if name == "memory.device_bytes" else ALL_PARAMETERS[name].minimum
        )


def test_optional_parameters_noise_and_calibration_survive_a_file(tmp_path):
    def add(value):
        value["parameters"]["compute.serial_share"] = {
            "value": 0.5, "unit": "fraction", "standard_error": 0.1, "origin": "measured", "source": "a test"
        }  # fmt: skip
        value["noise"] = {
            "experts": {"relative_spread": 0.03, "mean_ratio": 1.01, "tail_ratio": 1.2, "lag_one_correlation": -0.1,
                        "samples": 40}
        }  # fmt: skip
        value["calibration"] = {"base_profile": "rtx-5090"}

    profile = load_changed(tmp_path, add)
    assert profile.optional_value("compute.serial_share") == 0.5
    assert profile.optional_value("memory.dense_read_bytes_per_second") is None
    assert profile.noise["experts"].tail_ratio == 1.2
    changed = profile.with_values({LATENCY: 1e-6})
    assert changed.noise == profile.noise
    changed.save(tmp_path / "again.json")
    assert load_profile(str(tmp_path / "again.json")) == changed
    assert load_profile("rtx-5090").to_dict().keys() == {"format", "version", "name", "device", "parameters"}


@pytest.mark.parametrize("change", [{"samples": 0}, {"lag_one_correlation": 2.0}, {"tail_ratio": -1.0}])
def test_noise_that_cannot_be_is_refused(tmp_path, change):
    noise = {
        "relative_spread": 0.03,
        "mean_ratio": 1.0,
        "tail_ratio": 1.2,
        "lag_one_correlation": 0.0,
        "samples": 4,
    }
    with pytest.raises(InputError, match="noise"):
        load_changed(tmp_path, lambda value: value.update(noise={"experts": noise | change}))


def test_names_are_found_in_any_case_and_unknown_ones_answered_with_the_nearest():
    assert load_profile(" RTX-PRO-6000 ").name == "rtx-pro-6000"
    with pytest.raises(InputError, match="no profile or file 'rtx-pro-600'; did you mean rtx-pro-6000"):
        load_profile("rtx-pro-600")


def test_a_saved_profile_loads_as_the_same_profile(tmp_path):
    profile = load_profile("rtx-pro-6000").with_values({LATENCY: 5e-6})
    profile.save(tmp_path / "mine.json")
    assert load_profile(str(tmp_path / "mine.json")) == profile
    assert Profile.from_dict(profile.to_dict()) == profile


def test_a_value_that_is_set_says_so_and_leaves_the_original_alone():
    original = load_profile("rtx-5090")
    changed = original.with_values({LATENCY: 5e-6})
    assert changed.value(LATENCY) == 5e-6
    assert changed.parameters[LATENCY] == Parameter(5e-6, "seconds", None, "assumed", "set by the user")
    assert original.value(LATENCY) != 5e-6
    assert {name: changed.parameters[name] for name in PARAMETERS if name != LATENCY} == {
        name: original.parameters[name] for name in PARAMETERS if name != LATENCY
    }


def test_asking_for_an_unknown_parameter_names_it():
    with pytest.raises(InputError, match=r"no parameter 'link\.speed'"):
        load_profile("rtx-5090").value("link.speed")
    with pytest.raises(InputError, match=r"no parameter 'link\.speed'"):
        load_profile("rtx-5090").with_values({"link.speed": 1.0})


@pytest.mark.parametrize("value", [-1e-9, math.nan, math.inf, 3601.0, True, "1", None, 10**400])
def test_a_time_outside_its_limits_cannot_be_set(value):
    with pytest.raises(InputError, match=r"link\.latency_seconds"):
        load_profile("rtx-5090").with_values({LATENCY: value})


@pytest.mark.parametrize("value", [0, 0.0, -5.0, 5e-324, 999.0])
def test_a_rate_must_be_that_of_a_machine(value):
    with pytest.raises(
        InputError, match=r"link\.h2d_bytes_per_second .* must be a finite number in \[1000, 1e\+18"
    ):
        load_profile("rtx-5090").with_values({"link.h2d_bytes_per_second": value})


def test_a_reserve_as_large_as_the_device_is_refused():
    with pytest.raises(InputError, match=r"memory\.reserved_bytes is not below memory\.device_bytes"):
        load_profile("rtx-5090").with_values({"memory.reserved_bytes": 2**35})


@given(st.sampled_from(list(PARAMETERS)), st.floats(1e-12, 1.0))
def test_any_sound_value_can_be_set_and_read_back(name, share):
    kind = PARAMETERS[name]
    value = kind.minimum + share * 1e-9 * kind.maximum
    values = {name: value}
    if name == "memory.device_bytes":
        values["memory.reserved_bytes"] = 0.0
    if name == "memory.reserved_bytes":
        values["memory.device_bytes"] = 2 * value + 1
    assert load_profile("rtx-5090").with_values(values).value(name) == value


def test_a_profile_can_be_sent_to_another_process():
    profile = load_profile("rtx-5090")
    assert pickle.loads(pickle.dumps(profile)) == profile


def set_in(*path, to):
    def change(value):
        for key in path[:-1]:
            value = value[key]
        value[path[-1]] = to

    return change


def drop(*path):
    def change(value):
        for key in path[:-1]:
            value = value[key]
        del value[path[-1]]

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop("parameters", LATENCY), r"parameters lacks the key 'link\.latency_seconds'; add it"),
        (set_in("parameters", "link.speed", to={}), r"parameters has the unknown key 'link\.speed'"),
        (drop("parameters", LATENCY, "source"), r"link\.latency_seconds lacks the key 'source'"),
        (set_in("parameters", LATENCY, "note", to=1), "has the unknown key 'note'"),
        (
            set_in("parameters", LATENCY, "unit", to="us"),
            r"latency_seconds\.unit is 'us' but must be 'seconds'",
        ),
        (
            set_in("parameters", LATENCY, "value", to="3"),
            r"latency_seconds\.value is '3' but must be of type number",
        ),
        (
            set_in("parameters", LATENCY, "value", to=-1),
            r"latency_seconds\.value is -1 but must obey minimum 0",
        ),
        (
            set_in("parameters", LATENCY, "value", to=math.nan),
            r"has nan at parameters\.link\.latency_seconds\.value",
        ),
        (set_in("parameters", LATENCY, "value", to=True), r"latency_seconds\.value is True"),
        (set_in("parameters", LATENCY, "standard_error", to=-1), r"standard_error is -1"),
        (
            set_in("parameters", LATENCY, "origin", to="guess"),
            "is 'guess' but must be one of measured, published",
        ),
        (
            set_in("parameters", LATENCY, "source", to=""),
            r"latency_seconds\.source is '' but must obey minLength",
        ),
        (set_in("parameters", to=[]), r"parameters is \[\] but must be of type object"),
        (set_in("version", to=2), "version is 2 but must be 1"),
        (set_in("format", to="hideaway-model"), "does not say that it is a hideaway-profile file"),
        (drop("device"), "the top level lacks the key 'device'"),
        (set_in("name", to="a\nb"), "name is .* must be printable text"),
    ],
)
def test_a_wrong_profile_gives_a_sentence_that_names_the_place(tmp_path, change, message):
    with pytest.raises(InputError, match=message) as caught:
        load_changed(tmp_path, change)
    assert "mine.json" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            drop("parameters", LATENCY),
            r"parameter link\.latency_seconds is missing; add it \(fixed device-side",
        ),
        (
            set_in("parameters", "link.speed", to=None),
            r"parameters\.link\.speed is None but must be a JSON object",
        ),
        (
            set_in("parameters", LATENCY, "unit", to="us"),
            r"link\.latency_seconds has unit 'us'; give its value in seconds",
        ),
        (set_in("parameters", LATENCY, "value", to=math.nan), r"link\.latency_seconds is nan"),
        (
            set_in("parameters", LATENCY, "origin", to="guess"),
            r"the origin of link\.latency_seconds is 'guess'",
        ),
    ],
)
def test_a_wrong_value_from_a_program_gives_a_sentence_too(change, message):
    value = shipped_value()
    change(value)
    with pytest.raises(InputError, match=message):
        Profile.from_dict(value)
