"""One observation row: how it is made, what a row read from a file must hold, and what identifies it.

A row is a plain mapping: the identity keys, then either the required metrics or a `status`, then any further
keys (`cost_terms`, `warnings`, more numbers), which are kept as they are. Next:
`hideaway.sim.contract.observations` keeps rows in a file, `hideaway.sim.contract.matrix` judges them
together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from hideaway.sim.contract.metric_names import IDENTITY_KEYS, OFFLOADED_BASELINES, REQUIRED_METRICS
from hideaway.sim.errors import HideawayError, InputError
from hideaway.sim.number_checks import finite_number, plain_value, printable_text, shown, whole_number

Row = dict[str, Any]
ObservationKey = tuple[str, str, str, int, int, int]

_COUNTS = {"block_size": 1, "concurrency": 1, "repeat": 0}


def make_observation_row(
    *,
    model: str,
    draft: str,
    baseline: str,
    block_size: int,
    concurrency: int,
    repeat: int,
    metrics: Mapping[str, float],
    cost_terms: Mapping[str, Any] | None = None,
    status: str | None = None,
    warnings: Sequence[str] | None = None,
) -> Row:
    """Return one row: identity, then every required metric and any further ones, or the status alone.

    A row with a `status` carries no metrics. Numbers become plain int and float.

    Raises
    ------
    InputError
        An identity key is of the wrong kind, a required metric is missing (`missing metrics: …`) or is not a
        finite number >= 0, or a further metric uses a reserved key.
    """
    row: Row = {
        "model": model,
        "draft": draft,
        "baseline": baseline,
        "block_size": block_size,
        "concurrency": concurrency,
        "repeat": repeat,
    }
    row = {**row, **_checked_identity(row, "the new row")}
    if status is not None:
        row["status"] = _text("status", status, "the new row")
    else:
        row |= _checked_metrics(metrics)
    if cost_terms:
        row["cost_terms"] = plain_value("cost_terms", cost_terms)
    if isinstance(warnings, str):
        raise InputError(f"warnings is the text {shown(warnings)}; give a list of texts")
    if warnings:
        row["warnings"] = [_text("warnings", text, "the new row") for text in warnings]
    return row


def checked_row(row: object, where: str) -> Row:
    """Return a row that came from outside, plain and checked; metrics may be missing, never malformed.

    Raises
    ------
    InputError
        Naming `where` and the key that is missing or of the wrong kind.
    """
    if not isinstance(row, Mapping):
        raise InputError(
            f"{where} is {shown(row)} but must be an object with the keys {', '.join(IDENTITY_KEYS)}"
        )
    plain = cast(Row, plain_value(where, row))
    plain |= _checked_identity(plain, where)
    if plain.get("status") is not None:
        _text("status", plain["status"], where)
    for metric in REQUIRED_METRICS:
        if metric in plain:
            finite_number(f"{where}.{metric}", plain[metric])
    if not isinstance(plain.get("cost_terms", {}), dict):
        raise InputError(
            f"{where}.cost_terms is {shown(plain['cost_terms'])} but must be an object; repair it"
        )
    return plain


def observation_key(row: Mapping[str, Any]) -> ObservationKey:
    """Return what identifies a checked row; no two rows of a file share it."""
    return (
        row["model"],
        row["draft"],
        row["baseline"],
        row["block_size"],
        row["concurrency"],
        row["repeat"],
    )


def require_offloaded(baseline: str, offloaded_expert_count: int) -> None:
    """Do nothing if the run may call itself offloaded.

    Raises
    ------
    HideawayError
        The baseline is B0, B1 or B2 and no expert is kept off the device.
    """
    if baseline in OFFLOADED_BASELINES and offloaded_expert_count <= 0:
        raise HideawayError(
            f"{baseline} is an offloaded baseline but {offloaded_expert_count} experts are offloaded; "
            "give it fewer expert slots, or report the run as B3"
        )


def _checked_identity(row: Mapping[str, Any], where: str) -> Row:
    for key in IDENTITY_KEYS:
        if key not in row:
            raise InputError(f"{where} has no {key!r}; a row has the keys {', '.join(IDENTITY_KEYS)}")
    identity: Row = {}
    for key in IDENTITY_KEYS:
        if key in _COUNTS:
            identity[key] = whole_number(f"{where}.{key}", row[key], minimum=_COUNTS[key])
        else:
            identity[key] = _text(key, row[key], where, may_be_empty=key == "draft")
    return identity


def _checked_metrics(metrics: Mapping[str, float]) -> Row:
    if not isinstance(metrics, Mapping):
        raise InputError(f"metrics is {shown(metrics)} but must map names to numbers; give a mapping")
    missing = [name for name in REQUIRED_METRICS if name not in metrics]
    if missing:
        raise InputError(f"missing metrics: {', '.join(missing)}; give every required metric, or a status")
    checked: Row = {}
    for name in REQUIRED_METRICS:
        finite_number(name, metrics[name])
        checked[name] = plain_value(name, metrics[name])
    reserved = {*IDENTITY_KEYS, "status", "cost_terms", "warnings"}
    for name, value in metrics.items():
        if name in reserved:
            raise InputError(f"metrics holds {name!r}, which is a key of the row itself; rename the metric")
        if name not in checked:
            checked[name] = plain_value(name, value)
    return checked


def _text(key: str, value: object, where: str, *, may_be_empty: bool = False) -> str:
    text = printable_text(f"{where}.{key}", value)
    if not text and not may_be_empty:
        raise InputError(f"{where}.{key} is empty; give a non-empty text")
    return text
