"""How much device memory the KV caches of the running sequences take."""

from __future__ import annotations

from collections.abc import Callable

from hideaway.sim.request import Sequence


class KvPool:
    """Bytes of KV memory, handed out by sequence.

    Parameters
    ----------
    capacity_bytes : int
        Memory set aside for KV caches.
    kv_bytes : callable
        Bytes one sequence takes at a number of context tokens (`ModelSpec.kv_bytes`).
    """

    __slots__ = ("_kv_bytes", "capacity_bytes", "peak_bytes", "used_bytes")

    def __init__(self, capacity_bytes: int, kv_bytes: Callable[[int], int]) -> None:
        self.capacity_bytes = capacity_bytes
        self.used_bytes = 0
        self.peak_bytes = 0
        self._kv_bytes = kv_bytes

    def fits(self, sequence: Sequence, context_tokens: int) -> bool:
        """Return whether `sequence` may grow to `context_tokens`; changes nothing."""
        return self.used_bytes - sequence.kv_bytes + self._kv_bytes(context_tokens) <= self.capacity_bytes

    def could_ever_fit(self, context_tokens: int) -> bool:
        """Return whether one sequence of `context_tokens` fits when nothing else is there; changes nothing."""
        return self._kv_bytes(context_tokens) <= self.capacity_bytes

    def resize(self, sequence: Sequence, context_tokens: int) -> None:
        """Give `sequence` what `context_tokens` take (0 gives all back). Changes state."""
        new = self._kv_bytes(context_tokens) if context_tokens else 0
        self.used_bytes += new - sequence.kv_bytes
        sequence.kv_bytes = new
        self.peak_bytes = max(self.peak_bytes, self.used_bytes)
