"""A timeline as a trace that ui.perfetto.dev opens.

Here: packets, made with the protobufs of the `perfetto` package; its trace processor, which downloads a
program, is not used. Not here: the tree of tracks (`hideaway.report.trace_tracks`) and what slices are called
(`hideaway.report.trace_names`). Times are whole nanoseconds from the start of the run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    CounterDescriptor,
    Trace,
    TracePacket,
    TrackDescriptor,
    TrackEvent,
)

from hideaway.report.trace_lanes import lane_events, nanoseconds
from hideaway.report.trace_names import late_arrivals, record_facts, slice_name
from hideaway.report.trace_tracks import ROOT_UUID, TrackNode, track_tree
from hideaway.sim.files import write_bytes_atomically
from hideaway.sim.timeline import Record, Timeline

# Any number, the same in all packets: they come from one writer.
_WRITER = 1
_PACKETS_PER_CHUNK = 4096


def write_perfetto(timeline: Timeline, path: str | os.PathLike[str]) -> None:
    """Write `timeline` as a Perfetto trace; same timeline, same bytes; the file is whole or absent.

    Raises
    ------
    InputError
        The folder cannot be written.
    """
    write_bytes_atomically(path, b"".join(trace_chunks(timeline)))


def trace_chunks(timeline: Timeline) -> Iterator[bytes]:
    """Yield the trace in pieces; joined they are one serialised `Trace` (repeated fields concatenate)."""
    trace = Trace()
    for packet in _packets(timeline):
        trace.packet.append(packet)
        if len(trace.packet) == _PACKETS_PER_CHUNK:
            yield trace.SerializeToString(deterministic=True)
            trace = Trace()
    yield trace.SerializeToString(deterministic=True)


def _packets(timeline: Timeline) -> Iterator[TracePacket]:
    """Yield descriptors, then events in time order; equal times keep the order of their track."""
    nodes = track_tree(timeline)
    for node in nodes:
        yield _descriptor_packet(node, timeline.header)
    intervals = [(nanoseconds(record.start_seconds), nanoseconds(record.end_seconds)) for record in timeline]
    moments: list[tuple[int, int, int, bool]] = []
    for place, node in enumerate(nodes):
        if node.kind == "slices":
            moments.extend(
                (time, place, position, begins)
                for time, position, begins in lane_events(intervals, node.records)
            )
        elif node.kind == "counter":
            moments.extend((intervals[position][0], place, position, True) for position in node.records)
    moments.sort(key=lambda moment: moment[0])

    late = late_arrivals(timeline)
    whole = {
        node.uuid: all(float(timeline[position].value).is_integer() for position in node.records)
        for node in nodes
    }
    for time, place, position, begins in moments:
        node, record = nodes[place], timeline[position]
        packet = TracePacket(timestamp=time, trusted_packet_sequence_id=_WRITER)
        event = packet.track_event
        event.track_uuid = node.uuid
        if node.kind == "counter":
            _fill_counter(event, record, whole=whole[node.uuid])
        elif begins:
            _fill_begin(event, record, late.get(position, 0))
        else:
            event.type = TrackEvent.TYPE_SLICE_END
        yield packet


def _descriptor_packet(node: TrackNode, header: Mapping[str, object]) -> TracePacket:
    packet = TracePacket()
    track = packet.track_descriptor
    track.uuid = node.uuid
    track.name = node.name
    if node.parent_uuid:
        track.parent_uuid = node.parent_uuid
        track.sibling_order_rank = node.rank
    if node.uuid == ROOT_UUID:
        track.description = json.dumps(header, sort_keys=True, default=str)
    if node.kind == "group":
        track.child_ordering = TrackDescriptor.EXPLICIT
    elif node.kind == "counter":
        track.counter.unit = CounterDescriptor.UNIT_COUNT
    else:
        track.sibling_merge_behavior = TrackDescriptor.SIBLING_MERGE_BEHAVIOR_BY_TRACK_NAME
    return packet


def _fill_counter(event: TrackEvent, record: Record, *, whole: bool) -> None:
    """Store the sample exactly: one counter uses one field, the integer one if all its samples are whole."""
    event.type = TrackEvent.TYPE_COUNTER
    if whole:
        event.counter_value = int(record.value)
    else:
        event.double_counter_value = record.value


def _fill_begin(event: TrackEvent, record: Record, late: int) -> None:
    event.type = TrackEvent.TYPE_SLICE_BEGIN
    event.name = slice_name(record, late)
    event.categories.append(record.kind)
    for name, value in record_facts(record, late):
        annotation = event.debug_annotations.add(name=name)
        if isinstance(value, int):
            annotation.int_value = value
        else:
            annotation.string_value = value
