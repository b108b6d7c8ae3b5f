"""The report of a calibration: one HTML file that needs nothing else, pictures inside it.

Next: `hideaway.report.calibration_plots` draws, `hideaway.report.calibration_table` has the rows.
"""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from hideaway.report.calibration_plots import curve_svg, drift_svg
from hideaway.report.calibration_table import (
    CHECK_COLUMNS,
    CHOICE_COLUMNS,
    NOISE_COLUMNS,
    PARAMETER_COLUMNS,
    VALIDITY_COLUMNS,
    check_rows,
    choice_rows,
    is_flagged,
    noise_rows,
    note_lines,
    parameter_rows,
    percent,
    validity_rows,
)
from hideaway.sim.files import write_text_atomically

if TYPE_CHECKING:
    from hideaway.calibrate.calibration import Calibration

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; font-size: 13px; margin: .5rem 0 1.5rem }
th, td { border-bottom: 1px solid #ddd; padding: .2rem .6rem; text-align: left; vertical-align: top }
tr.flagged { background: #fdeee6 } tr.kept { color: #777 }
figure { display: inline-block; margin: 0 1rem 1.5rem 0; vertical-align: top } figcaption { font-size: 13px }
svg { max-width: 100%; height: auto }
"""
_SHOWN_FACTS = ("device", "driver", "processor", "threads", "link", "model", "layers", "expert_format",
                "dense_dtype", "expert_kernel", "started", "measured_seconds", "merged_files")  # fmt: skip


def write_calibration_page(made: Calibration, path: str | os.PathLike[str]) -> None:
    """Write the page; whole or absent.

    Raises
    ------
    InputError
        It cannot be written.
    """
    write_text_atomically(path, calibration_page(made))


def calibration_page(made: Calibration) -> str:
    """Return the page; same calibration, same bytes."""
    title = html.escape(f"Calibration {made.profile.name}")
    parts = [
        f"<h1>{title}</h1>",
        _facts(made),
        _list("What to know first", made.flags or ["nothing was flagged"]),
        "<h2>Parameters</h2>",
        "<p>95 % intervals; residuals are the robust spread of the points about the cost model. Grey: not measured "
        "here, value and origin of the base profile.</p>",
        _parameters(made),
        _list("Remarks on parameters", note_lines(made)),
        _kept(made),
        "<h2>Forms of the curves</h2><p>Median relative error on points left out one at a time.</p>",
        _table(CHOICE_COLUMNS, choice_rows(made)),
        "<h2>Curves</h2>",
        *_curves(made),
        "<h2>Checks: points that no fit has seen</h2>",
        _table(CHECK_COLUMNS, check_rows(made)),
        "<h2>Drift over the run</h2>",
        _drift(made),
        "<h2>Noise</h2>",
        _table(NOISE_COLUMNS, noise_rows(made)),
        "<h2>Validity</h2>",
        _table(VALIDITY_COLUMNS, validity_rows(made)),
    ]
    body = "\n".join(parts)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


def _facts(made: Calibration) -> str:
    rows = [(fact, made.environment[fact]) for fact in _SHOWN_FACTS if made.environment.get(fact) is not None]
    return _table(("measured on", ""), rows)


def _parameters(made: Calibration) -> str:
    classes = []
    for name in made.profile.parameters:
        flagged = "flagged" if is_flagged(made.estimates.get(name)) else ""
        classes.append(flagged if name in made.estimates else "kept")
    return _table(PARAMETER_COLUMNS, parameter_rows(made), classes)


def _kept(made: Calibration) -> str:
    lines = [f"{name}: {reason}" for name, reason in made.kept.items()]
    return _list(f"Parameters that this device never exercises, kept from profile {made.base.name}", lines)


def _curves(made: Calibration) -> Iterable[str]:
    for fit in made.fits:
        for curve in dict.fromkeys(datum.curve for datum in fit.family.data):
            caption = f"{curve}: points scatter by {percent(fit.spread(curve))} about the cost model"
            yield f"<figure>{curve_svg(fit, curve)}<figcaption>{html.escape(caption)}</figcaption></figure>"


def _drift(made: Calibration) -> str:
    drift = made.drift
    if drift is None:
        return "<p>Too few samples have a time.</p>"
    text = (
        f"{drift.num_samples} samples, each over the median of its point. From first to last "
        f"{100 * drift.change:+.1f} % (95 % interval {100 * drift.low:+.1f} to {100 * drift.high:+.1f} %); "
        f"{len(drift.spells)} slow spells, {drift.outliers} outlying samples."
    )
    return f"<p>{html.escape(text)}</p><figure>{drift_svg(drift)}</figure>"


def _list(title: str, lines: Sequence[str]) -> str:
    if not lines:
        return ""
    items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    return f"<h2>{html.escape(title)}</h2><ul>{items}</ul>"


def _table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], classes: Sequence[str] | None = None
) -> str:
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    lines = []
    for place, row in enumerate(rows):
        mark = f' class="{classes[place]}"' if classes is not None and classes[place] else ""
        lines.append(f"<tr{mark}>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
