"""What an arrival source holds once read: lengths, arrival times where it has them, and where it comes from.

Not here: reading files (`csv_formats.py`, `json_formats.py`) and choosing requests from a source (`load.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hideaway.sim.errors import InputError

MAX_TOKENS = 10_000_000
"""Longest prompt or answer accepted; refuses slips such as a column of bytes."""
MAX_ARRIVAL_SECONDS = 1e8
"""Three years; at later times a float no longer tells the microseconds of a launch."""


@dataclass(frozen=True, slots=True)
class RequestSpec:
    """One request: when it arrives and how many tokens it brings and wants."""

    arrival_seconds: float
    input_tokens: int
    output_tokens: int

    def __post_init__(self) -> None:
        """Refuse what no serving system can be asked."""
        if not 0 <= self.arrival_seconds <= MAX_ARRIVAL_SECONDS:
            raise InputError(
                f"a request arrives at {self.arrival_seconds:g} s; give times within {MAX_ARRIVAL_SECONDS:g} s of the"
                " first, in the trace or by a higher rate"
            )
        if not 1 <= self.input_tokens <= MAX_TOKENS or not 1 <= self.output_tokens <= MAX_TOKENS:
            raise InputError(
                f"a request has {self.input_tokens} input and {self.output_tokens} output tokens; both must be from 1"
                f" to {MAX_TOKENS}"
            )


@dataclass(frozen=True, slots=True, eq=False)
class ArrivalSource:
    """Requests of one trace, in order of arrival.

    Parameters
    ----------
    name
        The name or path it was asked for by.
    origin
        One sentence for the list of defaults in force: where it comes from and what reading changed.
    arrival_seconds
        float64 (num_requests,) from the first request on, not decreasing; None where the source has lengths only.
    input_tokens, output_tokens
        int64 (num_requests,), at least 1.
    """

    name: str
    origin: str
    arrival_seconds: npt.NDArray[np.float64] | None
    input_tokens: npt.NDArray[np.int64]
    output_tokens: npt.NDArray[np.int64]

    @property
    def num_requests(self) -> int:
        """Requests in the source."""
        return len(self.input_tokens)


@dataclass(frozen=True, slots=True)
class RawRequests:
    """Columns as a file gave them, before empty requests are dropped and times start at 0."""

    format_name: str
    arrival_seconds: Sequence[float] | None
    input_tokens: Sequence[int]
    output_tokens: Sequence[int]
    remark: str = ""


def source_from_raw(name: str, origin: str, raw: RawRequests) -> ArrivalSource:
    """Return the source in order of arrival, the first request at 0 s.

    Requests with no input or no output token are left out (a failed request has no first token, so none of the
    latencies is defined for it) and counted in the origin. Equal times keep the order of the file.

    Raises
    ------
    InputError
        No request is left.
    """
    inputs = np.array(raw.input_tokens, dtype=np.int64)
    outputs = np.array(raw.output_tokens, dtype=np.int64)
    kept = np.flatnonzero((inputs > 0) & (outputs > 0))
    times: npt.NDArray[np.float64] | None = None
    if raw.arrival_seconds is not None:
        all_times = np.array(raw.arrival_seconds, dtype=np.float64)
        kept = kept[np.argsort(all_times[kept], kind="stable")]
        times = all_times[kept] - (all_times[kept[0]] if len(kept) else 0.0)
    if len(kept) == 0:
        raise InputError(
            f"arrival trace {name!r} holds no request with input and output tokens; give at least one"
        )
    dropped = len(inputs) - len(kept)
    note = f"; {dropped} requests without input or output tokens left out" if dropped else ""
    return ArrivalSource(name, f"{origin}{raw.remark}{note}", times, inputs[kept], outputs[kept])
