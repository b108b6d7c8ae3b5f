"""What people read: tables and results on stdout, notes and progress on stderr."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

_PIPE_WIDTH = 160


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], title: str | None = None) -> None:
    """Print a table on stdout; a column whose cells are all numbers is right-aligned."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        numeric = bool(rows) and all(_looks_numeric(row[index]) for row in rows)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(value) for value in row))
    console = Console(file=sys.stdout, highlight=False, markup=False)
    if console.is_terminal:
        console.print(table)
        return
    page = io.StringIO()
    Console(file=page, highlight=False, markup=False, width=_PIPE_WIDTH).print(table)
    print("\n".join(line.rstrip() for line in page.getvalue().splitlines()))


def print_json(value: object) -> None:
    """Print one JSON object on stdout; NaN and infinity are refused."""
    print(json.dumps(value, indent=2, allow_nan=False))


def note(text: str) -> None:
    """Print one remark on stderr."""
    print(text, file=sys.stderr)


@contextmanager
def progress(total: int, label: str) -> Iterator[Callable[[], None]]:
    """Show a progress bar on stderr while the block runs; yields a function that advances it by one.

    Nothing is drawn when stderr is not a terminal.
    """
    console = Console(file=sys.stderr)
    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(label, total=total)
        yield lambda: bar.advance(task)


def _looks_numeric(value: object) -> bool:
    text = str(value).replace(",", "").strip("%+-≥≤<> ")
    return text == "" or text.replace(".", "", 1).replace("e-", "", 1).isdigit()


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)
