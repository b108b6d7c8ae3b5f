"""A trace is parsed back with the package's own protobufs and must hold every record, nested and ordered."""

import subprocess
import sys
from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

from hideaway.report.perfetto import write_perfetto
from hideaway.sim.errors import InputError
from hideaway.sim.timeline import Timeline

BEGIN, END, COUNTER = TrackEvent.TYPE_SLICE_BEGIN, TrackEvent.TYPE_SLICE_END, TrackEvent.TYPE_COUNTER


def parsed(timeline, folder):
    write_perfetto(timeline, folder / "run.pftrace")
    return Trace.FromString((folder / "run.pftrace").read_bytes())


def descriptors(trace):
    return {
        packet.track_descriptor.uuid: packet.track_descriptor
        for packet in trace.packet
        if packet.HasField("track_descriptor")
    }


def path_of(uuid, tracks):
    names = []
    while uuid:
        names.append(tracks[uuid].name)
        uuid = tracks[uuid].parent_uuid
    return "/".join(reversed(names))


def events(trace):
    return [
        (packet.timestamp, packet.track_event) for packet in trace.packet if packet.HasField("track_event")
    ]


def slices(trace):
    """Return (path, uuid, start, end, begin event) of every slice, checking balance, nesting and order."""
    tracks = descriptors(trace)
    open_slices = defaultdict(list)
    latest = 0
    found = []
    for time, event in events(trace):
        assert time >= latest
        latest = time
        stack = open_slices[event.track_uuid]
        if event.type == BEGIN:
            stack.append((time, event))
        elif event.type == END:
            start, begin = stack.pop()
            found.append((path_of(event.track_uuid, tracks), event.track_uuid, start, time, begin))
    assert not any(open_slices.values())
    return found


def facts(event):
    return {
        item.name: item.int_value if item.HasField("int_value") else item.string_value
        for item in event.debug_annotations
    }


def visit_timeline():
    """One visit of layer 12: 9 experts resident, 4 arrive, two of them after the hits were computed."""
    timeline = Timeline({"seed": 1408})
    hits, arrivals = 0b1_1111_1111, [9, 10, 11, 12]
    for number, expert in enumerate(arrivals):
        start = 0.001 + number * 0.00025
        timeline.add(
            start, start + 0.00025, "link", "copy", 3, (0, 4), 12, 1 << expert, 13_236_480, number % 2
        )
    timeline.add(0.001, 0.0018, "compute", "experts", 3, (0, 4), 12, hits | 1 << 9 | 1 << 10 | 1 << 11)
    timeline.add(0.0018, 0.002, "compute", "wait", 3, (0, 4), 12, 1 << 12)
    timeline.add(0.002, 0.00225, "compute", "experts", 3, (0, 4), 12, 1 << 12)
    return timeline


def test_names_say_hits_and_arrivals_and_annotations_hold_the_facts(tmp_path):
    found = {event.name: event for *_, event in slices(parsed(visit_timeline(), tmp_path))}
    assert set(found) == {
        "experts L12 (9 hits + 3 arrivals)",
        "wait L12 e12",
        "experts L12 (1 arrival)",
        *(f"copy L12 e{expert}" for expert in (9, 10, 11, 12)),
    }
    assert facts(found["copy L12 e10"]) == {
        "step": 3,
        "layer": 12,
        "sequences": "0, 4",
        "bytes": 13_236_480,
        "band": "route-ahead",
        "num_experts": 1,
        "expert_ids": "10",
    }
    assert facts(found["experts L12 (9 hits + 3 arrivals)"])["arrival_ids"] == "9, 10, 11"


def test_an_expert_that_arrived_before_the_experts_phase_is_a_hit(tmp_path):
    timeline = Timeline()
    timeline.add(0.0, 0.5, "link", "copy", 3, (), 2, 0b1, 10, 1)
    timeline.add(0.5, 1.0, "compute", "experts", 3, (), 2, 0b11)
    timeline.add(0.0, 0.75, "link", "copy", 3, (), 3, 0b1, 10, 1)
    assert "experts L2 (2 hits)" in {event.name for *_, event in slices(parsed(timeline, tmp_path))}


