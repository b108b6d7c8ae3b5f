"""CSV tables with one thing spoilt: a cell, a row cut short, a column that has another name, another separator.

Certain because every cell that is touched is read as a number or a date, and the columns that are touched are needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.malformed import sound
from tests.malformed.case import Case
from tests.malformed.spoilt_json import acceptance_commands

WORDS = ("abc", "nan", "inf", "-inf", "NaN", "1e999", "", " ", "0x10", "1_0", "None", "null", "true", "1 2",
         "--3", "$5", "=1+1",
         "٣", "½", "1.2.3", "1e", ".", "9" * 200, "5\x00", "12abc")  # fmt: skip
CELLS = {
    "number": WORDS,
    "whole": (*WORDS, "1.5", "-1", "-0.5", "1e30"),
    "rate": (*WORDS, "1.5", "-0.1", "2"),
    "date": ("yesterday", "2023-13-45 00:00:00", "2023-11-16 25:00:00", "18:17:03", "nan", "", "16.11.2023",
             "2023-11-16 18:17:61",
             "1700158623.97", "2023-11-16T18:17:03+99:00"),
}  # fmt: skip


@dataclass(frozen=True)
class Table:
    """A valid table, its file, the commands that read it, and the kind of each column that is read."""

    name: str
    text: str
    file: str
    commands: tuple[tuple[str, ...], ...]
    columns: dict[int, str]
    more: tuple[tuple[int, str], ...] = ()
    needed: tuple[int, ...] = ()
    refuses_no_rows: bool = True

    def rows(self) -> list[list[str]]:
        return [line.split(",") for line in self.text.splitlines()]


def tables() -> dict[str, Table]:
    """Return every table; `needed` are the columns without which no format is left."""

    def trace(name: str, columns: dict[int, str], needed: tuple[int, ...]) -> Table:
        beyond = tuple(
            (column, text)
            for column, kind in columns.items()
            if kind == "whole"
            for text in ("10000001", "1e9")
        )
        commands = (
            ("simulate", "--trace", "requests.csv", "--requests", "1", "-o", "new.json"),
            (
                "simulate",
                "--trace",
                "requests.csv",
                "--requests",
                "2",
                "--rate",
                "1",
                "--timeline",
                "new.jsonl",
            ),
            ("matrix", "--trace", "requests.csv", "--requests", "1", "--workers", "1", "--out", "new"),
        )
        return Table(f"{name} trace", sound.ARRIVALS[name], "requests.csv", commands, columns, beyond, needed)

    gates = (("gates", "--bm4", "table.csv"), ("gates", "--bm4", "table.csv", "--json", "-o", "new.json"))
    found = (
        trace("hideaway", {0: "number", 1: "whole", 2: "whole"}, (1, 2)),
        trace("lengths", {0: "whole", 1: "whole"}, (0, 1)),
        trace("azure", {0: "date", 1: "whole", 2: "whole"}, (0, 1, 2)),
        trace("burstgpt", {0: "number", 2: "whole", 3: "whole"}, (0, 2, 3)),
        Table("recording table", sound.RECORDING_CSV, "accept.csv",
              acceptance_commands("replay", "accept.csv"), {1: "whole"},
              ((1, "0"), (1, "4097")), (1,)),
        Table("vector table", sound.RATES_CSV, "accept.csv", acceptance_commands("vector", "accept.csv"),
              {0: "whole", 1: "rate"}, ((0, "9"), (0, "0")), (0, 1)),
        Table("range table", sound.BM4_RANGES, "table.csv", gates, {1: "whole", 2: "number"},
              ((2, "-1"), (2, "1e13"), (1, "1e13")), (0, 1, 2), refuses_no_rows=False),
        Table("copy table", sound.BM4_COPIES, "table.csv", gates, {2: "number"}, ((2, "-1"), (2, "1e13")), (0, 2)),
    )  # fmt: skip
    return {table.name: table for table in found}


def spoilt_table(table: Table, rng: np.random.Generator) -> Case:
    """Return the table with one thing wrong."""
    ways = [_cell, _cell, _cell, _cell, _short_row, _other_header, _other_separator]
    if table.refuses_no_rows:
        ways.append(_no_rows)
    what, text = ways[rng.integers(len(ways))](table, rng)
    argv = table.commands[rng.integers(len(table.commands))]
    return Case(f"{table.name}:{what}", argv, ((table.file, text.encode()),), (table.file,))


def _joined(rows: list[list[str]], separator: str = ",") -> str:
    return "".join(separator.join(row) + "\n" for row in rows)


def _cell(table: Table, rng: np.random.Generator) -> tuple[str, str]:
    choices = [(column, text) for column, kind in table.columns.items() for text in CELLS[kind]] + list(
        table.more
    )
    column, text = choices[rng.integers(len(choices))]
    rows = table.rows()
    row = 1 + rng.integers(len(rows) - 1)
    rows[row][column] = text
    return "wrong cell", _joined(rows)


def _short_row(table: Table, rng: np.random.Generator) -> tuple[str, str]:
    rows = table.rows()
    row = 1 + rng.integers(len(rows) - 1)
    rows[row] = rows[row][: max(1, max(table.columns) - int(rng.integers(2)))]
    return "short row", _joined(rows)


def _other_header(table: Table, rng: np.random.Generator) -> tuple[str, str]:
    rows = table.rows()
    column = table.needed[rng.integers(len(table.needed))]
    name = rows[0][column]
    others = ("", name[:-1], name + "s", name.swapcase(), f"my {name}", "7")
    rows[0][column] = others[rng.integers(len(others))]
    return "other header", _joined(rows)


def _other_separator(table: Table, rng: np.random.Generator) -> tuple[str, str]:
    separators = (";", "\t", "|", "::", " ")
    return "other separator", _joined(table.rows(), separators[rng.integers(len(separators))])


def _no_rows(table: Table, rng: np.random.Generator) -> tuple[str, str]:
    return "no rows", _joined(table.rows()[:1]) + "\n" * int(rng.integers(4))
