"""The picture of route-ahead's truth: recall and precision over layer distance, every predictor, with chance.

Upper panels count rows, lower panels the block's unions. Guesses made before verify are dashed: their distance to
layer l is l + 1. Bars are 95 % intervals over texts.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING

from hideaway.report.style import (
    BLACK,
    BLUE,
    BROWN,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY_BLUE,
    VERMILLION,
    drawing,
    new_figure,
    picture_kind,
    save_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hideaway.hw.route_recall.measure import RouteRecall
    from hideaway.hw.route_recall.scores import Curve, Estimate, Score

_LOOKS = {
    "stale-gate": (VERMILLION, "o"),
    "late-gate": (PURPLE, "D"),
    "co-occurrence": (BLUE, "s"),
    "embedding-gate": (ORANGE, "^"),
    "fitted-tokens": (GREEN, "v"),
    "drafter-features": (BLACK, "P"),
    "previous-token": (SKY_BLUE, "<"),
    "previous-rows": (BROWN, ">"),
    "popularity": (GREY, "x"),
}
_TITLE_LETTERS = 130
_Pick = Callable[["Score"], "tuple[Estimate | None, float]"]
_PANELS: tuple[tuple[str, _Pick], ...] = (
    ("recall", lambda score: (score.recall, score.recall_by_chance)),
    ("precision", lambda score: (score.precision, score.precision_by_chance)),
)


def route_recall_plot(found: RouteRecall, path: str | os.PathLike[str], *, title: str) -> None:
    """Draw the curves of every predictor to a .png or .svg file.

    Raises
    ------
    InputError
        The ending is neither .png nor .svg, or the folder cannot be written.
    """
    picture_kind(path)
    shown = [curve for curve in found.curves if curve.predictor in _LOOKS]
    with drawing():
        figure = new_figure(10.5, 7.0)
        figure.suptitle(textwrap.fill(title, _TITLE_LETTERS), x=0.01, ha="left", fontsize=9, parse_math=False)
        panels = figure.subplots(2, 2, sharex=True, sharey=True)
        for line, what in enumerate(("of one row", "of the block's union")):
            for axes, (name, pick) in zip(panels[line], _PANELS, strict=True):
                axes.set_title(f"{name} {what}")
                for curve in shown:
                    _draw(axes, curve, curve.unions if line else curve.rows, pick)
        for axes in panels[1]:
            axes.set_xlabel("layers ahead")
            axes.xaxis.get_major_locator().set_params(integer=True)
        panels[0][0].set_ylim(0, 1.02)
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside right upper", title="dotted: chance\ndashed: before verify"
        )
        save_figure(figure, path)


def _draw(axes: Axes, curve: Curve, scores: tuple[Score, ...], pick: _Pick) -> None:
    colour, marker = _LOOKS[curve.predictor]
    points = [(distance, *pick(score)) for distance, score in zip(curve.distances, scores, strict=True)]
    known = [(distance, estimate) for distance, estimate, _ in points if estimate is not None]
    if known:
        axes.errorbar(
            [distance for distance, _ in known],
            [estimate.value for _, estimate in known],
            yerr=[
                [max(0.0, estimate.value - estimate.low) for _, estimate in known],
                [max(0.0, estimate.high - estimate.value) for _, estimate in known],
            ],
            label=curve.predictor,
            color=colour,
            marker=marker,
            markersize=4,
            linestyle="--" if curve.before_verify else "-",
            linewidth=1.2,
            elinewidth=0.8,
        )
    axes.plot(
        [distance for distance, _, _ in points],
        [chance for _, _, chance in points],
        color=colour,
        linestyle=":",
        linewidth=0.8,
    )
