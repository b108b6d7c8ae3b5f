"""The event log: every event a scheduler was told and the commands it answered, so that a run can be replayed.

A recorded log fed to a fresh scheduler of the same parts gives the same commands, whichever world recorded it. The
file is JSON lines (docs/formats.md); expert sets are hexadecimal texts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, cast

from hideaway.sim import commands as command_module
from hideaway.sim import events as event_module
from hideaway.sim.batch import Batch
from hideaway.sim.commands import Band, Command
from hideaway.sim.errors import InputError
from hideaway.sim.events import Event
from hideaway.sim.expert_cache import ExpertCache
from hideaway.sim.files import read_text, write_text_atomically
from hideaway.sim.policies.admission.base import AdmissionPolicy
from hideaway.sim.scheduler import Scheduler, SchedulerOptions

FORMAT = "hideaway-event-log"
VERSION = 1
_MASKS = frozenset(
    {"experts", "needed", "ahead", "arrivals", "predicted", "last_rows", "kept_rows", "fetched"}
)
_KINDS: dict[str, type] = {
    name: kind
    for module in (event_module, command_module)
    for name, kind in vars(module).items()
    if isinstance(kind, type) and hasattr(kind, "__dataclass_fields__")
}


@dataclass(frozen=True, slots=True)
class Exchange:
    """One event and the commands that answered it."""

    event: Event
    commands: tuple[Command, ...]


class EventLog(list[Exchange]):
    """Exchanges in the order in which they happened, with a header of facts about the run."""

    def __init__(self, header: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.header = dict(header or {})

    def write_jsonl(self, path: str | os.PathLike[str]) -> None:
        """Write the header and the exchanges, one JSON object a line; the file is whole or absent."""
        lines = [json.dumps({"format": FORMAT, "version": VERSION, **self.header}, allow_nan=False)]
        for exchange in self:
            answer = [_object(command) for command in exchange.commands]
            lines.append(json.dumps({"event": _object(exchange.event), "commands": answer}))
        write_text_atomically(path, "\n".join(lines) + "\n")

    @classmethod
    def read_jsonl(cls, path: str | os.PathLike[str]) -> EventLog:
        """Return the log in a file.

        Raises
        ------
        InputError
            The file cannot be read or a line is malformed; its number is given.
        """
        lines = read_text(path, "event log").splitlines()
        log = cls()
        for number, line in enumerate(lines, start=1):
            try:
                content = json.loads(line)
                if number == 1:
                    log.header = _header(content)
                else:
                    answer = tuple(cast(Command, _value(command)) for command in content["commands"])
                    log.append(Exchange(cast(Event, _value(content["event"])), answer))
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise InputError(
                    f"event log {os.fspath(path)!r} line {number} is malformed ({error}); record the run again"
                ) from error
        if not lines:
            raise InputError(f"event log {os.fspath(path)!r} is empty; its first line must be a header")
        return log


class RecordingScheduler(Scheduler):
    """A scheduler that keeps every exchange in a log."""

    def __init__(
        self,
        options: SchedulerOptions,
        batch: Batch,
        cache: ExpertCache,
        admission: AdmissionPolicy,
        log: EventLog,
    ) -> None:
        super().__init__(options, batch, cache, admission)
        self.log = log

    def handle(self, event: Event) -> list[Command]:
        """Return the commands that answer `event`; keeps the exchange. Changes state."""
        commands = super().handle(event)
        self.log.append(Exchange(event, tuple(commands)))
        return commands


def first_difference(
    log: Iterable[Exchange], scheduler: Scheduler
) -> tuple[int, Exchange, tuple[Command, ...]] | None:
    """Replay a log and return the first exchange that `scheduler` answers otherwise, or None.

    Returns
    -------
    tuple of (index, exchange, commands)
        The exchange as recorded and what was answered instead.
    """
    for index, exchange in enumerate(log):
        answer = tuple(scheduler.handle(exchange.event))
        if answer != exchange.commands:
            return index, exchange, answer
    return None


def _object(value: Event | Command) -> dict[str, object]:
    content: dict[str, object] = {"kind": type(value).__name__}
    for spec in fields(value):
        item = getattr(value, spec.name)
        content[spec.name] = _hexadecimal(spec.name, item) if spec.name in _MASKS else item
    return content


def _hexadecimal(name: str, item: Any) -> Any:  # noqa: ANN401
    if isinstance(item, tuple):
        if name == "arrivals":
            return [[layer, hex(mask)] for layer, mask in item]
        return [_hexadecimal(name, part) for part in item]
    return hex(item)


def _value(content: Mapping[str, Any]) -> object:
    values = {name: _plain(item) for name, item in content.items() if name != "kind"}
    if "band" in values:
        values["band"] = Band(values["band"])
    return _KINDS[content["kind"]](**values)


def _plain(item: Any) -> Any:  # noqa: ANN401
    if isinstance(item, list):
        return tuple(_plain(part) for part in item)
    return int(item, 16) if isinstance(item, str) else item


def _header(content: Mapping[str, Any]) -> dict[str, Any]:
    if content["format"] != FORMAT or content["version"] != VERSION:
        raise ValueError(f"not a {FORMAT} of version {VERSION}")
    return {key: value for key, value in content.items() if key not in ("format", "version")}
