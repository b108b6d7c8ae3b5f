"""The panel of both sides: fetch and window over block sizes with the verdicts below, or over saturation.

The frontier panel is `hideaway.report.hide_frontier`; both are put together in `hideaway.report.hide_plots`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np

from hideaway.report.hide_frontier import EXPOSED_COLOUR, HIDDEN_COLOUR, PALE
from hideaway.report.style import BLACK, BLUE, GREY, PURPLE
from hideaway.sim.hide import evaluate_nominal
from hideaway.sim.hide.checks import FloatArray
from hideaway.sim.units import MILLISECOND

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GRID = 201


class Curve(Protocol):
    """Both sides at each candidate; see `hideaway.subcommands.hide_curves.VerdictCurve`."""

    @property
    def candidates(self) -> tuple[int, ...]:
        """Block sizes (N,)."""
        ...

    @property
    def fetch_seconds(self) -> FloatArray:
        """Nominal fetch (N,)."""
        ...

    @property
    def hide_window_seconds(self) -> FloatArray:
        """Window (N,)."""
        ...

    @property
    def union_fetch_seconds(self) -> FloatArray | None:
        """Fetch with the full costs of the union's transfers (N,), or None."""
        ...


def draw_blocks(axes: Axes, blocks: Curve, block_size: int | None) -> None:
    """Draw both sides of the inequality over block sizes."""
    sizes = np.array(blocks.candidates)
    axes.plot(
        sizes, blocks.hide_window_seconds / MILLISECOND, color=BLACK, linewidth=2.2, label="hide window"
    )
    axes.plot(
        sizes,
        blocks.fetch_seconds / MILLISECOND,
        color=BLUE,
        marker="o",
        markersize=3,
        label="fetch, nominal",
    )
    if blocks.union_fetch_seconds is not None:
        union = blocks.union_fetch_seconds / MILLISECOND
        axes.plot(
            sizes,
            union,
            color=PURPLE,
            marker="s",
            markersize=3,
            linestyle="--",
            label="fetch, union with full costs",
        )
    if block_size is not None:
        axes.axvline(block_size, color=GREY, linestyle=":", linewidth=1.2)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("milliseconds per round")
    axes.set_title("both sides over block size", loc="left")
    axes.tick_params(labelbottom=False)
    axes.legend(loc="best")


def draw_verdicts(axes: Axes, blocks: Curve, block_size: int | None) -> None:
    """Draw one strip of cells a form: hidden or not at each block size."""
    strips = [("nominal", blocks.fetch_seconds)]
    if blocks.union_fetch_seconds is not None:
        strips.append(("union", blocks.union_fetch_seconds))
    sizes = np.array(blocks.candidates, dtype=np.float64)
    for height, (_, fetch) in enumerate(strips):
        hidden = fetch <= blocks.hide_window_seconds
        for fits, colour, hatch in ((hidden, HIDDEN_COLOUR, ""), (~hidden, EXPOSED_COLOUR, "////")):
            axes.bar(
                sizes[fits],
                0.8,
                width=1.0,
                bottom=height - 0.4,
                color=colour,
                alpha=PALE + 0.25,
                hatch=hatch,
                edgecolor="white",
                linewidth=0.4,
            )
    if block_size is not None:
        axes.axvline(block_size, color=GREY, linestyle=":", linewidth=1.2)
    axes.set_yticks(range(len(strips)), [name for name, _ in strips])
    axes.set_ylim(len(strips) - 0.5, -0.5)
    axes.set_xlim(sizes[0] - 0.6, sizes[-1] + 0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False)
    marked = "" if block_size is None else f"; dotted: B = {block_size}"
    axes.set_xlabel(f"block size B, rows verified per round{marked}")


def draw_saturations(axes: Axes, nominal: Mapping[str, float]) -> None:
    """Draw both sides over saturation, for terms that do not say how it follows from a block size."""
    saturations = np.linspace(0.0, 1.0, _GRID)
    form = evaluate_nominal(**(dict(nominal) | {"saturation": saturations}))
    fetch = form.fetch_seconds / MILLISECOND
    window = float(np.max(form.hide_window_seconds)) / MILLISECOND
    top = 1.08 * max(float(fetch[-1]), window) or 1.0
    edge = min(1.0, window / float(fetch[-1])) if fetch[-1] > 0 else 1.0
    axes.axvspan(0.0, edge, facecolor=HIDDEN_COLOUR, alpha=PALE, linewidth=0)
    axes.axvspan(edge, 1.0, facecolor=EXPOSED_COLOUR, alpha=PALE, linewidth=0, hatch="//", edgecolor="white")
    axes.plot(saturations, fetch, color=BLUE, linewidth=2, label="fetch, nominal")
    axes.axhline(window, color=BLACK, linewidth=2.2, label="hide window")
    axes.axvline(
        nominal["saturation"], color=BLACK, linestyle=":", linewidth=1.6, label="here", clip_on=False
    )
    axes.set_xlim(0, 1)
    axes.set_ylim(0, top)
    axes.set_xlabel("saturation s (give --num-experts and --top-k for block sizes)")
    axes.set_ylabel("milliseconds per round")
    axes.set_title("both sides over saturation", loc="left")
    axes.grid(visible=False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=3)
