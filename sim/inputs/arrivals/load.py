"""Arrivals by name or path: the requests that a run is fed with.

Not here: closed loops, where the engine decides when the next request enters (it needs `lengths_only`).
"""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hideaway.sim.errors import InputError
from hideaway.sim.files import read_text
from hideaway.sim.inputs.arrivals.csv_formats import requests_from_csv
from hideaway.sim.inputs.arrivals.json_formats import requests_from_json
from hideaway.sim.inputs.arrivals.source import ArrivalSource, RequestSpec, source_from_raw

DATA_FOLDER = Path(__file__).parent.parent / "data" / "arrivals"

SHIPPED_ORIGINS = {
    "azure-conv": "the first 2,000 requests (424 s) of the Azure LLM inference trace 2023, conversation (CC BY 4.0)",
    "azure-code": "the first 2,000 requests (853 s) of the Azure LLM inference trace 2023, code (CC BY 4.0)",
    "mooncake-conversation": "the first 2,000 requests (669 s) of the Mooncake FAST'25 conversation trace",
    "sharegpt": "300 ShareGPT requests as tokenised for Qwen3-30B-A3B by LLMServingSim, its arrivals generated there"
    " at 10 requests/s",
}


def arrival_source_names() -> tuple[str, ...]:
    """Return the names of the shipped arrival traces."""
    return tuple(SHIPPED_ORIGINS)


def load_arrival_source(trace: str) -> ArrivalSource:
    """Return every request of a shipped trace or of a file in one of the public formats.

    Raises
    ------
    InputError
        The name is unknown and no file has it, or the file is of no known format.
    """
    if trace in SHIPPED_ORIGINS:
        path, origin = DATA_FOLDER / f"{trace}.csv", SHIPPED_ORIGINS[trace]
    else:
        path, origin = Path(trace), ""
        if not trace or ("\0" not in trace and not os.path.exists(trace)):
            raise InputError(
                f"arrival trace {trace!r} is neither a file nor one of {', '.join(SHIPPED_ORIGINS)};"
                " check the name"
            )
    text = read_text(path, "arrival trace").removeprefix("\ufeff")
    what = f"arrival trace {trace!r}"
    parse = requests_from_json if text.lstrip()[:1] in ("[", "{") else requests_from_csv
    raw = parse(text, what)
    return source_from_raw(trace, origin or f"the requests in {trace}, read as {raw.format_name}", raw)


def load_arrivals(
    trace: str,
    *,
    num_requests: int | None = None,
    rate_requests_per_second: float | None = None,
    rng: np.random.Generator | None = None,
    lengths_only: bool = False,
) -> tuple[RequestSpec, ...]:
    """Return the first requests of a trace, in order of arrival.

    Parameters
    ----------
    trace
        azure-conv, azure-code, mooncake-conversation, sharegpt, or the path of a file.
    num_requests
        How many; all of the trace by default.
    rate_requests_per_second
        With a rate the lengths stay in their order and arrivals are a Poisson process of that rate from 0 s on;
        without, the trace's own times are kept, the first request at 0 s.
    rng
        Needed with a rate.
    lengths_only
        Every request at 0 s: for closed loops, which use only the lengths.

    Raises
    ------
    InputError
        The trace cannot be read or has fewer requests, or has no times and none were asked to be made.
    """
    source = load_arrival_source(trace)
    count = source.num_requests if num_requests is None else num_requests
    if not 1 <= count <= source.num_requests:
        raise InputError(
            f"{count} requests were asked of arrival trace {trace!r}, which has {source.num_requests}; ask for 1 to"
            f" {source.num_requests}"
        )
    times = _arrival_seconds(source, count, rate_requests_per_second, rng, lengths_only)
    return tuple(
        RequestSpec(*columns)
        for columns in zip(
            times.tolist(),
            source.input_tokens[:count].tolist(),
            source.output_tokens[:count].tolist(),
            strict=True,
        )
    )


def _arrival_seconds(
    source: ArrivalSource,
    count: int,
    rate_requests_per_second: float | None,
    rng: np.random.Generator | None,
    lengths_only: bool,
) -> npt.NDArray[np.float64]:
    if lengths_only:
        return np.zeros(count)
    if rate_requests_per_second is not None:
        if not math.isfinite(rate_requests_per_second) or rate_requests_per_second <= 0:
            raise InputError(
                f"the arrival rate is {rate_requests_per_second} requests/s; give a finite rate above 0"
            )
        if rng is None:
            raise InputError("an arrival rate was given without a random generator; hand one in as rng")
        return np.cumsum(rng.exponential(1.0 / rate_requests_per_second, count))
    if source.arrival_seconds is None:
        raise InputError(
            f"arrival trace {source.name!r} has lengths but no times; give a rate or close the loop"
        )
    return source.arrival_seconds[:count]
