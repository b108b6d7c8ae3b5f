"""How pictures look: one palette, one way to make a figure and one way to save it.

Figures are made without `pyplot`, so that no window system is asked for and a notebook keeps its own backend;
settings of the user's machine are put aside while a picture is drawn: the same data give the same bytes.
Next: `hideaway.report.plots`.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hideaway.sim.errors import InputError
from hideaway.sim.files import write_bytes_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito, "Color Universal Design" (2008): eight colours told apart with every common colour vision.
BLACK = "#000000"
ORANGE = "#E69F00"
SKY_BLUE = "#56B4E9"
GREEN = "#009E73"
YELLOW = "#F0E442"
BLUE = "#0072B2"
VERMILLION = "#D55E00"
PURPLE = "#CC79A7"
GREY = "#7F7F7F"
PALE_GREY = "#D9D9D9"
# Three more for Gantt charts, where a row says what a bar is and colour only repeats it.
DARK_GREY = "#404040"
PALE_GREEN = "#8FD6BF"
BROWN = "#8C5A1A"

BASELINE_ORDER = ("B0", "B1", "B2", "OURS", "OURS-oracle", "B3", "B3-AR")


@dataclass(frozen=True, slots=True)
class LineStyle:
    """Looks of one baseline; marker and dash (lines) and hatch (bars) repeat what the colour says."""

    colour: str
    marker: str
    dash: Literal["-", "--", ":"]
    hatch: str | None = None


_BASELINE_STYLES = {
    "B0": LineStyle(BLACK, "o", "-"),
    "B1": LineStyle(ORANGE, "s", "-"),
    "B2": LineStyle(GREEN, "^", "-"),
    "OURS": LineStyle(VERMILLION, "D", "-"),
    "OURS-oracle": LineStyle(PURPLE, "D", "--", "////"),
    "B3": LineStyle(BLUE, "v", "-"),
    "B3-AR": LineStyle(SKY_BLUE, "v", "--", "////"),
}
_EXTRA_MARKERS = ("x", "+", "*", "P", "h", "<", ">")
_EXTRA_HATCHES = ("....", "xxxx", "----", "||||", "++++")

# Kinds of work, then phases of a sequence; "wait" is what the question is about and gets the alarm colour.
KIND_COLOURS = {
    "prefill": YELLOW,
    "draft": SKY_BLUE,
    "route": ORANGE,
    "attention": GREY,
    "router": PURPLE,
    "sync": BLACK,
    "experts": GREEN,
    "wait": VERMILLION,
    "head": BROWN,
    "copy": BLUE,
    "issue": DARK_GREY,
    "waiting": PALE_GREY,
    "verify": PALE_GREEN,
    "decode": PALE_GREEN,
}

_SETTINGS = {
    "svg.hashsalt": "hideaway",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#E5E5E5",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
}
# Without these the files would hold the hour and the version of the plotting package.
_METADATA: dict[str, dict[str, None]] = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}
_DOTS_PER_INCH = 150


def ordered_baselines(names: set[str]) -> tuple[str, ...]:
    """Return baselines in the contract's order, unknown ones after them by name."""
    known = tuple(name for name in BASELINE_ORDER if name in names)
    return known + tuple(sorted(names.difference(BASELINE_ORDER)))


def baseline_styles(names: Iterable[str]) -> dict[str, LineStyle]:
    """Return a style for each baseline; those unknown to the contract are grey, with markers in turn."""
    styles: dict[str, LineStyle] = {}
    num_unknown = 0
    for name in names:
        if name in _BASELINE_STYLES:
            styles[name] = _BASELINE_STYLES[name]
        else:
            marker = _EXTRA_MARKERS[num_unknown % len(_EXTRA_MARKERS)]
            styles[name] = LineStyle(GREY, marker, ":", _EXTRA_HATCHES[num_unknown % len(_EXTRA_HATCHES)])
            num_unknown += 1
    return styles


def text_colour(background: str) -> str:
    """Return black or white, whichever reads better on a colour "#RRGGBB" (luma of ITU-R BT.601)."""
    red, green, blue = (int(background[place : place + 2], 16) for place in (1, 3, 5))
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 128 else "white"


@contextmanager
def drawing() -> Iterator[None]:
    """Put the user's plotting settings aside and use the project's while the block runs."""
    import matplotlib.style

    with matplotlib.style.context(["default", _SETTINGS]):
        yield


def new_figure(width_inches: float, height_inches: float) -> Figure:
    """Return an empty figure that no window shows; to be called inside `drawing`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width_inches, height_inches), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write `figure` as PNG or SVG by the ending of `path`; same figure, same bytes; whole or absent.

    Raises
    ------
    InputError
        The ending is neither .png nor .svg, or the folder cannot be written.
    """
    kind = picture_kind(path)
    stream = io.BytesIO()
    figure.savefig(stream, format=kind, dpi=_DOTS_PER_INCH, metadata=_METADATA[kind])
    write_bytes_atomically(path, stream.getvalue())


def picture_kind(path: str | os.PathLike[str]) -> str:
    """Return "png" or "svg", or raise an InputError: asked before the work of drawing is done."""
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in _METADATA:
        raise InputError(f"picture {os.fspath(path)!r} must end in .png or .svg; choose one of them")
    return kind
