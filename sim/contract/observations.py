"""Rows in a file: loaded as a list, appended one at a time, never overwritten, never lost.

Appending holds a lock beside the file and replaces the file as a whole, so that two processes that append at
once both succeed and a reader never sees half a list. Next: `hideaway.sim.contract.matrix` judges what was
loaded.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hideaway.sim.contract.file_lock import exclusive_lock
from hideaway.sim.contract.metric_names import BLOCKED_STATUS
from hideaway.sim.contract.rows import Row, checked_row, observation_key
from hideaway.sim.errors import InputError
from hideaway.sim.files import read_json, write_json_atomically
from hideaway.sim.number_checks import shown

_WHAT = "row file"


def load_observations(path: str | os.PathLike[str]) -> list[Row]:
    """Return the rows of a JSON file; none when it is absent or empty. Keys beyond the contract stay.

    Raises
    ------
    InputError
        The file cannot be read, is not a JSON list, or a row is malformed.
    """
    if not os.path.lexists(path) or (os.path.isfile(path) and os.path.getsize(path) == 0):
        return []
    try:
        rows = read_json(path, _WHAT)
    except InputError:
        raise
    except ValueError as error:  # a number of thousands of digits
        raise InputError(f"{_WHAT} {os.fspath(path)!r} cannot be read: {error}; repair the file") from error
    if not isinstance(rows, list):
        raise InputError(
            f"{_WHAT} {os.fspath(path)!r} holds {shown(rows)} but must be a list of rows; repair the file"
        )
    return [checked_row(row, f"row {index} of {os.fspath(path)}") for index, row in enumerate(rows)]


def append_observation(path: str | os.PathLike[str], row: Mapping[str, Any]) -> None:
    """Add one row to the file at `path`, which is made if absent. Changes the file in one step or not at all.

    Raises
    ------
    InputError
        A row with the same model, draft, baseline, block size, concurrency and repeat is there already
        (`refusing to overwrite`), the row is malformed or blocked, or the file is.
    """
    new = checked_row(row, "the new row")
    if new.get("status") == BLOCKED_STATUS:
        raise InputError(
            f"the new row has status {BLOCKED_STATUS}, which is read from old files only; measure it"
        )
    with exclusive_lock(path):
        rows = load_observations(path)
        key = observation_key(new)
        if any(observation_key(old) == key for old in rows):
            raise InputError(
                f"refusing to overwrite the row {key} of {os.fspath(path)}; use another repeat or file"
            )
        write_json_atomically(Path(path), [*rows, new])
