"""The recorder keeps what it is given, and its file gives back the same or one sentence about the line."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hideaway.sim.errors import InputError
from hideaway.sim.timeline import TRACKS, Record, Timeline

RECORD = {
    "start_seconds": 0.25,
    "end_seconds": 0.5,
    "track": "link",
    "kind": "copy",
    "step": 3,
    "seq_ids": [0, 4],
    "layer": 12,
    "experts": "0xff",
    "bytes": 13_236_480,
    "band": 1,
}
HEADER = {"format": "hideaway-timeline", "version": 1, "seed": 1408}

times = st.floats(0, 1e9, allow_nan=False)
counts = st.integers(-1, 2**62)


@st.composite
def records(draw):
    start, end = sorted((draw(times), draw(times)))
    return Record(
        start,
        end,
        draw(st.sampled_from(TRACKS)),
        draw(st.text(min_size=1, max_size=8)),
        draw(counts),
        tuple(draw(st.lists(st.integers(0, 2**62), max_size=3))),
        draw(counts),
        draw(st.integers(0, 2**512)),
        draw(st.integers(0, 2**62)),
        draw(st.integers(-1, 2)),
        draw(st.floats(-(2.0**53), 2.0**53)),
    )


def write_lines(path, *objects):
    path.write_text("".join((item if isinstance(item, str) else json.dumps(item)) + "\n" for item in objects))
    return path


def test_add_appends_records_with_their_defaults_in_order():
    timeline = Timeline({"seed": 1})
    timeline.add(0.0, 0.5, "compute", "draft", 0, (1, 2))
    timeline.add(0.5, 0.5, "counter", "slots_used", value=7.0)
    assert timeline == [
        Record(0.0, 0.5, "compute", "draft", 0, (1, 2), -1, 0, 0, -1, 0.0),
        Record(0.5, 0.5, "counter", "slots_used", -1, (), -1, 0, 0, -1, 7.0),
    ]
    assert isinstance(timeline[0], Record)
    assert timeline.header == {"seed": 1}


def test_on_track_and_span_select_and_measure():
    timeline = Timeline()
    assert timeline.span_seconds() == (0.0, 0.0)
    timeline.add(0.5, 2.0, "link", "copy")
    timeline.add(0.25, 1.0, "compute", "experts")
    timeline.add(1.5, 1.75, "link", "copy")
    assert timeline.span_seconds() == (0.25, 2.0)
    assert [record.start_seconds for record in timeline.on_track("link")] == [0.5, 1.5]


@settings(max_examples=60, deadline=None)
@given(kept=st.lists(records(), max_size=6))
def test_file_gives_back_the_same_records_and_the_same_bytes(tmp_path_factory, kept):
    path = tmp_path_factory.mktemp("timeline") / "run.jsonl"
    timeline = Timeline({"seed": 5, "scenario": {"name": "é\u2028"}})
    timeline.extend(kept)
    timeline.write_jsonl(path)
    written = path.read_bytes()
    back = Timeline.read_jsonl(path)
    assert back == timeline
    assert back.header == timeline.header
    back.write_jsonl(path)
    assert path.read_bytes() == written


def test_file_is_a_header_then_one_object_a_record_with_hex_experts(tmp_path):
    timeline = Timeline({"seed": 1408})
    timeline.add(0.25, 0.5, "link", "copy", 3, (0, 4), 12, 0xFF, 13_236_480, 1)
    timeline.add(0.5, 0.5, "counter", "queue_depth", value=2.0)
    timeline.write_jsonl(tmp_path / "run.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert lines[0] == HEADER
    assert lines[1] == RECORD
    assert lines[2]["value"] == 2.0


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"start_seconds": None}, "start_seconds None; it must be a number from 0 to 1e+09"),
        ({"start_seconds": True}, "start_seconds True"),
        ({"start_seconds": -1}, "start_seconds -1"),
        ({"end_seconds": 1e300}, "end_seconds 1e+300"),
        ({"end_seconds": 0.1}, "ends at 0.1 before it starts at 0.25"),
        ({"track": "disk"}, "track 'disk'; allowed are compute, link, issue, sequence, counter"),
        ({"track": []}, "track []"),
        ({"kind": ""}, "kind ''; it must be a non-empty string"),
        ({"step": 1.5}, "step 1.5; it must be an integer from -1"),
        ({"step": True}, "step True"),
        ({"seq_ids": 3}, "seq_ids 3; it must be a list"),
        ({"seq_ids": [-1]}, "seq_ids -1"),
        ({"layer": -2}, "layer -2"),
        ({"experts": 255}, "experts 255; it must be a hex mask"),
        ({"experts": "0xfg"}, "experts '0xfg'"),
        ({"experts": "0x"}, "experts '0x'"),
        ({"experts": "0x" + "f" * 5000}, "of at most 16384 experts"),
        ({"bytes": -1}, "bytes -1"),
        ({"bytes": 10**30}, "bytes 1000000000000000000000000000000; it must be an integer"),
        ({"band": 3}, "band 3; it must be an integer from -1 to 2"),
        ({"value": "x"}, "value 'x'"),
        ({"colour": 1}, "unknown key 'colour'; allowed are start_seconds"),
        ({"track": "counter"}, "lacks the key 'value'"),
    ],
)
def test_a_wrong_value_is_one_sentence_with_the_line_number(tmp_path, change, sentence):
    path = write_lines(tmp_path / "run.jsonl", HEADER, RECORD, RECORD | change)
    with pytest.raises(InputError, match=re.escape(sentence)) as caught:
        Timeline.read_jsonl(path)
    assert "run.jsonl' line 3 " in str(caught.value)


@pytest.mark.parametrize("key", RECORD)
def test_a_missing_key_is_named(tmp_path, key):
    path = write_lines(tmp_path / "run.jsonl", HEADER, {name: RECORD[name] for name in RECORD if name != key})
    with pytest.raises(InputError, match=f"line 2 lacks the key '{key}'"):
        Timeline.read_jsonl(path)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('{"start_seconds": 0.2', "line 2 is not JSON"),
        ('{"start_seconds": NaN}', "line 2 is not JSON .NaN is not a JSON number"),
        ('{"bytes": ' + "1" * 5000 + "}", "line 2 is not JSON"),
        ("[" * 100_000, "line 2 is not JSON"),
        ("", "line 2 is not JSON"),
        ("[1]", "line 2 is not a JSON object"),
    ],
)
def test_a_line_that_is_no_object_is_refused_by_number(tmp_path, line, sentence):
    with pytest.raises(InputError, match=sentence):
        Timeline.read_jsonl(write_lines(tmp_path / "run.jsonl", HEADER, line, RECORD))


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ([], "is empty; its first line must be a header"),
        ([RECORD], "line 1 is not a timeline header"),
        ([HEADER | {"version": 2}], "line 1 has version 2; this program reads version 1"),
        ([HEADER | {"version": True}], "line 1 has version True"),
        (['"text"'], "line 1 is not a JSON object"),
    ],
)
def test_a_file_without_a_good_header_is_refused(tmp_path, lines, sentence):
    with pytest.raises(InputError, match=sentence):
        Timeline.read_jsonl(write_lines(tmp_path / "run.jsonl", *lines))


def test_an_absent_file_and_a_binary_file_are_refused(tmp_path):
    with pytest.raises(InputError, match="cannot read timeline"):
        Timeline.read_jsonl(tmp_path / "none.jsonl")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="is not UTF-8"):
        Timeline.read_jsonl(tmp_path / "binary")


def test_what_is_not_json_is_not_written(tmp_path):
    timeline = Timeline()
    timeline.add(0.0, 1.0, "compute", "draft")
    timeline.add(0.0, float("nan"), "compute", "draft")
    with pytest.raises(InputError, match="record 2 is not JSON"):
        timeline.write_jsonl(tmp_path / "run.jsonl")
    with pytest.raises(InputError, match="the header is not JSON"):
        Timeline({"rng": object()}).write_jsonl(tmp_path / "run.jsonl")
    assert not (tmp_path / "run.jsonl").exists()
