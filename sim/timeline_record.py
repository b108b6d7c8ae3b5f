"""One record of a timeline, and one line of a timeline file: what a line may say, checked as it is read.

Here: `Record`, the bounds of the file format (`docs/formats.md`), both directions between a record and its
JSON object. Not here: the list of records and the whole file, which come next in `hideaway.sim.timeline`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from hideaway.sim.errors import InputError
from hideaway.sim.files import json_value

FORMAT = "hideaway-timeline"
VERSION = 1
TRACKS = ("compute", "link", "issue", "sequence", "counter")
BANDS = (-1, 0, 1, 2)

# Bounds of what a file may hold. Times stay below 2**63 nanoseconds with room to spare, integers fit 64 bits,
# counters are exact as floats, and the mask is an order of magnitude wider than any published expert layer.
MAX_SECONDS = 1e9
MAX_INTEGER = 2**62
MAX_VALUE = 2.0**53
MAX_EXPERTS = 2**14


class Record(NamedTuple):
    """One piece of work on one track, or one sample of a counter.

    Attributes
    ----------
    start_seconds, end_seconds : float
        From the start of the run; equal for a counter sample.
    track : str
        "compute", "link", "issue", "sequence" or "counter".
    kind : str
        Compute and link: "draft", "route", "attention", "router", "sync", "experts", "wait", "prefill",
        "head", "copy". Issue: "issue". Sequence: "waiting", "prefill", "draft", "verify", "decode". Counter:
        "slots_used", "queue_depth".
    step : int
        Number of the forward, −1 where there is none.
    seq_ids : tuple[int, ...]
        Sequences served.
    layer : int
        MoE layer, −1 where there is none.
    experts : int
        Bitmask of the experts computed or moved; 0 for none.
    bytes : int
        Bytes moved.
    band : int
        0 on-demand, 1 route-ahead, 2 background, −1 none.
    value : float
        The sample of a counter; of an "experts" record the number of its experts that were resident when it
        began, where the engine knows; 0 elsewhere.
    """

    start_seconds: float
    end_seconds: float
    track: str
    kind: str
    step: int = -1
    seq_ids: tuple[int, ...] = ()
    layer: int = -1
    experts: int = 0
    bytes: int = 0
    band: int = -1
    value: float = 0.0


_FIELDS = Record._fields
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")


def record_object(record: Record) -> dict[str, object]:
    """Return the JSON object of a record: experts as hex; `value` only where it says something."""
    values = record._asdict()
    values["experts"] = hex(record.experts)
    if record.track != "counter" and record.value == 0:
        del values["value"]
    return values


def line_object(line: str, place: str) -> dict[str, Any]:
    """Return the JSON object on a line; `place` (file and line number) opens every sentence of an error."""
    try:
        value = json_value(line, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place} is not JSON ({error}); repair or remove that line") from error
    if not isinstance(value, dict):
        raise InputError(f"{place} is not a JSON object; every line must be one object in braces")
    return value


def header_facts(value: dict[str, Any], place: str) -> dict[str, Any]:
    """Return a header without its format and version, which must be this program's."""
    if value.get("format") != FORMAT:
        raise InputError(f"{place} is not a timeline header; it must be an object whose format is {FORMAT!r}")
    version = value.get("version")
    if version != VERSION or isinstance(version, bool):
        raise InputError(f"{place} has version {_short(version)}; this program reads version {VERSION}")
    return {key: item for key, item in value.items() if key not in ("format", "version")}


def record_from(value: dict[str, Any], place: str) -> Record:
    """Return the record that a JSON object describes; a wrong, missing or unknown key is an InputError."""
    for key in value:
        if key not in _FIELDS:
            raise InputError(f"{place} has the unknown key {_short(key)}; allowed are {', '.join(_FIELDS)}")
    for key in _FIELDS:
        if key not in value and (key != "value" or value["track"] == "counter"):
            raise InputError(f"{place} lacks the key {key!r}; add it")
    start, end = (
        _number(value[key], 0.0, MAX_SECONDS, key, place) for key in ("start_seconds", "end_seconds")
    )
    if end < start:
        raise InputError(
            f"{place} ends at {end} before it starts at {start}; end_seconds must not be smaller"
        )
    track, kind = value["track"], value["kind"]
    if track not in TRACKS:
        raise InputError(f"{place} has track {_short(track)}; allowed are {', '.join(TRACKS)}")
    if not isinstance(kind, str) or not kind:
        raise InputError(f"{place} has kind {_short(kind)}; it must be a non-empty string")
    if not isinstance(value["seq_ids"], list):
        raise InputError(
            f"{place} has seq_ids {_short(value['seq_ids'])}; it must be a list of integers from 0"
        )
    return Record(
        start,
        end,
        track,
        kind,
        _integer(value["step"], -1, MAX_INTEGER, "step", place),
        tuple(_integer(item, 0, MAX_INTEGER, "seq_ids", place) for item in value["seq_ids"]),
        _integer(value["layer"], -1, MAX_INTEGER, "layer", place),
        _mask(value["experts"], place),
        _integer(value["bytes"], 0, MAX_INTEGER, "bytes", place),
        _integer(value["band"], BANDS[0], BANDS[-1], "band", place),
        _number(value.get("value", 0.0), -MAX_VALUE, MAX_VALUE, "value", place),
    )


def _number(value: object, lowest: float, highest: float, key: str, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not lowest <= value <= highest:
        raise InputError(
            f"{place} has {key} {_short(value)}; it must be a number from {lowest:g} to {highest:g}"
        )
    return float(value)


def _integer(value: object, lowest: int, highest: int, key: str, place: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
        raise InputError(
            f"{place} has {key} {_short(value)}; it must be an integer from {lowest} to {highest}"
        )
    return value


def _mask(value: object, place: str) -> int:
    digits = value[2:] if isinstance(value, str) and value.startswith("0x") else ""
    if not digits or len(digits) * 4 > MAX_EXPERTS or not _HEX_DIGITS.issuperset(digits):
        raise InputError(
            f"{place} has experts {_short(value)}; "
            f"it must be a hex mask such as '0x1f' of at most {MAX_EXPERTS} experts"
        )
    return int(digits, 16)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
