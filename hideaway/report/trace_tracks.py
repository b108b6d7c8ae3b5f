"""The tree of tracks that a timeline is drawn on, and which records lie on which track.

Top to bottom: compute; link with one track a band; issue thread; sequences with one track each; counters.
Records of one track that overlap get further lanes of the same name and parent, which a viewer draws as the
rows of one track. Here: the tree. Not here: its packets, which come next in `hideaway.report.perfetto`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hideaway.report.trace_lanes import NESTED_TRACKS, assign_lanes, nanoseconds
from hideaway.report.trace_names import BAND_NAMES
from hideaway.sim.timeline import Record

ROOT_UUID = 1


@dataclass(frozen=True, slots=True)
class TrackNode:
    """One track: a group, a lane of slices or a counter.

    Attributes
    ----------
    uuid, parent_uuid : int
        Unique in the tree, from 1; the root's parent is 0.
    kind : str
        "group", "slices" or "counter".
    rank : int
        Place among the siblings; lanes of one track share it.
    records : tuple[int, ...]
        Positions in the timeline, in drawing order (slices) or in time order (counter).
    """

    uuid: int
    parent_uuid: int
    name: str
    kind: str
    rank: int
    records: tuple[int, ...] = ()


def track_tree(records: Sequence[Record]) -> list[TrackNode]:
    """Return the tracks of `records`, parents before children; every record lies on a track.

    A record of several sequences on the sequence track lies on each of theirs.
    """
    tree = _Tree(records)
    by_track: dict[str, list[int]] = {}
    for position, record in enumerate(records):
        by_track.setdefault(record.track, []).append(position)

    tree.add_slices(ROOT_UUID, "compute", 0, by_track.get("compute", []), track="compute")

    link = tree.add_group(ROOT_UUID, "link", 1)
    for rank, band in enumerate(BAND_NAMES):
        positions = [position for position in by_track.get("link", []) if records[position].band == band]
        tree.add_slices(link, BAND_NAMES[band], rank, positions, track="link")

    tree.add_slices(ROOT_UUID, "issue thread", 2, by_track.get("issue", []), track="issue")

    sequences = tree.add_group(ROOT_UUID, "sequences", 3)
    by_sequence: dict[int, list[int]] = {}
    for position in by_track.get("sequence", []):
        for seq_id in records[position].seq_ids or (-1,):
            by_sequence.setdefault(seq_id, []).append(position)
    for rank, seq_id in enumerate(sorted(by_sequence)):
        name = f"sequence {seq_id}" if seq_id >= 0 else "no sequence"
        tree.add_slices(sequences, name, rank, by_sequence[seq_id], track="sequence")

    counters = tree.add_group(ROOT_UUID, "counters", 4)
    by_counter: dict[str, list[int]] = {}
    for position in by_track.get("counter", []):
        by_counter.setdefault(records[position].kind, []).append(position)
    for rank, kind in enumerate(sorted(by_counter, reverse=True)):
        tree.add_counter(counters, kind.replace("_", " "), rank, by_counter[kind])
    return tree.nodes


class _Tree:
    """A tree under construction; its methods add nodes."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.nodes = [TrackNode(ROOT_UUID, 0, "hideaway", "group", 0)]
        self._intervals = [
            (nanoseconds(record.start_seconds), nanoseconds(record.end_seconds)) for record in records
        ]

    def add_group(self, parent: int, name: str, rank: int) -> int:
        return self._add(parent, name, "group", rank, ())

    def add_slices(self, parent: int, name: str, rank: int, positions: list[int], *, track: str) -> None:
        intervals = [self._intervals[position] for position in positions]
        for lane in assign_lanes(intervals, nested=track in NESTED_TRACKS):
            self._add(parent, name, "slices", rank, tuple(positions[index] for index in lane))

    def add_counter(self, parent: int, name: str, rank: int, positions: list[int]) -> None:
        ordered = sorted(positions, key=lambda position: self._intervals[position][0])
        self._add(parent, name, "counter", rank, tuple(ordered))

    def _add(self, parent: int, name: str, kind: str, rank: int, records: tuple[int, ...]) -> int:
        uuid = ROOT_UUID + len(self.nodes)
        self.nodes.append(TrackNode(uuid, parent, name, kind, rank, records))
        return uuid