def test_an_engine_that_counts_hits_itself_is_believed(tmp_path):
    timeline = Timeline()
    timeline.add(0.0, 1.0, "compute", "experts", 3, (), 2, 0b1111, value=3.0)
    timeline.add(1.0, 2.0, "compute", "experts", 3, (), 3, 0b1111, value=4.0)
    assert {event.name for *_, event in slices(parsed(timeline, tmp_path))} == {
        "experts L2 (3 hits + 1 arrival)",
        "experts L3 (4 hits)",
    }


def test_tracks_are_compute_link_by_band_issue_sequences_and_counters(tmp_path):
    timeline = Timeline({"model": "m"})
    timeline.add(0.0, 1.0, "compute", "draft", 0, (7,))
    for band in (0, 1, 2):
        timeline.add(0.0, 1.0, "link", "copy", band=band)
    timeline.add(0.0, 1.0, "issue", "issue")
    timeline.add(0.0, 1.0, "sequence", "verify", 0, (7,))
    timeline.add(0.0, 1.0, "sequence", "draft", 0, (3,))
    timeline.add(0.5, 0.5, "counter", "slots_used", value=3.0)
    timeline.add(0.5, 0.5, "counter", "queue_depth", value=1.0)
    trace = parsed(timeline, tmp_path)
    tracks = descriptors(trace)
    assert {path_of(uuid, tracks) for uuid in tracks} == {
        "hideaway",
        "hideaway/compute",
        "hideaway/link",
        "hideaway/link/on-demand",
        "hideaway/link/route-ahead",
        "hideaway/link/background",
        "hideaway/issue thread",
        "hideaway/sequences",
        "hideaway/sequences/sequence 3",
        "hideaway/sequences/sequence 7",
        "hideaway/counters",
        "hideaway/counters/slots used",
        "hideaway/counters/queue depth",
    }
    assert {(path, event.name) for path, *_, event in slices(trace)} == {
        ("hideaway/compute", "draft (1 sequence)"),
        ("hideaway/link/on-demand", "copy"),
        ("hideaway/link/route-ahead", "copy"),
        ("hideaway/link/background", "copy"),
        ("hideaway/issue thread", "issue"),
        ("hideaway/sequences/sequence 7", "verify"),
        ("hideaway/sequences/sequence 3", "draft"),
    }


