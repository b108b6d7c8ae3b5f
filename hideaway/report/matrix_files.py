"""The files of a matrix besides its rows: the contract's JSON, CSV and Markdown, and the two plots."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hideaway.report.plots import exposed_plot, money_plot
from hideaway.sim.contract import aggregate_result_matrices
from hideaway.sim.contract.rows import Row
from hideaway.sim.contract.writers import write_matrix_csv, write_matrix_json, write_matrix_markdown


def write_matrix_files(rows: Sequence[Row], folder: Path, *, metric: str, profile: str) -> list[str]:
    """Write the files of one row a cell and return their names.

    Parameters
    ----------
    metric : str
        What the money plot shows.
    profile : str
        Card or device that the titles name.
    """
    cells = aggregate_result_matrices(rows)
    write_matrix_json(folder / "matrix.json", cells)
    write_matrix_csv(folder / "matrix.csv", cells)
    write_matrix_markdown(folder / "matrix.md", cells)
    money_plot(rows, folder / "money.png", metric=metric, profile=profile)
    exposed_plot(rows, folder / "exposed.png", profile=profile)
    names = ("matrix.json", "matrix.csv", "matrix.md", "money.png", "exposed.png")
    return [str(folder / name) for name in names]
