"""Where the experts live on the host: all in memory, or on an SSD behind the operating system's page cache.

An expert that is not in the cache is read from the SSD (serial, latency + bytes / bandwidth) before its copy
to the device can start; the cache keeps what was read most recently.
"""

from __future__ import annotations

from collections import OrderedDict


class HostStore:
    """An SSD tier with a least-recently-used page cache of whole experts.

    Parameters
    ----------
    cache_experts : int
        Experts that fit into the page cache.
    read_seconds : float
        Time to read one expert from the SSD.
    """

    __slots__ = ("_cache", "_cache_experts", "_free_at", "_read_seconds", "reads")

    def __init__(self, cache_experts: int, read_seconds: float) -> None:
        self._cache_experts = cache_experts
        self._read_seconds = read_seconds
        self._cache: OrderedDict[tuple[int, int], None] = OrderedDict()
        self._free_at = 0.0
        self.reads = 0

    def ready(self, layer: int, expert: int, at_seconds: float) -> float:
        """Return when the expert is in host memory if it is asked for at `at_seconds`. Changes state."""
        key = (layer, expert)
        if key in self._cache:
            self._cache.move_to_end(key)
            return at_seconds
        self._free_at = max(self._free_at, at_seconds) + self._read_seconds
        self.reads += 1
        if self._cache_experts > 0:
            self._cache[key] = None
            if len(self._cache) > self._cache_experts:
                self._cache.popitem(last=False)
        return self._free_at
