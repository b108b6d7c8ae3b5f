"""The shipped schemas are sound, take what this program writes, and turn their errors into one sentence."""

import json
import re
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.models import load_model
from hideaway.sim.inputs.profiles import load_profile
from hideaway.sim.inputs.scenario import load_scenario
from hideaway.sim.inputs.schemas import SCHEMA_FOLDER, SCHEMA_NAMES, check_schema, load_schema, path_text
from hideaway.sim.timeline import Timeline

PAGE = Path(__file__).parents[3] / "docs" / "formats.md"
EXAMPLES = {
    title: body
    for title, body in re.findall(
        r"<!-- example: (.*?) -->\n```json\n(.*?)```", PAGE.read_text(), flags=re.DOTALL
    )
}
LINE_FORMATS = ("timeline", "event-log")


def test_every_schema_is_shipped_and_itself_valid():
    assert {path.stem for path in SCHEMA_FOLDER.glob("*.json")} == set(SCHEMA_NAMES)
    for name in SCHEMA_NAMES:
        jsonschema.Draft202012Validator.check_schema(load_schema(name))


def test_an_unknown_schema_is_named():
    with pytest.raises(InputError, match="no schema 'trace'; the schemas are event-log"):
        check_schema({}, "trace", "a file")


@pytest.mark.parametrize("name", [name for name in SCHEMA_NAMES if name not in ("profile", *LINE_FORMATS)])
def test_the_example_on_the_page_obeys_its_schema(name):
    check_schema(json.loads(EXAMPLES[name]), name, "the example")


@pytest.mark.parametrize("name", LINE_FORMATS)
def test_every_line_of_the_example_on_the_page_obeys_its_schema(name):
    lines = [json.loads(line) for line in EXAMPLES[name].splitlines()]
    assert lines[0]["format"] == f"hideaway-{name}"
    assert len(lines) > 1
    for line in lines:
        check_schema(line, name, "the example")


def test_every_format_on_the_page_has_an_example():
    assert {title.split(",")[0] for title in EXAMPLES} == set(SCHEMA_NAMES)


def test_the_models_example_is_the_built_in_model(tmp_path):
    path = tmp_path / "model.json"
    path.write_text(EXAMPLES["model"])
    shown, shipped = load_model(str(path)), load_model("Mixtral-8x7B")
    assert (shown.expert_bytes, shown.dense_bytes, shown.num_parameters) == (
        shipped.expert_bytes,
        shipped.dense_bytes,
        shipped.num_parameters,
    )
    assert f"{shown.expert_bytes:,}" in PAGE.read_text()


def test_the_profiles_example_is_part_of_the_built_in_profile():
    example = json.loads(EXAMPLES["profile, one parameter of 25"])
    shipped = load_profile("rtx-5090").to_dict()
    assert example["parameters"].items() <= shipped["parameters"].items()
    assert {**shipped, "parameters": None} == {**example, "parameters": None}
    assert len(shipped["parameters"]) == 25


def test_the_scenario_example_is_read_by_the_program(tmp_path):
    path = tmp_path / "scenario.toml"
    path.write_text(
        re.search(r"<!-- example: scenario -->\n```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)[1]
    )
    scenario = load_scenario(path)
    assert (scenario.profile, scenario.block_size, scenario.concurrency) == ("rtx-5090", 16, 4)
    assert dict(scenario.parameters) == {"link.h2d_bytes_per_second": 51.5e9}


def test_the_timeline_example_is_read_by_the_program_and_its_output_obeys_the_schema(tmp_path):
    path = tmp_path / "timeline.jsonl"
    path.write_text(EXAMPLES["timeline"])
    timeline = Timeline.read_jsonl(path)
    assert [record.track for record in timeline] == ["link", "counter"]
    timeline.add(0.5, 0.75, "compute", "experts", 1, (0, 3), 2, 0b101)
    timeline.write_jsonl(path)
    for line in path.read_text().splitlines():
        check_schema(json.loads(line), "timeline", "a line")


@pytest.mark.parametrize(
    "path", sorted((SCHEMA_FOLDER.parent / "routing").glob("*.npz")), ids=lambda path: path.stem
)
def test_shipped_routing_traces_obey_the_schema(path):
    with np.load(path, allow_pickle=False) as arrays:
        description = {
            name: {"dtype": str(arrays[name].dtype), "shape": list(arrays[name].shape)} for name in arrays
        }
    check_schema(description, "routing", path.name)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("rows", [{"model": "m"}], r"\[0\] lacks the key 'draft'"),
        ("rows", {}, r"the top level is \{\} but must be of type array"),
        ("timeline", {"format": "x", "version": 1}, "format is 'x' but must be 'hideaway-timeline'"),
        ("timeline", {"start_seconds": 0}, "the top level lacks the key 'end_seconds'"),
        ("measurement", {"format": "hideaway-measurement"}, "lacks the key 'version'"),
        (
            "event-log",
            {"event": {"kind": "arrived", "at_seconds": 0}, "commands": []},
            r"event\.kind is 'arrived'",
        ),
        (
            "event-log",
            {"event": {"kind": "Ready", "at_seconds": float("inf")}},
            r"has inf at event\.at_seconds",
        ),
        ("routing", {"expert_ids": {"dtype": "float32", "shape": [1, 1, 1]}}, "lacks the key 'num_experts'"),
    ],
)
def test_an_error_names_the_file_and_the_place_in_it(name, value, message):
    with pytest.raises(InputError, match=message) as caught:
        check_schema(value, name, "file 'f'")
    assert str(caught.value).startswith("file 'f' ")


def test_paths_are_written_as_people_write_them():
    assert (
        path_text(["parameters", "link.latency_seconds", "value"]) == "parameters.link.latency_seconds.value"
    )
    assert path_text(["aliases", 3]) == "aliases[3]"
    assert len(path_text(["a" * 500])) == 120
