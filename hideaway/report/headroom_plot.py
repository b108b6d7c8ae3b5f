"""The picture of headroom: what removing each limit gains, in tokens per second and in tail latency.

Bars stand in order of worth with their 95 % intervals; the bound, every expert resident, is the last and hatched.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hideaway.campaigns.headroom import Gain, Headroom
from hideaway.campaigns.paired import Estimate
from hideaway.report.headroom_table import spelled
from hideaway.report.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    VERMILLION,
    drawing,
    new_figure,
    picture_kind,
    save_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_Panel = tuple[str, Callable[[Gain], Estimate]]
_TOKENS: _Panel = ("output tokens per second gained", lambda gain: gain.tokens_per_second)
_TPOT: _Panel = ("time per output token saved (ms)", lambda gain: gain.tpot_seconds.scaled(1e3))
_LATENCIES: tuple[_Panel, ...] = (
    ("round latency p99 saved (ms)", lambda gain: gain.round_p99_seconds.scaled(1e3)),
    ("TTFT p99 saved (ms)", lambda gain: gain.ttft_p99_seconds.scaled(1e3)),
)
_WIDTH_INCHES = 12.0
_CAPTION_LETTERS = 150


def headroom_plot(headroom: Headroom, path: str | os.PathLike[str]) -> None:
    """Draw the gains of `headroom` to a .png or .svg file.

    Raises
    ------
    InputError
        The ending is neither .png nor .svg, or the folder cannot be written.
    """
    picture_kind(path)
    gains = [*headroom.gains, headroom.bound]
    with drawing():
        figure = new_figure(_WIDTH_INCHES, 1.6 + 0.38 * len(gains))
        shown = (_TOKENS if headroom.closed else _TPOT, *_LATENCIES)
        panels = figure.subplots(1, len(shown), sharey=True)
        for axes, (label, pick) in zip(panels, shown, strict=True):
            _draw(axes, [pick(gain) for gain in gains])
            axes.set_xlabel(label)
        panels[0].set_yticks(range(len(gains)), [gain.limit.name for gain in gains])
        panels[0].invert_yaxis()
        setup = headroom.setup
        scenario = setup.scenario
        load = f"{scenario.closed_loop} users" if scenario.closed_loop else "open loop"
        figure.suptitle(
            f"{setup.inputs.model.name} on {scenario.profile}, {scenario.baseline}, {load}\n"
            "gain of removing one limit, all others in place",
            x=0.01,
            ha="left",
            fontsize=11,
            parse_math=False,
        )
        figure.supxlabel(_caption(headroom), fontsize=8)
        save_figure(figure, path)


def _draw(axes: Axes, values: Sequence[Estimate]) -> None:
    """Draw one bar a gain; the text at its end repeats it, since the largest bar dwarfs the others."""
    for place, value in enumerate(values):
        bound = place == len(values) - 1
        axes.barh(
            place,
            value.mean,
            height=0.62,
            color=BLUE if bound else _colour(value),
            hatch="////" if bound else None,
            edgecolor="white" if bound else "none",
            linewidth=0,
        )
        axes.errorbar(
            value.mean,
            place,
            xerr=value.half_width,
            color=BLACK,
            elinewidth=1.0,
            capsize=2.5,
        )
        axes.annotate(
            spelled(value),
            (max(value.high, 0.0), place),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
        )
    axes.xaxis.set_major_formatter("{x:,.6g}")
    axes.axvline(0.0, color=BLACK, linewidth=0.8)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    low, high = axes.get_xlim()
    axes.set_xlim(low, high + 0.55 * (high - low))


def _colour(value: Estimate) -> str:
    if not value.clear:
        return GREY
    return GREEN if value.mean > 0 else VERMILLION


def _caption(headroom: Headroom) -> str:
    text = (
        f"bars: mean of {len(headroom.seeds)} paired replications, lines: 95 % interval. "
        "Green: gain, vermillion: loss, grey: not clear of zero, hatched: the upper bound."
    )
    if headroom.absent:
        text += f" Not drawn, nothing to remove: {', '.join(limit.name for limit in headroom.absent)}."
    return textwrap.fill(text, _CAPTION_LETTERS)
