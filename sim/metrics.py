"""What is measured of a run, simulated or real, with one definition of each figure.

An engine reports forwards and requests to a `Meter` as they end; `summarise` turns them into the ten figures of
the contract and the further ones that explain them. Nothing here knows how the run was made.

Definitions (the project's design names them, the contract fixes the names):

- output tokens per second: committed tokens over time. Closed loop: in the window from the moment the whole
  first wave has its first token to the last admission, since the drain otherwise dominates; the whole run when
  that window holds fewer than `MIN_WINDOW_TOKENS`. Open loop: the whole run.
- acceptance length: tokens committed per verified sequence and round, the target's own included.
- TTFT: arrival to first token. TPOT: (finish - first token) / (tokens - 1).
- round latency: from a sequence's previous commit to this one, so it includes the wait for admission.
- goodput: output tokens per second of requests that met both limits.
- exposed: compute idle while a pass waits for an expert; synchronisation and issue idle apart.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

MIN_WINDOW_TOKENS = 256


@dataclass(slots=True)
class RequestTimes:
    """When a request arrived, was first seated, got its first token and finished; how many tokens it got."""

    arrival_seconds: float
    output_tokens: int
    admission_seconds: float = -1.0
    first_token_seconds: float = -1.0
    finish_seconds: float = -1.0
    last_commit_seconds: float = -1.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Service limits of goodput.

    The defaults are this project's own choice of what a chat user of an offloaded model still accepts, not a
    published standard; every table prints the limits in force.
    """

    ttft_seconds: float = 4.0
    tpot_seconds: float = 0.2


class Meter:
    """Collects what a run reports.

    Attributes
    ----------
    requests : dict of seq_id to RequestTimes
    forwards : int
        Forwards so far.
    """

    def __init__(self) -> None:
        self.requests: dict[int, RequestTimes] = {}
        self.forwards = 0
        self.rounds = 0
        self.round_tokens = 0
        self.draft_seconds = 0.0
        self.route_seconds = 0.0
        self.forward_seconds = 0.0
        self.prefill_tokens = 0
        self.occupied_expert_bytes = 0.0
        self.occupied_kv_bytes = 0.0
        self.occupied_seconds = 0.0
        self.last_admission_seconds = 0.0
        self.end_seconds = 0.0
        self._round_latencies = array("d")
        self._commit_times = array("d")
        self._commit_tokens = array("l")

    def arrived(self, seq_id: int, at_seconds: float, output_tokens: int) -> None:
        """Note a request's arrival. Changes state."""
        self.requests[seq_id] = RequestTimes(at_seconds, output_tokens)

    def admitted(self, seq_id: int, at_seconds: float) -> None:
        """Note that a request left the waiting line; only its first time counts. Changes state."""
        times = self.requests[seq_id]
        if times.admission_seconds < 0:
            times.admission_seconds = at_seconds
            self.last_admission_seconds = max(self.last_admission_seconds, at_seconds)

    def first_token(self, seq_id: int, at_seconds: float) -> None:
        """Note the end of a prefill, which commits one token. Changes state."""
        times = self.requests[seq_id]
        if times.first_token_seconds < 0:
            times.first_token_seconds = at_seconds
        times.last_commit_seconds = at_seconds
        self._committed(at_seconds, 1)

    def round(self, seq_id: int, at_seconds: float, tokens: int) -> None:
        """Note a verified round of one sequence and the tokens it commits. Changes state."""
        times = self.requests[seq_id]
        self._round_latencies.append(at_seconds - times.last_commit_seconds)
        times.last_commit_seconds = at_seconds
        self.rounds += 1
        self.round_tokens += tokens
        self._committed(at_seconds, tokens)

    def finished(self, seq_id: int, at_seconds: float) -> None:
        """Note a finished request. Changes state."""
        self.requests[seq_id].finish_seconds = at_seconds
        self.end_seconds = max(self.end_seconds, at_seconds)

    def failed(self, seq_id: int) -> None:
        """Forget a request that could not be served; no figure counts it. Changes state."""
        del self.requests[seq_id]

    def forward(self, start_seconds: float, end_seconds: float, expert_bytes: int, kv_bytes: int) -> None:
        """Note a forward and the memory held during it. Changes state."""
        seconds = end_seconds - start_seconds
        self.forwards += 1
        self.forward_seconds += seconds
        self.occupied_expert_bytes += seconds * expert_bytes
        self.occupied_kv_bytes += seconds * kv_bytes
        self.occupied_seconds += seconds

    def _committed(self, at_seconds: float, tokens: int) -> None:
        self._commit_times.append(at_seconds)
        self._commit_tokens.append(tokens)

    def round_latencies(self) -> npt.NDArray[np.float64]:
        """Return every round's latency in seconds, shape (rounds,)."""
        return np.frombuffer(self._round_latencies, dtype=np.float64).copy()

    def window(self, first_wave: int | None) -> tuple[float, float]:
        """Return the (start, end) seconds over which throughput is counted.

        Parameters
        ----------
        first_wave : int or None
            Requests of the first wave of a closed loop; None for an open loop.
        """
        whole = (0.0, self.end_seconds)
        if first_wave is None:
            return whole
        firsts = [times.first_token_seconds for times in list(self.requests.values())[:first_wave]]
        start, end = max(firsts, default=0.0), self.last_admission_seconds
        if self._tokens_between(start, end) < MIN_WINDOW_TOKENS:
            return whole
        return start, end

    def tokens_per_second(self, window: tuple[float, float]) -> float:
        """Return committed tokens per second in a window."""
        start, end = window
        return self._tokens_between(start, end) / (end - start) if end > start else 0.0

    def _tokens_between(self, start: float, end: float) -> int:
        times = np.frombuffer(self._commit_times, dtype=np.float64)
        tokens = np.frombuffer(self._commit_tokens, dtype=np.dtype("l"))
        return int(tokens[(times > start) & (times <= end)].sum())
