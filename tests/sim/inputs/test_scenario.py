"""A scenario as a value and as a file: defaults that work, and one sentence for everything else."""

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.scenario import (
    BASELINES,
    Scenario,
    load_scenario,
    scenario_field_help,
    scenario_from_mapping,
)

NUMBERS = {spec.name: spec.metadata["within"] for spec in fields(Scenario) if spec.metadata.get("within")}
CHOICES = {spec.name: spec.metadata["choices"] for spec in fields(Scenario) if spec.metadata.get("choices")}


def written(tmp_path, text):
    path = tmp_path / "scenario.toml"
    path.write_text(text)
    return path


def test_an_empty_file_is_the_default_scenario(tmp_path):
    assert load_scenario(written(tmp_path, "")) == Scenario()


def test_a_file_names_fields_as_the_flags_do(tmp_path):
    text = """
        model = "qwen3-30b-a3b"
        baseline = "B2"
        rate = 3
        slots = 12
        pageable = true
        [parameters]
        "link.latency_seconds" = 1e-5
        "memory.device_bytes" = 96000000000
    """
    assert load_scenario(written(tmp_path, text)) == Scenario(
        model="qwen3-30b-a3b",
        baseline="B2",
        rate=3.0,
        slots=12,
        pageable=True,
        parameters={"link.latency_seconds": 1e-5, "memory.device_bytes": 96e9},
    )


def test_a_scenario_can_be_hashed_and_compared_whatever_the_order_of_its_parameters():
    one = Scenario(parameters={"a.b": 1.0, "c.d": 2.0})
    other = Scenario(parameters={"c.d": 2.0, "a.b": 1.0})
    assert one == other
    assert hash(one) == hash(other)
    assert replace(one, seed=1) != one
    assert dict(replace(one, seed=1).parameters) == {"a.b": 1.0, "c.d": 2.0}


def test_every_field_explains_itself():
    assert list(scenario_field_help()) == [spec.name for spec in fields(Scenario)]
    assert all(text and not text.endswith(".") for text in scenario_field_help().values())


def test_every_baseline_has_its_meaning():
    assert {"B0", "B1", "B2", "OURS", "OURS-oracle", "B3", "B3-AR"} <= set(BASELINES)
    assert len({baseline.meaning for baseline in BASELINES.values()}) == len(BASELINES)


def test_baselines_isolate_one_thing_each():
    def differing(one, other):
        names = ("speculative", "resident", "prefetch", "admission", "oracle")
        return [name for name in names if getattr(BASELINES[one], name) != getattr(BASELINES[other], name)]

    assert differing("B0", "B1") == ["speculative"]
    assert differing("B1", "B2") == ["prefetch", "admission"]
    assert differing("B1", "B1+deficit") == ["admission"]
    assert differing("B1", "B1+union") == ["prefetch"]
    assert differing("B2", "OURS") == ["admission"]
    assert differing("OURS", "OURS-oracle") == ["oracle"]
    assert differing("B3", "B3-AR") == ["speculative"]


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_have_limits_that_are_told(name):
    least, most = NUMBERS[name]
    kind = int if "int" in next(str(spec.type) for spec in fields(Scenario) if spec.name == name) else float
    for value in (kind(least) - 1, kind(most) * 2 + 1, -kind(most) - 1):
        with pytest.raises(InputError, match=f"{name} is .*; it must be a number from"):
            Scenario(**{name: value})
    if name != "chunk_bytes":
        assert getattr(Scenario(**{name: kind(least)}), name) == least
    room = {"submitted_depth": 16} if name == "copy_streams" else {}
    assert getattr(Scenario(**{name: kind(most)}, **room), name) == most


def test_more_copy_streams_than_submitted_copies_are_refused():
    with pytest.raises(InputError, match="copy_streams is 3 but only 2"):
        Scenario(copy_streams=3)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize(
    "name", ["rate", "slot_fraction", "drafter_parameters", "recall", "ttft_limit_seconds"]
)
def test_what_is_no_number_is_refused(name, value):
    with pytest.raises(InputError, match=f"{name} is -?(nan|inf); it must be a number from"):
        Scenario(**{name: value})


@pytest.mark.parametrize(("name", "value"), [("recall", -0.5), ("precision", 0.0), ("slot_fraction", 0.0)])
def test_shares_lie_between_nothing_and_everything(name, value):
    with pytest.raises(InputError, match=f"{name} is {value}; it must be a number from"):
        Scenario(**{name: value})


