"""What happened when: one record per piece of work, kept by both engines and written as JSON lines.

Here: the recorder `Timeline` and its file (`docs/formats.md`). Not here: what a line of the file may say
(`hideaway.sim.timeline_record`) and pictures of a timeline (`hideaway.report`).
Next in a request's path: `hideaway.sim.metrics`, which reads the timelines of either engine.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from hideaway.sim.errors import InputError
from hideaway.sim.files import read_text, write_text_atomically
from hideaway.sim.timeline_record import (
    FORMAT,
    TRACKS,
    VERSION,
    Record,
    header_facts,
    line_object,
    record_from,
    record_object,
)

__all__ = ["FORMAT", "TRACKS", "VERSION", "Record", "Timeline"]

# Skips the Python-level constructor of the named tuple: `add` is called for every piece of simulated work.
_new_record = tuple.__new__


class Timeline(list[Record]):
    """A list of records in the order they were added, with a header of facts about the run.

    Parameters
    ----------
    header : Mapping[str, Any], optional
        JSON values (seed, scenario, device …) written with the records; `format` and `version` of the file
        are added on writing and are not part of it.
    """

    __slots__ = ("header",)

    def __init__(self, header: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.header: dict[str, Any] = dict(header or {})

    def add(
        self,
        start_seconds: float,
        end_seconds: float,
        track: str,
        kind: str,
        step: int = -1,
        seq_ids: tuple[int, ...] = (),
        layer: int = -1,
        experts: int = 0,
        bytes: int = 0,
        band: int = -1,
        value: float = 0.0,
    ) -> None:
        """Append one record, unchecked (it is the engines' inner loop); changes the timeline."""
        self.append(
            _new_record(
                Record,
                (start_seconds, end_seconds, track, kind, step, seq_ids, layer, experts, bytes, band, value),
            )
        )

    def on_track(self, track: str) -> list[Record]:
        """Return the records of one track, in the order they were added."""
        return [record for record in self if record.track == track]

    def span_seconds(self) -> tuple[float, float]:
        """Return the earliest start and the latest end; (0, 0) when there is no record."""
        if not self:
            return (0.0, 0.0)
        return (min(record.start_seconds for record in self), max(record.end_seconds for record in self))

    def write_jsonl(self, path: str | os.PathLike[str]) -> None:
        """Write the header and the records, one JSON object a line; the file is whole or absent.

        Raises
        ------
        InputError
            The folder cannot be written, or a value is not JSON (NaN, infinity, an object).
        """
        facts = {key: value for key, value in self.header.items() if key not in ("format", "version")}
        encode = json.JSONEncoder(allow_nan=False).encode
        lines: list[str] = []
        try:
            lines.append(encode({"format": FORMAT, "version": VERSION, **facts}))
            lines.extend(encode(record_object(record)) for record in self)
        except (TypeError, ValueError) as error:
            place = "the header" if not lines else f"record {len(lines)}"
            raise InputError(
                f"timeline cannot be written: {place} is not JSON ({error}); use finite numbers"
            ) from error
        write_text_atomically(path, "\n".join(lines) + "\n")

    @classmethod
    def read_jsonl(cls, path: str | os.PathLike[str]) -> Timeline:
        """Return the timeline in a file that `write_jsonl` (of either engine) wrote.

        Raises
        ------
        InputError
            The file cannot be read, or a line is not what the format allows; the line's number is given.
        """
        name = os.fspath(path)
        lines = read_text(path, "timeline").split("\n")
        if lines and not lines[-1].strip():
            lines.pop()
        if not lines:
            raise InputError(
                f"timeline {name!r} is empty; its first line must be a header with format {FORMAT!r}"
            )
        place = f"timeline {name!r} line 1"
        timeline = cls(header_facts(line_object(lines[0], place), place))
        for number, line in enumerate(lines[1:], start=2):
            place = f"timeline {name!r} line {number}"
            timeline.append(record_from(line_object(line, place), place))
        return timeline
