"""Many works as arrays: seconds predicted from the unknowns, and their derivatives.

Next: `solver.py`, which finds the unknowns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hideaway.calibrate.work import Unknown, Work

Floats = npt.NDArray[np.float64]


class Design:
    """The works of a fit.

    Parameters
    ----------
    works : sequence of Work
        One a point.
    unknowns : sequence of Unknown
        All that the works name; more are allowed.
    serial : str or None
        Unknown that says which share of the lesser of reading and computing is not hidden behind the greater.
    """

    def __init__(self, works: Sequence[Work], unknowns: Sequence[Unknown], serial: str | None = None) -> None:
        place = {unknown.name: index for index, unknown in enumerate(unknowns)}
        self.num_unknowns = len(unknowns)
        self._constant = np.array([work.constant for work in works])
        self.linear: Floats = np.zeros((len(works), len(unknowns)))
        rows, parts, read_columns, compute_columns = [], [], [], []
        for row, work in enumerate(works):
            for name, times in work.linear.items():
                self.linear[row, place[name]] += times
            for roof in work.rooflines:
                rows.append(row)
                parts.append((roof.count * roof.num_bytes, roof.count * roof.flops))
                read_columns.append(place[roof.bytes_unknown])
                compute_columns.append(place[roof.flops_unknown])
        self._rows = np.array(rows, dtype=np.intp)
        self._parts: Floats = np.array(parts, dtype=float).reshape(-1, 2)
        self._columns = np.array([read_columns, compute_columns], dtype=np.intp)
        self._serial = None if serial is None else place[serial]

    def seconds(self, values: Floats) -> Floats:
        """Return (num_points,) seconds."""
        total = self._constant + self.linear @ values
        if len(self._rows):
            read, compute = self._times(values)
            hidden = 0.0 if self._serial is None else values[self._serial] * np.minimum(read, compute)
            np.add.at(total, self._rows, np.maximum(read, compute) + hidden)
        return total

    def derivatives(self, values: Floats) -> Floats:
        """Return (num_points, num_unknowns) derivatives of the seconds."""
        found = self.linear.copy()
        if len(self._rows):
            read, compute = self._times(values)
            share = 0.0 if self._serial is None else float(values[self._serial])
            reads = read >= compute
            np.add.at(found, (self._rows, self._columns[0]), self._parts[:, 0] * np.where(reads, 1.0, share))
            np.add.at(found, (self._rows, self._columns[1]), self._parts[:, 1] * np.where(reads, share, 1.0))
            if self._serial is not None:
                np.add.at(found[:, self._serial], self._rows, np.minimum(read, compute))
        return found

    def summed(self) -> Floats:
        """Return (num_points, num_unknowns) coefficients where reading and computing are added up."""
        found = self.linear.copy()
        for side in (0, 1):
            np.add.at(found, (self._rows, self._columns[side]), self._parts[:, side])
        return found

    def pays(self) -> npt.NDArray[np.bool_]:
        """Return (num_points, num_unknowns): which points pay for which unknowns."""
        found = self.summed() > 0.0
        if self._serial is not None:
            found[self._rows, self._serial] = True
        return found

    @property
    def constant(self) -> Floats:
        """Seconds that no unknown changes, (num_points,)."""
        return self._constant

    @property
    def has_rooflines(self) -> bool:
        """Whether any work has one."""
        return len(self._rows) > 0

    def _times(self, values: Floats) -> tuple[Floats, Floats]:
        read: Floats = self._parts[:, 0] * values[self._columns[0]]
        compute: Floats = self._parts[:, 1] * values[self._columns[1]]
        return read, compute
