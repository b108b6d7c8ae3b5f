"""Pictures of a calibration: measured and fitted points of each curve with residuals, and the level over the run."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from hideaway.report.style import BLUE, GREY, VERMILLION, drawing, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hideaway.calibrate.drift import Drift
    from hideaway.calibrate.family import FamilyFit
    from hideaway.calibrate.work import Datum

_FEATURE_LABELS: Mapping[str, str] = {
    "bytes": "bytes",
    "rows": "rows",
    "transfers": "transfers asked for",
    "pair": "pair of measurements",
}
_PREFERRED = ("rows", "transfers", "bytes", "pair")
_MOST_DRAWN = 4000


def curve_svg(fit: FamilyFit, curve: str) -> str:
    """Return a curve as SVG: seconds with the quartiles of the samples, and below them the residuals of the fit."""
    places = [place for place, datum in enumerate(fit.family.data) if datum.curve == curve]
    data = [fit.family.data[place] for place in places]
    fitted = fit.predicted[places]
    feature = _feature(data)
    x = np.array([datum.features[feature] for datum in data])
    with _drawing():
        figure = new_figure(6.2, 4.2)
        figure.set_layout_engine(None)
        figure.subplots_adjust(left=0.13, right=0.98, top=0.98, bottom=0.12, hspace=0.1)
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
        _draw_times(upper, data, x, fitted)
        _draw_residuals(lower, data, x, fitted)
        lower.set_xlabel(_FEATURE_LABELS[feature])
        if x.min() > 0 and x.max() > 4 * x.min():
            lower.set_xscale("log", base=2)
        return _svg(figure)


def drift_svg(drift: Drift) -> str:
    """Return the level over the run as SVG, slow spells shaded."""
    with _drawing():
        figure = new_figure(8.0, 2.8)
        figure.set_layout_engine(None)
        figure.subplots_adjust(left=0.08, right=0.99, top=0.97, bottom=0.18)
        axes = figure.subplots()
        step = max(1, len(drift.seconds) // _MOST_DRAWN)
        axes.plot(drift.seconds[::step], drift.level[::step], ".", color=GREY, markersize=2, rasterized=True)
        for spell in drift.spells:
            axes.axvspan(spell.from_seconds, spell.to_seconds, color=VERMILLION, alpha=0.2, linewidth=0)
        begin, end = drift.seconds[0], drift.seconds[-1]
        half = drift.change / 2
        axes.plot([begin, end], [1 - half, 1 + half], color=BLUE)
        axes.set_ylim(0.5, max(2.0, float(np.quantile(drift.level, 0.99))))
        axes.set_xlabel("seconds since the measurement began")
        axes.set_ylabel("time / median of its point")
        return _svg(figure)


@contextmanager
def _drawing() -> Iterator[None]:
    """Draw with letters left to the reader's own fonts: a page of many pictures stays small."""
    import matplotlib

    with drawing(), matplotlib.rc_context({"svg.fonttype": "none"}):
        yield


def _feature(data: Sequence[Datum]) -> str:
    """Return the feature with the most values, rows before bytes."""
    shared = [name for name in _PREFERRED if all(name in datum.features for datum in data)]
    return max(
        shared, key=lambda name: (len({datum.features[name] for datum in data}), -_PREFERRED.index(name))
    )


def _draw_times(axes: Axes, data: Sequence[Datum], x: np.ndarray, fitted: np.ndarray) -> None:
    observed = np.array([datum.observed for datum in data])
    scale = observed / np.array([np.median(datum.samples) for datum in data])
    low, high = (
        np.array([np.quantile(datum.samples, share) for datum in data]) * scale for share in (0.25, 0.75)
    )
    bars = np.maximum(np.array([observed - low, high - observed]), 0.0)
    axes.errorbar(x, observed, bars, fmt="o", color=BLUE, markersize=4, label="measured: median, quartiles")
    axes.plot(x, fitted, "x", color=VERMILLION, markersize=7, label="fitted")
    if observed.min() > 0 and observed.max() > 4 * observed.min():
        axes.set_yscale("log")
    axes.set_ylabel("ratio" if data[0].reference else "seconds")
    axes.legend()


def _draw_residuals(axes: Axes, data: Sequence[Datum], x: np.ndarray, fitted: np.ndarray) -> None:
    observed = np.array([datum.observed for datum in data])
    axes.axhline(0.0, color=GREY, linewidth=0.8)
    axes.plot(x, 100 * (fitted / observed - 1.0), "o", color=VERMILLION, markersize=4)
    axes.set_ylabel("fitted - measured, %")


def _svg(figure: Figure) -> str:
    """Return the picture as an `<svg>` element, without the XML header and without anything that changes."""
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None}, dpi=150)
    text = stream.getvalue()
    return text[text.index("<svg") :]
