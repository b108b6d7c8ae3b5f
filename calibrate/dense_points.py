"""Series of dense work as points: what each reads, computes and launches; of attention, what the context alone costs.

Next: `dense_checks.py`, points that are made of these parts and not fitted.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hideaway.calibrate.series import number, point
from hideaway.calibrate.work import Datum, Roofline, Work
from hideaway.sim.costs import BF16_BYTES, FLOPS_PER_WEIGHT
from hideaway.sim.inputs.measurements import AxisValue, Measurement, MeasurementFile
from hideaway.sim.inputs.profiles import ATTENTION_FLOPS, CACHE_READ, DENSE_READ

ATTENTION, ROUTER, HEAD, DRAFT = "attention", "router", "head", "draft"
SUM, BEGIN, BETWEEN_LAYERS = "sum of experts", "grouping of rows", "between layers"
FLOPS, ROUTER_LAUNCH, DRAFT_LAUNCH = (
    "compute.flops_per_second",
    "router.launch_seconds",
    "draft.launch_seconds",
)
LAUNCH = "attention.launch"
CONTEXT = "context"
TYPICAL_ROWS = 8.0
"""Rows at which costs that grow with rows, but have no such term in the cost model, are taken: one drafted block."""
_DTYPE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
_EXACT = 1e-6


def dense_points(file: MeasurementFile, *, apart: bool) -> tuple[Datum, ...]:
    """Return the points of all dense work.

    Parameters
    ----------
    apart : bool
        Attention pays for its context at rates of its own.
    """
    return tuple(_points(file, apart))


def attention_parts(file: MeasurementFile, series: Measurement) -> dict[str, float]:
    """Return rows, bytes and operations of attention (or of a whole dense visit), and those of its context alone.

    Bytes are weights + caches and operations rows · (weights + tokens), so that two or more points of a kind of layer
    tell what a token costs; where a window hides that, the context's part is 0.
    """
    size, flops = amounts(series, stored_share(file))
    rows, tokens = rows_of(series), _tokens(series)
    cache, attention = _per_token(file, series.axes.get("layer_kind"))
    sequences = number(series, "sequences", 1.0)
    return {
        "rows": rows,
        "bytes": size,
        "flops": flops,
        "parts": 1.0,
        "context_bytes": sequences * tokens * cache,
        "context_flops": rows * tokens * attention,
    }


def attention_work(parts: dict[str, float], *, apart: bool, less: tuple[float, float] = (0.0, 0.0)) -> Work:
    """Return what attention pays for, without `less` bytes and operations that are another's."""
    size, flops = parts["bytes"] - less[0], parts["flops"] - less[1]
    if not apart:
        return Work({LAUNCH: 1.0}, (roof(size, flops),))
    cache, attention = parts["context_bytes"], parts["context_flops"]
    linear = {LAUNCH: 1.0, CACHE_READ: cache, ATTENTION_FLOPS: attention}
    return Work(linear, (roof(size - cache, flops - attention),))


def roof(num_bytes: float, flops: float) -> Roofline:
    """Return one reading and computing of dense work."""
    return Roofline(1.0, num_bytes, DENSE_READ, flops, FLOPS)


def rows_of(series: Measurement) -> float:
    """Return the rows of all sequences."""
    return number(series, "sequences", 1.0) * number(series, "rows_each", 1.0)


def amounts(series: Measurement, scale: float) -> tuple[float, float]:
    """Return bytes, as the cost model counts them, and operations."""
    return float(series.bytes or 0) * scale, float(series.flops or 0)


def stored_share(file: MeasurementFile) -> float:
    """Return the bytes of a weight as the cost model counts them over those that the engine reads."""
    return BF16_BYTES / _DTYPE_BYTES.get(str(file.environment.get("dense_dtype", "bfloat16")), BF16_BYTES)


def _tokens(series: Measurement) -> float:
    """Return the tokens that a block's rows attend to, its own included, the committed one counted once."""
    return number(series, "context_tokens") - 1.0 + number(series, "rows_each", 1.0)


def _per_token(file: MeasurementFile, kind: AxisValue | None) -> tuple[float, float]:
    """Return a token's bytes in the cache, and a row's operations for it, of a kind of layer; 0 if not told."""
    series = [each for each in file.series("attention") if each.axes.get("layer_kind") == kind]
    found = np.array([amounts(each, stored_share(file)) for each in series]).reshape(-1, 2)
    rows = np.array([rows_of(each) for each in series])
    tokens = np.array([_tokens(each) for each in series])
    sequences = np.array([number(each, "sequences", 1.0) for each in series])
    cache = _slope(np.ones_like(rows), sequences * tokens, found[:, 0])
    attention = _slope(rows, rows * tokens, found[:, 1])
    return cache, attention


def _slope(one: np.ndarray, other: np.ndarray, amount: np.ndarray) -> float:
    """Return b of amount = a · one + b · other where that holds exactly, else 0."""
    if len(amount) < 3:
        return 0.0
    design = np.column_stack([one, other])
    answer, _, rank, _ = np.linalg.lstsq(design, amount, rcond=None)
    exact = np.abs(design @ answer - amount).max() <= _EXACT * np.abs(amount).max()
    return float(answer[1]) if rank == 2 and exact and answer[1] > 0.0 else 0.0


def _points(file: MeasurementFile, apart: bool) -> Iterator[Datum]:
    scale = stored_share(file)
    for series in file.series("attention"):
        parts = attention_parts(file, series)
        yield point(ATTENTION, series, attention_work(parts, apart=apart), parts)
    for series in file.series("router"):
        size, flops = amounts(series, scale)
        count = number(series, "routers", 1.0)
        each = Roofline(count, size / count, DENSE_READ, flops / count, FLOPS)
        features = {"rows": number(series, "rows"), "bytes": size, "flops": flops, "parts": count}
        yield point(ROUTER, series, Work({ROUTER_LAUNCH: count}, (each,)), features)
    for series in file.series("head"):
        size, flops = amounts(series, scale)
        features = {"rows": number(series, "rows"), "bytes": size, "flops": flops, "parts": 0.0}
        yield point(HEAD, series, Work({}, (roof(size, flops),)), features)
    for series in file.series("draft"):
        yield _draft(series, scale)
    yield from _ends(file)


def _draft(series: Measurement, scale: float) -> Datum:
    """Return a draft forward: the drafter's own matrices, then the target's head."""
    size, flops = amounts(series, scale)
    rows = number(series, "sequences") * number(series, "block_size")
    weights = number(series, "drafter_parameters")
    body = weights * BF16_BYTES, FLOPS_PER_WEIGHT * weights * rows
    roofs = (roof(*body), roof(max(0.0, size - body[0]), max(0.0, flops - body[1])))
    features = {"rows": rows, "bytes": size, "flops": flops, "parts": 1.0}
    return point(DRAFT, series, Work({DRAFT_LAUNCH: 1.0}, roofs), features)


def _ends(file: MeasurementFile) -> Iterator[Datum]:
    for series in file.series("visit_ends", part="sum"):
        rows = number(series, "rows")
        yield point(SUM, series, Work({"sum.visit": 1.0, "sum.row": rows}), {"rows": rows})
    for series in file.series("visit_ends", part="begin"):
        rows, layers = number(series, "rows"), number(series, "layers", 1.0)
        work = Work({"begin.layer": layers, "begin.row": layers * rows})
        yield point(BEGIN, series, work, {"rows": rows})
    for series in file.series("scheduling", "between_layers"):
        features = {"rows": number(series, "concurrency") * number(series, "block_size")}
        yield point(BETWEEN_LAYERS, series, Work({"between.layers": 1.0}), features)
