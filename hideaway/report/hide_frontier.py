"""The frontier panel: where the nominal form says hidden over r and bandwidth, and the present point.

The other panel is `hideaway.report.hide_sides`; both are put together in `hideaway.report.hide_plots`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from hideaway.report.style import BLACK, GREY, ORANGE, SKY_BLUE
from hideaway.sim.hide import evaluate_nominal, smallest_bandwidth_bytes_per_second
from hideaway.sim.hide.checks import FloatArray
from hideaway.sim.units import GB, MILLISECOND

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HIDDEN_COLOUR, EXPOSED_COLOUR = SKY_BLUE, ORANGE
PALE = 0.45
_GRID = 201
_LEAST_SHARE = 0.15
"""Lines of equal slack are drawn on a side of the frontier that fills at least so much of the panel."""
_BANDWIDTH_SPAN = 4.0
"""The frontier is drawn from a quarter of the present bandwidth to four times it."""


def draw_frontier(axes: Axes, nominal: Mapping[str, float]) -> None:
    """Fill where the nominal form says hidden and where not, and mark the present point."""
    present = nominal["measured_h2d_bytes_per_second"]
    fractions = np.linspace(0.0, 1.0, _GRID)
    bandwidths = present * np.geomspace(1.0 / _BANDWIDTH_SPAN, _BANDWIDTH_SPAN, _GRID)
    terms = dict(nominal) | {
        "resident_fraction": fractions,
        "measured_h2d_bytes_per_second": bandwidths[:, None],
    }
    slack = evaluate_nominal(**terms).slack_seconds / MILLISECOND
    frontier = smallest_bandwidth_bytes_per_second(
        **{name: value for name, value in terms.items() if name != "measured_h2d_bytes_per_second"}
    )
    low, high = bandwidths[0] / GB, bandwidths[-1] / GB
    edge = np.clip(frontier / GB, low, high)
    axes.fill_between(fractions, edge, high, color=HIDDEN_COLOUR, alpha=PALE, linewidth=0)
    axes.fill_between(
        fractions, low, edge, facecolor=EXPOSED_COLOUR, alpha=PALE, linewidth=0, hatch="//", edgecolor="white"
    )
    axes.set_yscale("log")
    _label_levels(axes, fractions, bandwidths / GB, slack)
    inside = (frontier / GB >= low) & (frontier / GB <= high)
    axes.plot(fractions[inside], edge[inside], color=BLACK, linewidth=1.8)
    _mark_present(axes, nominal, present / GB)
    axes.set_ylim(low, high)
    axes.set_xlim(0.0, 1.0)
    _plain_log_ticks(axes, low, high)
    axes.set_xlabel("resident fraction r of the needed experts")
    axes.set_ylabel("host-to-device bandwidth BW, GB/s")
    axes.set_title("nominal frontier; lines: slack in ms", loc="left")
    axes.grid(visible=False)
    _legend_below(axes)


def _label_levels(axes: Axes, fractions: FloatArray, bandwidths: FloatArray, slack: FloatArray) -> None:
    """Draw a few lines of equal slack at round numbers of milliseconds, on each side that is wide enough."""
    from matplotlib.ticker import MaxNLocator

    lowest, highest = float(slack.min()), float(slack.max())
    levels = {
        float(level)
        for low, high in ((lowest, min(0.0, highest)), (max(0.0, lowest), highest))
        if low < high and np.mean((slack >= low) & (slack <= high)) > _LEAST_SHARE
        for level in MaxNLocator(6).tick_values(low, high)
    }
    inner = sorted(level for level in levels - {0.0} if lowest < level < highest)
    if inner:
        lines = axes.contour(
            fractions, bandwidths, slack, levels=inner, colors=GREY, linewidths=0.7, linestyles="solid"
        )
        axes.clabel(lines, fmt=lambda value: f"{value:+g}", fontsize=7, colors="#404040")


def _mark_present(axes: Axes, nominal: Mapping[str, float], bandwidth: float) -> None:
    form = evaluate_nominal(**nominal)
    fraction = nominal["resident_fraction"]
    verdict = "hidden" if form.hidden else "not hidden"
    axes.plot(
        [fraction],
        [bandwidth],
        marker="o",
        markersize=9,
        markerfacecolor="white",
        markeredgecolor=BLACK,
        markeredgewidth=2,
        linestyle="none",
        zorder=5,
        clip_on=False,
    )
    # Away from the frontier: towards more bandwidth where hidden, towards less where not.
    leftwards = fraction > 0.7 or (not form.hidden and fraction > 0.3)
    axes.annotate(
        f"here: {verdict}\nslack {float(form.slack_seconds) / MILLISECOND:+.3g} ms",
        (fraction, bandwidth),
        xytext=(-12 if leftwards else 12, 12 if form.hidden else -12),
        textcoords="offset points",
        ha="right" if leftwards else "left",
        va="bottom" if form.hidden else "top",
        fontsize=8,
        bbox={"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": "#BBBBBB", "alpha": 0.95},
        zorder=6,
    )


def _legend_below(axes: Axes) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Patch(facecolor=HIDDEN_COLOUR, alpha=PALE, label="hidden"),
        Patch(facecolor=EXPOSED_COLOUR, alpha=PALE, hatch="//", edgecolor="white", label="not hidden"),
        Line2D([], [], color=BLACK, linewidth=1.8, label="frontier"),
    ]
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=3)


def _plain_log_ticks(axes: Axes, low: float, high: float) -> None:
    """Label a short logarithmic axis at 1, 2, 5 times powers of ten, in plain numbers."""
    from matplotlib.ticker import NullLocator

    steps = [step * 10.0**power for power in range(-12, 16) for step in (1, 2, 3, 5, 7)]
    ticks = [tick for tick in steps if low <= tick <= high]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.yaxis.set_minor_locator(NullLocator())