@pytest.mark.parametrize("name", CHOICES)
def test_choices_are_told(name):
    with pytest.raises(InputError, match=f"{name} is 'sideways'; it must be one of {CHOICES[name][0]}"):
        Scenario(**{name: "sideways"})
    for choice in CHOICES[name]:
        assert getattr(Scenario(**{name: choice}), name) == choice


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("block_size", 2.5, "a whole number"),
        ("block_size", True, "a whole number"),
        ("block_size", "8", "a whole number"),
        ("slots", [8], "a whole number"),
        ("rate", "fast", "a number"),
        ("rate", False, "a number"),
        ("model", 20, "a text"),
        ("pageable", 1, "true or false"),
        ("pageable", "yes", "true or false"),
        ("baseline", None, "a text"),
    ],
)
def test_values_of_another_kind_are_refused_built_or_read(name, value, words):
    with pytest.raises(InputError, match=f"{name} is .*; it must be {words}"):
        Scenario(**{name: value})
    with pytest.raises(InputError, match=f"{name} is .*; it must be {words}"):
        scenario_from_mapping({name: value})


def test_a_whole_number_will_do_where_a_number_is_due():
    assert scenario_from_mapping({"rate": 3}).rate == 3.0
    assert isinstance(scenario_from_mapping({"rate": 3}).rate, float)
    assert Scenario(rate=3) == Scenario(rate=3.0)


def test_an_integer_too_large_for_a_float_is_one_sentence():
    with pytest.raises(InputError, match="rate is too large a number"):
        scenario_from_mapping({"rate": 10**400})


@pytest.mark.parametrize("key", ["blocksize", "block-size", "", "Model"])
def test_an_unknown_key_is_named_and_the_known_ones_listed(key):
    with pytest.raises(
        InputError, match=f"'{key}' is not a scenario key; the keys are model, .* and parameters"
    ):
        scenario_from_mapping({key: 1})


def test_an_empty_name_is_refused():
    with pytest.raises(InputError, match="model is empty; give a name"):
        Scenario(model="")


@pytest.mark.parametrize(
    "fields_together",
    [
        {"concurrency": 4, "rate": 1.0},
        {"concurrency": 4, "open_loop": True},
        {"rate": 1.0, "open_loop": True},
    ],
)
def test_requests_arrive_in_one_way_only(fields_together):
    with pytest.raises(
        InputError, match=f"{' and '.join(fields_together)} were given together; choose one way"
    ):
        Scenario(**fields_together)


def test_without_a_way_to_arrive_the_loop_is_closed():
    assert Scenario().closed_loop == Scenario().most_sequences == 8
    assert Scenario(concurrency=3).closed_loop == Scenario(concurrency=3).most_sequences == 3
    assert Scenario(rate=2.0, max_sequences=5).closed_loop is None
    assert Scenario(rate=2.0, max_sequences=5).most_sequences == 5
    assert Scenario(open_loop=True).closed_loop is None


def test_a_batch_is_not_divided_into_chunks():
    with pytest.raises(InputError, match="chunk_bytes and batched issue were given together"):
        Scenario(chunk_bytes=10**6, issue="batched")


def test_a_chunk_smaller_than_a_copys_fixed_cost_is_refused():
    assert Scenario(chunk_bytes=0).chunk_bytes == 0
    with pytest.raises(InputError, match="chunk_bytes is 10; give 0 for whole copies, or at least 65536"):
        Scenario(chunk_bytes=10)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("model = ", "is not TOML"),
        ("block_size = 2.5", "block_size is 2.5; it must be a whole number"),
        ("parameters = 3", "parameters must be a table"),
        ("[parameters]\nlink = 3\n", None),
        (
            '[parameters]\n"link.latency_seconds" = "slow"\n',
            "'link.latency_seconds' is 'slow'; give a number",
        ),
        (
            "[parameters]\nlink.latency_seconds = 1e-5\n",
            "'link' is .*; give a number and quote the dotted name",
        ),
        ('[parameters]\n"link.latency_seconds" = true\n', "is True; give a number"),
        ("[other]\nkey = 1\n", "'other' is not a scenario key"),
        ("seed = 2026-01-01", "seed is .*; it must be a whole number"),
    ],
)
def test_a_file_that_is_wrong_is_one_sentence(tmp_path, text, sentence):
    path = written(tmp_path, text)
    if sentence is None:
        assert dict(load_scenario(path).parameters) == {"link": 3.0}, "names are checked by the profile"
        return
    with pytest.raises(InputError, match=sentence) as caught:
        load_scenario(path)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match="scenario file"):
        load_scenario(tmp_path / "absent.toml")


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=2),
)


@given(st.dictionaries(st.sampled_from([spec.name for spec in fields(Scenario)]), values, max_size=4))
def test_any_mapping_is_a_scenario_or_one_sentence(mapping):
    sentence = ""
    scenario = None
    try:
        scenario = scenario_from_mapping(mapping)
    except InputError as error:
        sentence = str(error)
    assert "\n" not in sentence
    assert sentence or all(
        getattr(scenario, name) == value for name, value in mapping.items() if name != "parameters"
    )
