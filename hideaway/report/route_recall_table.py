"""Tables of how well experts can be guessed ahead: scores by distance and row, waste, timeliness, rejected rows.

Next: the picture, `hideaway.report.route_recall_plot`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hideaway.sim.units import MICROSECOND

if TYPE_CHECKING:
    from hideaway.hw.route_recall.measure import RouteRecall
    from hideaway.hw.route_recall.scores import Curve, Estimate, Score

Row = tuple[object, ...]

SCORE_COLUMNS = (
    "predictor", "made", "recall, row", "by chance", "precision, row", "recall, union", "by chance",
    "precision, union",
)  # fmt: skip
REPLAY_COLUMNS = (
    "predictor", "made", "coverage", "timely coverage", "hit rate", "waiting/round (µs)", "moved/round",
    "in vain/round",
)  # fmt: skip
KIB = 1024
MOST_LAYERS_SHOWN = 12
"""A table with more columns is not read; `--json` has them all."""


def score_rows(found: RouteRecall) -> list[Row]:
    """Return the scores of every predictor but the exact one, all distances together first."""
    rows: list[Row] = []
    for curve in _guessing(found):
        if curve.before_verify:
            rows.append(_score_row(curve, "before verify, all layers", curve.every_row, curve.every_union))
        for distance, row, union in zip(curve.distances, curve.rows, curve.unions, strict=True):
            made = f"of layer {distance - 1}" if curve.before_verify else _ahead(distance)
            rows.append(_score_row(curve, made, row, union))
    return rows


def by_row_columns(found: RouteRecall) -> Row:
    """Return the columns of `by_row_rows`."""
    return ("predictor", "made", *(f"row {row}" for row in range(found.block_size)))


def by_row_rows(found: RouteRecall) -> list[Row]:
    """Return the recall of each row of the block, of guesses made before verify or one layer ahead."""
    return [
        (curve.predictor, _first_made(curve), *(_value(score.recall) for score in curve.by_row[0]))
        for curve in _guessing(found)
    ]


def by_layer_columns(found: RouteRecall) -> Row:
    """Return the columns of `by_layer_rows`."""
    return ("predictor", "made", *(f"layer {layer}" for layer in range(found.num_layers)))


def by_layer_rows(found: RouteRecall) -> list[Row]:
    """Return the recall of one row by layer: what distance costs is told by one column, not by two."""
    rows: list[Row] = []
    for curve in _guessing(found):
        distances = (0,) if curve.before_verify else curve.distances
        for distance, scores in zip(distances, curve.by_layer, strict=True):
            made = _made(curve.predictor, distance)
            rows.append((curve.predictor, made, *(_value(score.recall) for score in scores)))
    return rows


def waste_columns(found: RouteRecall) -> Row:
    """Return the columns of `waste_rows`."""
    positions = [f"row {row} ({found.rejections[row]})" for row in range(1, found.block_size)]
    return ("predictor", "made", "coverage", "in vain", "KiB/round", *positions)


def waste_rows(found: RouteRecall) -> list[Row]:
    """Return coverage and waste, in KiB; by position what was moved for a rejected row alone."""
    rows: list[Row] = []
    for waste in found.waste:
        positions = ["-" if one is None else f"{one.value / KIB:.0f}" for one in waste.wasted_by_position[1:]]
        shares = f"{waste.coverage:.3f}", f"{waste.waste_ratio:.3f}"
        made = _made(waste.predictor, waste.distance)
        rows.append((waste.predictor, made, *shares, f"{waste.wasted_bytes / KIB:.0f}", *positions))
    return rows


def replay_rows(found: RouteRecall) -> list[Row]:
    """Return what came in time, of every predictor, under `REPLAY_COLUMNS`."""
    return [
        (
            one.predictor,
            _made(one.predictor, one.distance),
            f"{one.coverage:.3f}",
            f"{one.timely_coverage:.3f}",
            f"{one.hit_rate:.3f}",
            f"{one.waiting_seconds / MICROSECOND:.1f}",
            f"{one.moved_experts:.2f}",
            f"{one.wasted_experts:.2f}",
        )
        for one in found.replay
    ]


def rejected_columns(found: RouteRecall) -> Row:
    """Return the columns of `rejected_rows`."""
    offsets = [_ordinal(offset) for offset in range(1, found.block_size)]
    return ("rows", "all", *offsets, "experts a visit", "over recorded")


def rejected_rows(found: RouteRecall) -> list[Row]:
    """Return the share of the true rows' experts that rejected rows and their stand-ins chose, by place."""
    rejected = found.rejected
    rows: list[Row] = []
    for name, union in rejected.union.items():
        if name in rejected.overlap:
            places = [_value(one) for one in rejected.by_offset[name]]
            overlap = _interval(rejected.overlap[name])
        else:
            places = ["1"] * (found.block_size - 1)
            overlap = "1"
        rows.append((name, overlap, *places, _value(union), _interval(rejected.excess.get(name))))
    return rows