def test_overlapping_copies_lie_on_lanes_of_one_name_and_an_inner_phase_nests(tmp_path):
    timeline = Timeline()
    timeline.add(0.0, 2.0, "link", "copy", band=0)
    timeline.add(0.5, 1.0, "link", "copy", band=0)
    timeline.add(1.0, 3.0, "link", "copy", band=0)
    timeline.add(0.0, 2.0, "compute", "route")
    timeline.add(0.5, 1.0, "compute", "attention")
    timeline.add(1.5, 2.5, "compute", "router")
    lanes = defaultdict(list)
    for path, uuid, start, end, _ in slices(parsed(timeline, tmp_path)):
        lanes[path, uuid].append((start // 10**8, end // 10**8))
    assert {(path, tuple(sorted(spans))) for (path, _), spans in lanes.items()} == {
        ("hideaway/link/on-demand", ((0, 20),)),
        ("hideaway/link/on-demand", ((5, 10), (10, 30))),
        ("hideaway/compute", ((0, 20), (5, 10))),
        ("hideaway/compute", ((15, 25),)),
    }


@pytest.mark.parametrize("values", [[3.0, 0.0, -2.0, 2.0**53], [0.5, 1.0, 1e-300, 0.1 + 0.2]])
def test_counters_are_exact_and_use_one_field_each(tmp_path, values):
    timeline = Timeline()
    for number, value in enumerate(values):
        timeline.add(number / 8, number / 8, "counter", "slots_used", value=value)
    samples = [(time, event) for time, event in events(parsed(timeline, tmp_path)) if event.type == COUNTER]
    field = "counter_value" if all(value.is_integer() for value in values) else "double_counter_value"
    assert all(event.HasField(field) for _, event in samples)
    assert [(time, getattr(event, field)) for time, event in samples] == [
        (number * 125_000_000, value) for number, value in enumerate(values)
    ]


def test_an_empty_timeline_is_a_trace_without_events(tmp_path):
    trace = parsed(Timeline(), tmp_path)
    assert events(trace) == []
    assert descriptors(trace)[1].name == "hideaway"


moments = st.integers(0, 12).map(lambda tick: tick / 8) | st.floats(0, 1e4)


@st.composite
def timelines(draw):
    timeline = Timeline({"seed": draw(st.integers(0, 9))})
    for _ in range(draw(st.integers(0, 25))):
        start, end = sorted((draw(moments), draw(moments)))
        track = draw(st.sampled_from(["compute", "link", "issue", "sequence", "counter"]))
        kind = draw(st.sampled_from(["experts", "wait", "copy", "slots_used"]))
        seq_ids = tuple(sorted(draw(st.sets(st.integers(0, 3), max_size=3))))
        mask, value = draw(st.integers(0, 2**70)), draw(st.integers(-5, 5) | st.floats(-1e9, 1e9))
        end = start if track == "counter" else end
        small = st.integers(-1, 2)
        timeline.add(start, end, track, kind, draw(small), seq_ids, draw(small), mask, 5, draw(small), value)
    return timeline


@settings(max_examples=150, deadline=None)
@given(timeline=timelines())
def test_any_timeline_gives_unique_tracks_nested_ordered_slices_and_every_record(tmp_path_factory, timeline):
    trace = parsed(timeline, tmp_path_factory.mktemp("trace"))
    uuids = [packet.track_descriptor.uuid for packet in trace.packet if packet.HasField("track_descriptor")]
    assert len(uuids) == len(set(uuids))
    tracks = descriptors(trace)
    assert all(event.track_uuid in tracks for _, event in events(trace))

    wanted = Counter()
    bands = {0: "on-demand", 1: "route-ahead", 2: "background", -1: "other"}
    for record in timeline:
        span = (round(record.start_seconds * 10**9), round(record.end_seconds * 10**9), record.kind)
        if record.track == "sequence":
            names = [f"sequence {seq_id}" for seq_id in record.seq_ids] or ["no sequence"]
            wanted.update((f"hideaway/sequences/{name}", *span) for name in names)
        elif record.track == "link":
            wanted[(f"hideaway/link/{bands[record.band]}", *span)] += 1
        elif record.track != "counter":
            wanted[
                ({"compute": "hideaway/compute", "issue": "hideaway/issue thread"}[record.track], *span)
            ] += 1
    found = slices(trace)
    assert Counter((path, start, end, event.categories[0]) for path, _, start, end, event in found) == wanted

    samples = Counter(
        (event.track_uuid, time, event.counter_value or event.double_counter_value)
        for time, event in events(trace)
        if event.type == COUNTER
    )
    by_kind = {
        f"hideaway/counters/{kind.replace('_', ' ')}": kind for kind in {record.kind for record in timeline}
    }
    assert Counter(
        (by_kind[path_of(uuid, tracks)], time, value) for (uuid, time, value) in samples.elements()
    ) == Counter(
        (record.kind, round(record.start_seconds * 10**9), record.value)
        for record in timeline
        if record.track == "counter"
    )


@settings(max_examples=20, deadline=None)
@given(timeline=timelines())
def test_the_same_timeline_gives_the_same_bytes(tmp_path_factory, timeline):
    folder = tmp_path_factory.mktemp("trace")
    write_perfetto(timeline, folder / "first")
    write_perfetto(timeline, folder / "second")
    assert (folder / "first").read_bytes() == (folder / "second").read_bytes()


def test_a_trace_longer_than_one_chunk_keeps_its_order(tmp_path):
    timeline = Timeline()
    for number in range(5000):
        timeline.add(number / 1000, (number + 1) / 1000, "compute", "attention", number, (), number % 24)
    assert [event.name for *_, event in slices(parsed(timeline, tmp_path))] == [
        f"attention L{number % 24}" for number in range(5000)
    ]


def test_an_unwritable_folder_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        write_perfetto(Timeline(), tmp_path / "file" / "run.pftrace")


def test_importing_the_writer_loads_no_trace_processor():
    code = "import sys, hideaway.report.perfetto; print([n for n in sys.modules if 'trace_processor' in n])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
