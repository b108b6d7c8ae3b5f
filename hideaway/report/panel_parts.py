"""Parts that the pictures of the matrix share: titles, the axis of concurrency, a picture without data.

Next: `hideaway.report.money_picture`, `hideaway.report.exposed_picture`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from hideaway.report.matrix_cells import Panel, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Room that the legend at the right takes, and the mean width of a letter of the title.
_LEGEND_INCHES = 2.2
_LETTER_INCHES = 0.085


def set_title(figure: Figure, rows: Sequence[Row], profile: str | None, subject: str) -> None:
    """Write model and profile, then the subject, at the left of the top, broken where the legend begins."""
    width = max(20, int((figure.get_figwidth() - _LEGEND_INCHES) / _LETTER_INCHES))
    lines = [textwrap.fill(line, width) for line in _title_lines(rows, profile, subject)]
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=11, linespacing=1.3, parse_math=False)


def legend_inches(names: Iterable[str]) -> float:
    """Return the height that a legend of these entries needs (8 point lines with a gap between entries)."""
    return sum(0.12 + 0.15 * (1 + name.count("\n")) for name in names) + 0.2


def _title_lines(rows: Sequence[Row], profile: str | None, subject: str) -> list[str]:
    models = sorted({str(row["model"]) for row in rows})
    profiles = (
        [profile]
        if profile is not None
        else sorted({str(row["profile"]) for row in rows if "profile" in row})
    )
    if not models:
        return [subject]
    place = f" on {', '.join(profiles)}" if profiles else ""
    return [f"{', '.join(models)}{place}", subject]


def panel_title(panel: Panel, all_panels: Sequence[Panel]) -> str:
    """Return the block size, and the model where the picture shows several."""
    several = len({other.model for other in all_panels}) > 1
    return f"{panel.model}\nblock size {panel.block_size}" if several else f"block size {panel.block_size}"


def concurrency_axis(axes: Axes, concurrencies: Sequence[int]) -> None:
    """Make the x axis logarithmic (base 2) with one labelled tick for each concurrency of the panel."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(concurrencies), [str(concurrency) for concurrency in concurrencies])
    axes.set_xticks([], minor=True)
    axes.set_xlim(concurrencies[0] / 2**0.5, concurrencies[-1] * 2**0.5)


def show_no_rows(figure: Figure) -> None:
    """Say in an otherwise empty figure that there was nothing to draw."""
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.text(0.5, 0.5, "no rows to draw", ha="center", va="center", transform=axes.transAxes)