def findings(found: RouteRecall) -> list[str]:
    """Return what the figures say of route-ahead, in sentences."""
    guessing = list(_guessing(found))
    sentences = [
        f"{found.rounds} rounds of {found.sequences} texts, {found.block_size} rows each; {_interval(found.mean_kept)} "
        f"kept a round; a layer visit reads {_interval(found.union)} of {found.num_experts} experts."
    ]
    before = [curve for curve in guessing if curve.before_verify]
    best = max(before, key=lambda curve: curve.every_row.recall.value if curve.every_row.recall else 0.0)
    sentences.append(
        f"Before verify the best guess is {best.predictor}: it names {_interval(best.every_row.recall)} of a row's "
        f"experts (chance {best.every_row.recall_by_chance:.3f}) and {_interval(best.every_union.recall)} of the "
        f"block's, and {_interval(best.every_union.precision)} of what it names for the block is read."
    )
    for curve in guessing:
        if curve.predictor == "stale-gate" and curve.rows:
            sentences.append(
                f"One layer ahead the stale gate names {_interval(curve.rows[0].recall)} of a row's experts and "
                f"{_interval(curve.unions[0].recall)} of the block's."
            )
    sentences.append(_rejected_finding(found))
    return sentences


def _rejected_finding(found: RouteRecall) -> str:
    rejected = found.rejected
    if rejected.rounds == 0:
        return (
            "No round had a rejection whose true continuation is known, so nothing is said of rejected rows."
        )
    excesses = ", ".join(
        f"{_interval(one)} ({name})" for name, one in rejected.excess.items() if one is not None
    )
    return (
        f"Rejected rows choose {_interval(rejected.overlap['recorded'])} of the experts of the rows that truly come "
        f"(same-sequence stand-ins {_interval(rejected.overlap['same-sequence'])}, chance {rejected.by_chance:.3f}); "
        f"their blocks read {_value(rejected.union['recorded'])} experts a visit, and with stand-ins for them so many "
        f"more: {excesses}."
    )


def _guessing(found: RouteRecall) -> Sequence[Curve]:
    return [curve for curve in found.curves if curve.predictor != "exact"]


def _score_row(curve: Curve, made: str, row: Score, union: Score) -> Row:
    return (
        curve.predictor,
        made,
        _interval(row.recall),
        f"{row.recall_by_chance:.3f}",
        _interval(row.precision),
        _interval(union.recall),
        f"{union.recall_by_chance:.3f}",
        _interval(union.precision),
    )


def _ahead(distance: int) -> str:
    return f"{distance} layer{'s' if distance > 1 else ''} ahead"


def _made(predictor: str, distance: int) -> str:
    if predictor in ("exact", "no guess"):
        return "-" if predictor == "no guess" else "before verify"
    return _ahead(distance) if distance else "before verify"


def _first_made(curve: Curve) -> str:
    return "before verify" if curve.before_verify else _ahead(1)


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number % 100 not in (11, 12, 13) else 0, "th")
    return f"{number}{ending}"


def _value(estimate: Estimate | None) -> str:
    return "-" if estimate is None else f"{estimate.value:.3f}"


def _interval(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"
